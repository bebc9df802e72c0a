"""One controller for the process: all programs are issued under one lock, in one order, and few of them are in flight.

Programs over several devices meet in collectives. If two threads issue two of them in different orders on different devices,
both wait for ever; and XLA:CPU ends the process when more than 32 wait for one another. So each program has a token, which is
there when the program has run: its smallest result or, if all are large or arguments are donated, a scalar beside them. Before
the controller issues one program too many, it awaits the older half of the tokens.

    step 0 --> token 0,  step 1 --> token 1,  ...   before step 16 is issued, tokens 0 to 7 are awaited

What is called within a transformation of JAX, such as an outer `jax.jit`, is issued by JAX, and not counted.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import RLock
from typing import Any, Generic, TypeVar, cast

from jax import Array
from jax.core import ShapedArray
from jax.stages import Wrapped

from ...dialects.ground.errors import Error, first_line
from ...dialects.ground.validation import checked, integer, refused
from ..jax_private import Device, InternalFloatingPointError, PyTreeDef, jax, jnp, signatures, trace_state_clean, tree
from ..ops.prng_keys import is_key, is_void
from .addressable import devices_of
from .callbacks import Noted, check_outside, noting, raised
from .extended_shard_map import on_own_devices
from .trail import Trail

R = TypeVar("R")

MOST_ON_CPU = 16
"""XLA:CPU runs each program on a thread for each device. It ends the process when more than 32 programs wait for threads."""


SMALL = 1 << 16
"""The most bytes of a result that is kept as the token of a program."""


@tree.register_pytree_node_class
class Ran:
    """What a program returns to the controller: the leaves of its results, and with them its token, by its number."""

    __slots__ = ("leaves", "structure", "token")

    def __init__(self, leaves: Sequence[Array], structure: PyTreeDef, token: int) -> None:
        self.leaves, self.structure, self.token = leaves, structure, token

    def tree_flatten(self) -> tuple[Sequence[Array], tuple[PyTreeDef, int]]:
        """The arrays, and what JAX keeps with the compiled program."""
        return self.leaves, (self.structure, self.token)

    @classmethod
    def tree_unflatten(cls, kept: tuple[PyTreeDef, int], leaves: Sequence[Array]) -> Ran:
        """The inverse."""
        return cls(leaves, *kept)

    @classmethod
    def of(cls, results: object, may_be_result: bool) -> Ran:
        """Chooses the token while JAX traces the program: the smallest result, or a scalar after the results."""
        leaves, structure = tree.tree_flatten(results)
        types = [cast(ShapedArray, jax.typeof(leaf)) for leaf in leaves]
        sizes = {at: each.size * each.dtype.itemsize for at, each in enumerate(types) if each.size and not _is_no_array(each)}
        least = min(sizes, key=sizes.__getitem__, default=None)
        if may_be_result and least is not None and sizes[least] <= SMALL:
            return cls(leaves, structure, least)
        return cls([*leaves, jnp.zeros((), bool)], structure, len(leaves))

    def results(self) -> object:
        """The program's results."""
        count = self.structure.num_leaves
        return tree.tree_unflatten(self.structure, self.leaves if self.token < count else self.leaves[:count])


def _is_no_array(aval: ShapedArray) -> bool:
    """Whether JAX returns something else than its own arrays for this type: keys, or what has no tangent."""
    return is_key(aval) or is_void(aval)


class Tokened(Generic[R]):
    """A program that has a token: no result of it if it `donates`, since its next call may overwrite that."""

    def __init__(self, name: str, function: Callable[..., R], donates: bool = False) -> None:
        self.name, self.noted, self.donates = name, Noted(name), donates
        self.copies = False
        """Whether its token is a copy, because somebody else has donated one."""

        @functools.wraps(function)
        def with_token(*args: object, **kwargs: object) -> Ran:
            with noting(self.noted):
                return Ran.of(function(*args, **kwargs), may_be_result=not donates)

        self.function = with_token
        """What JAX traces."""
        self.compiled: Callable[..., Any] = with_token
        """The compiled program, once it is set."""

    def call(self, *args: object, **kwargs: object) -> tuple[R, Array]:
        """Issues the program. Raises Error if JAX checks for NaNs, and it has made one."""
        try:
            ran: Ran = self.compiled(*args, **kwargs)
        except InternalFloatingPointError as error:
            _, kind = error.args
            title = f"`{self.name}` has made {'a NaN' if kind == 'nan' else 'an infinity'}"
            raise Error(title, helps=["`jax_debug_nans` or `jax_debug_infs` is set, and asks for this error"]) from error
        token = ran.leaves[ran.token]
        if self.copies:
            with on_own_devices():
                token = _copied(token)
        return cast(R, ran.results()), token


class Controller:
    """Issues programs, and awaits old ones."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.flying = deque[tuple[Tokened[Any], Array]]()
        """The programs that were issued and not awaited yet, each with its token, oldest first."""
        self.trail: Trail | None = None
        """Keeps the names of what is issued, if there are other processes."""
        self.most: int | None = None
        """How many programs may be in flight; None: as many as the platform takes."""

    def run(self, program: Tokened[R], *args: object, **kwargs: object) -> R:
        """Issues a program. Returns its results at once, or when it is done if they depend on a host callback.

        Raises Error if an earlier program has failed, with its name, and for what a callback has raised.
        """
        with self.lock:
            if self.flying and self.flying[-1][1].is_deleted():
                self.find_lost()
            most = MOST_ON_CPU if self.most is None else self.most
            if program.copies:
                # The copies, and the programs to which the results are donated, are in flight too.
                most = max(most // 4, 1)
            if len(self.flying) >= most:
                self.wait(most // 2)
            self.report()
            self.note(program.name)
            kept = [not own.is_deleted() for _, own in self.flying] if program.donates else []
            results, token = program.call(*args, **kwargs)
            for at, was_there in enumerate(kept):
                each, own = self.flying[at]
                if was_there and own.is_deleted():
                    # What has overwritten a token is there only after what has made it.
                    self.flying[at] = each, token
            self.flying.append((program, token))
            if program.noted.waits:
                self.wait()
            return results

    def note(self, name: str) -> None:
        """Keeps the name of what is issued."""
        if self.trail is not None:
            self.trail.note(f"`{name}`")

    def find_lost(self) -> None:
        """Finds tokens that were donated to programs which are not issued here.

        Nothing says when those end, so all arrays on their devices are awaited, and copies are the tokens from then on.
        """
        lost = [each for each in self.flying if each[1].is_deleted()]
        devices = set[Device]().union(*(devices_of(token.sharding) for _, token in lost))
        for program, _ in lost:
            program.copies = True
        for array in jax.live_arrays():
            # An error is that of the call which made the array, and another thread may delete it.
            with suppress(RuntimeError):
                if not devices.isdisjoint(devices_of(array.sharding)):
                    array.block_until_ready()
        self.flying = deque(each for each in self.flying if not any(each is one for one in lost))

    def wait(self, most: int = 0) -> None:
        """Awaits the oldest programs until at most so many are in flight. Raises Error if one has failed."""
        with self.lock:
            while len(self.flying) > most:
                program, token = self.flying[0]
                if token.is_deleted():
                    self.find_lost()
                    continue
                try:
                    token.block_until_ready()
                except jax.errors.JaxRuntimeError as error:
                    if token.is_deleted():
                        # By another thread, meanwhile.
                        continue
                    self.flying.popleft()
                    raise _failed(program.name, error) from error
                self.flying.popleft()
            self.report()

    def report(self) -> None:
        """Raises Error for what callbacks have raised."""
        if (problem := raised()) is not None:
            raise problem


@jax.jit
def _copied(token: Array) -> Array:
    return token.copy()


CONTROLLER = Controller()
"""The controller of this process: XLA's threads are those of the process, so the limit is."""


class Issued(Generic[R]):
    """A function that JAX compiles: issued by the controller, or by JAX within its transformations and on one device."""

    def __init__(self, name: str, call: Callable[..., R], devices: int, **how: object) -> None:
        self.name, self.devices = name, devices
        self.jitted: Wrapped = jax.jit(call, **how)
        """The function without a token, of which JAX makes traces and `Lowered`s."""
        self.tokened = Tokened(name, call, donates=bool(how.get("donate_argnames")))
        self.tokened.compiled = jax.jit(self.tokened.function, **how)

    def __call__(self, *args: object, **kwargs: object) -> R:
        if self.devices > 1:
            check_outside(self.name)
        if self.devices == 1 or not trace_state_clean():
            return cast(R, self.jitted(*args, **kwargs))
        return CONTROLLER.run(self.tokened, *args, **kwargs)

    @property
    def signatures(self) -> int:
        """The number of kinds of arguments that it was called with."""
        return signatures(self.jitted) + signatures(cast(Wrapped, self.tokened.compiled))


@checked
def set_in_flight(most: int | None) -> None:
    """Lets at most so many programs over several devices run, or wait to run, in this process. None: the default, 16.

    A call that would be one too many waits for the older half. More of them hide longer pauses of the host, and hold more
    memory: each keeps its arguments and results. If results of a program were donated to a function of `jax.jit`, or deleted
    while it ran, a quarter as many of it run. XLA:CPU cannot run more than 16. Raises Error for fewer than 1, and for more on
    CPU.

        pt.set_in_flight(64)   -->   a loop of steps that nobody awaits runs up to 64 steps ahead
    """
    size = integer(most)
    if most is not None and (size is None or size < 1):
        raise refused("most", "a number of programs, 1 or more, or None", most)
    if size is not None and size > MOST_ON_CPU and jax.default_backend() == "cpu":
        title = f"XLA:CPU cannot run {size:,} programs over several devices at once"
        raise Error(title, helps=[f"take {MOST_ON_CPU} or fewer, or None for the default"])
    CONTROLLER.most = size


def _failed(name: str, error: Exception) -> Error:
    return Error(
        f"a call of `{name}` has failed on its devices",
        notes=[f"JAX says: {first_line(error)}"],
        helps=["its results cannot be used", "await the results of a call to see its error there"],
    )
