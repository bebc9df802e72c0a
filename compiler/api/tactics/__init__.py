"""The tactics that come with Partita. A tactic is a function from plan to plan; your own can be a plain function.

    base         `Tactic`: its claims are made all at once and propagated once, so the order within a tactic never matters
    elementary   the tactics that others are made of: tile, replicate, widen, gather in each trip
    resolve      the fastest way out of each conflict
    annotated    what the program itself says
    data         the batch
    microbatch   the batch in parts, one after another
    megatron     pairs of products
    sequence     positions, between Megatron's parts or of everything
    vocabulary   embedding, logits and loss
    experts      experts, on the axis of the tokens
    zero         what is stored from call to call
    tensor_2d    batch x model, on weights and activations
    combinators  tactics made of tactics

    plan.apply(pt.DataParallel("data", inputs="batch/*"), pt.ZeRO(3, "data", params="params", optimizer="opt"))

They register themselves when this is imported; each is `pt.NAME`.
"""

from .annotated import Annotated as Annotated
from .base import Tactic as Tactic
from .combinators import Composable as Composable, at as at, or_else as or_else, repeat as repeat, then as then
from .data import DataParallel as DataParallel
from .experts import ExpertParallel as ExpertParallel
from .megatron import Megatron as Megatron
from .microbatch import Microbatch as Microbatch
from .resolve import Resolve as Resolve
from .sequence import ContextParallel as ContextParallel, SequenceParallel as SequenceParallel
from .simple import (
    EachTrip as EachTrip,
    On as On,
    Replicate as Replicate,
    Tile as Tile,
    TileRange as TileRange,
    Widen as Widen,
)
from .tensor_2d import Tensor2D as Tensor2D
from .vocabulary import VocabularyParallel as VocabularyParallel
from .zero import FSDP as FSDP, ZeRO as ZeRO
