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
from collections.abc import Callable
from contextlib import suppress
from threading import RLock
from typing import Any, Generic, NamedTuple, TypeVar, cast

from jax import Array
from jax.core import ShapedArray
from jax.stages import Wrapped

from ...dialects.ground.errors import Error, first_line
from ...dialects.ground.validation import checked, integer, refused
from ..jax_private import InternalFloatingPointError, jax, jnp, signatures, trace_state_clean, tree
from ..ops.prng_keys import is_key
from .callbacks import Noted, noting, raised

R = TypeVar("R")

MOST_ON_CPU = 16
"""XLA:CPU runs each program on a thread for each device. It ends the process when more than 32 programs wait for threads."""


SMALL = 1 << 16
"""The most bytes of a result that is kept as the token of a program."""


@tree.register_pytree_node_class
class Ran(NamedTuple):
    """What a program returns: its results, the scalar that is its token, and which result is if there is no scalar."""

    results: object
    scalar: Array | None
    small: int | None

    def tree_flatten(self) -> tuple[tuple[object, Array | None], int | None]:
        """The arrays, and what JAX keeps with the program."""
        return self[:2], self.small

    @classmethod
    def tree_unflatten(cls, small: int | None, arrays: tuple[object, Array | None]) -> Ran:
        """The inverse."""
        return cls(*arrays, small)

    @classmethod
    def of(cls, results: object, may_be_small: bool) -> Ran:
        """Chooses the token while JAX traces the program."""
        types = [cast(ShapedArray, jax.typeof(leaf)) for leaf in tree.tree_leaves(results)]
        sizes = {number: each.size * each.dtype.itemsize for number, each in enumerate(types) if each.size and not is_key(each)}
        small = min(sizes, key=sizes.__getitem__, default=None)
        if not may_be_small or small is None or sizes[small] > SMALL:
            return cls(results, jnp.zeros((), bool), None)
        return cls(results, None, small)


class Tokened(Generic[R]):
    """A program that has a token. With `donates`, it overwrites arguments: its next call, perhaps, a result of this one."""

    def __init__(self, name: str, function: Callable[..., R], donates: bool = False) -> None:
        self.name, self.noted, self.donates = name, Noted(name), donates
        self.copies = False
        """Whether its token is a copy, because somebody else has donated one."""

        @functools.wraps(function)
        def with_token(*args: object, **kwargs: object) -> Ran:
            with noting(self.noted):
                return Ran.of(function(*args, **kwargs), may_be_small=not donates)

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
        token = tree.tree_leaves(ran.results)[ran.small] if ran.scalar is None else ran.scalar
        return cast(R, ran.results), _copied(token) if self.copies else token


class Controller:
    """Issues programs, and awaits old ones."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.flying = deque[tuple[Tokened[Any], Array]]()
        """The programs that were issued and not awaited yet, each with its token, oldest first."""
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
            results, token = program.call(*args, **kwargs)
            if program.donates:
                # What has overwritten a token is there only after what has made it.
                self.flying = deque((each, token if own.is_deleted() else own) for each, own in self.flying)
            self.flying.append((program, token))
            if program.noted.waits:
                self.wait()
            return results

    def find_lost(self) -> None:
        """Finds tokens that were donated to programs which are not issued here.

        Nothing says when those end, so all arrays are awaited, and copies are the tokens of these programs from then on.
        """
        for program, token in self.flying:
            program.copies |= token.is_deleted()
        for array in jax.live_arrays():
            # An error is that of the call which made the array, and another thread may delete it.
            with suppress(RuntimeError):
                array.block_until_ready()
        self.flying = deque(each for each in self.flying if not each[1].is_deleted())

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

_DONATED = "donate_argnames", "donate_argnums"


class Issued(Generic[R]):
    """A function that JAX compiles: issued by the controller, or by JAX within its transformations and on one device."""

    def __init__(self, name: str, call: Callable[..., R], devices: int, **how: object) -> None:
        self.name, self.devices = name, devices
        self.jitted: Wrapped = jax.jit(call, **how)
        """The function without a token, of which JAX makes traces and `Lowered`s."""
        self.tokened = Tokened(name, call, any(map(how.get, _DONATED)))
        self.tokened.compiled = jax.jit(self.tokened.function, **how)

    def __call__(self, *args: object, **kwargs: object) -> R:
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
    memory: each keeps its arguments and results. XLA:CPU cannot run more than 16. Raises Error for fewer than 1, and for more
    on CPU.

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
