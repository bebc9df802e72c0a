"""The rows of `step_times`: a program with its tactics, and the same strategy by hand where an expert would write one."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax

import partita as pt
from partita.examples import decode, demo, gpt, graph_network, llama, lstm, moe, resnet, text, unet

from . import (
    decode_by_hand,
    graph_by_hand,
    handwritten,
    llama_by_hand,
    lstm_by_hand,
    moe_by_hand,
    resnet_by_hand,
    unet_by_hand,
)
from .case import MESH, Case

Made = tuple[Case, Any]

SIZES = {
    "small": gpt.Config(),
    "deeper": gpt.Config(layers=6),
    "wider": gpt.Config(layers=3, width=256),
}
SCHEDULES = {
    "BP": handwritten.Schedule(megatron=False, zero=False),
    "BP+MP": handwritten.Schedule(zero=False),
    "BP+MP+Z3": handwritten.Schedule(),
}


def rows() -> dict[str, Callable[[], Made]]:
    """Each row, made when asked for."""
    sizes = {
        f"transformer, {size}, {schedule}": partial(transformer, config, schedule)
        for size, config in SIZES.items()
        for schedule in SCHEDULES
    }
    recurrent = {"lstm, data": [lstm.DATA], "lstm, data and ZeRO-3": [lstm.DATA, pt.ZeRO(3, "data", params="params")]}
    return {
        **sizes,
        "llama, BP+MP+Z3": llama_step,
        "resnet, data": resnet_step,
        "unet, data": unet_step,
        "moe, experts": moe_step,
        "graph network, edges": graph_step,
        "decode, heads": decode_step,
        **{name: partial(lstm_step, tactics) for name, tactics in recurrent.items()},
    }


def transformer(config: gpt.Config, name: str) -> Made:
    """Data parallelism alone has all eight devices."""
    schedule, tactics = SCHEDULES[name], list(demo.TACTICS.values())[: name.count("+") + 1]
    params = gpt.init(config)
    args = params, gpt.OPTIMIZER.init(params), next(text.batches(text.corpus(200_000), demo.BATCH, config.length))
    case = Case(name, gpt.train_step, args, tactics, demo.MESH if schedule.megatron else MESH)
    mesh = case.shardings[1][2].mesh
    return case, handwritten.train_step(config, mesh, args[1], schedule)


def llama_step() -> Made:
    case = Case("llama", llama.train_step, llama.arguments(llama.SIZES), llama.TACTICS, llama.MESH)
    return case, llama_by_hand.train_step(case.shardings[1][2].mesh, case.args[1])


def resnet_step() -> Made:
    args = resnet.create_state(3, filters=16), resnet.random_batch(64, 32)
    case = Case("resnet", resnet.train_step, args, [resnet.data])
    return case, case.by_hand(resnet_by_hand.train_step)


def unet_step() -> Made:
    args = unet.create_state(16), unet.random_images(32, 16), jax.random.key(2)
    case = Case("unet", unet.train_step, args, [unet.data])
    return case, case.by_hand(unet_by_hand.train_step)


def moe_step() -> Made:
    args = moe.arguments(moe.Config(groups=32, tokens=64, width=128, hidden=512))
    case = Case("moe", moe.train_step, args, moe.TACTICS)
    return case, case.by_hand(moe_by_hand.train_step)


def graph_step() -> Made:
    config = graph_network.Config(nodes=512, edges=16_384, width=64)
    args = graph_network.parameters(config), graph_network.random_graph(config)
    case = Case("graph network", graph_network.train_step, args, [graph_network.EDGES])
    return case, case.by_hand(graph_by_hand.train_step)


def decode_step() -> Made:
    args = decode.arguments(decode.Config(layers=2, batch=32, length=64, width=256, head=32, vocabulary=512))
    case = Case("decode", decode.decode, args, [decode.MULTI_HEAD], pt.Mesh(model=8))
    return case, case.by_hand(decode_by_hand.decode)


def lstm_step(tactics: list[pt.Tactic]) -> Made:
    args = lstm.arguments(lstm.Config(batch=64, length=48, features=32, hidden=128))
    case = Case("lstm", lstm.train_step, args, tactics)
    return case, case.by_hand(partial(lstm_by_hand.train_step, lstm_by_hand.dims(case.shardings[0][0])))
