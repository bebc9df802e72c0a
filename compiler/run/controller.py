"""One controller for the process: all programs are issued under one lock, in one order, and few of them are in flight.

Programs over several devices meet in collectives. If two threads issue two of them in different orders on different devices,
both wait for ever; and XLA:CPU ends the process when more than 32 wait for one another. So each program also returns a token, a
scalar that nobody donates, and the controller awaits the oldest token before it issues one program too many.

    step 0 --> token 0,  step 1 --> token 1,  ...   before step 16 is issued, token 0 is awaited

What is called within a transformation of JAX, such as an outer `jax.jit`, is issued by JAX, and not counted.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from threading import RLock
from typing import Any, Generic, TypeVar, cast

from jax import Array
from jax.stages import Wrapped

from ...dialects.ground.errors import Error, first_line
from ...dialects.ground.validation import checked, integer, refused
from ..jax_private import InternalFloatingPointError, jax, jnp, signatures, trace_state_clean
from .callbacks import Noted, noting, raised

R = TypeVar("R")

MOST_ON_CPU = 16
"""XLA:CPU runs each program on a thread for each device. It ends the process when more than 32 programs wait for threads."""


class Tokened(Generic[R]):
    """A program that returns a token too. It is there when the program has run on all devices.

    Any result will do that nobody donates, and that holds little memory: `of` takes it out of the results.
    """

    def __init__(self, name: str, function: Callable[..., R], of: Callable[[R], Array] | None = None) -> None:
        self.name, self.noted, self.of = name, Noted(name), of

        @functools.wraps(function)
        def with_token(*args: object, **kwargs: object) -> R | tuple[R, Array]:
            with noting(self.noted):
                results = function(*args, **kwargs)
                return results if of is not None else (results, jnp.zeros((), bool))

        self.function = with_token
        """What JAX traces."""
        self.compiled: Callable[..., Any] = with_token
        """The compiled program, once it is set."""

    def call(self, *args: object, **kwargs: object) -> tuple[R, Array]:
        """Issues the program. Raises Error if JAX checks for NaNs, and it has made one."""
        try:
            found = self.compiled(*args, **kwargs)
        except InternalFloatingPointError as error:
            _, kind = error.args
            title = f"`{self.name}` has made {'a NaN' if kind == 'nan' else 'an infinity'}"
            raise Error(title, helps=["`jax_debug_nans` or `jax_debug_infs` is set, and asks for this error"]) from error
        return (found, self.of(found)) if self.of is not None else found


class Controller:
    """Issues programs, and awaits old ones."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.flying = deque[tuple[str, Array]]()
        """The names and the tokens of the programs that were issued and not awaited yet, oldest first."""
        self.most: int | None = None
        """How many programs may be in flight; None: as many as the platform takes."""

    def run(self, program: Tokened[R], *args: object, **kwargs: object) -> R:
        """Issues a program. Returns its results at once, or when it is done if they depend on a host callback.

        Raises Error if an earlier program has failed, with its name, and for what a callback has raised.
        """
        with self.lock:
            self.wait((MOST_ON_CPU if self.most is None else self.most) - 1)
            results, token = program.call(*args, **kwargs)
            self.flying.append((program.name, token))
            if program.noted.waits:
                self.wait()
            return results

    def wait(self, most: int = 0) -> None:
        """Awaits the oldest programs until at most so many are in flight. Raises Error if one has failed."""
        with self.lock:
            while len(self.flying) > most:
                name, token = self.flying[0]
                try:
                    token.block_until_ready()
                except jax.errors.JaxRuntimeError as error:
                    self.flying.popleft()
                    raise _failed(name, error) from error
                self.flying.popleft()
            if (problem := raised()) is not None:
                raise problem


CONTROLLER = Controller()
"""The controller of this process: XLA's threads are those of the process, so the limit is."""


class Issued(Generic[R]):
    """A function that JAX compiles: issued by the controller, or by JAX within its transformations and on one device."""

    def __init__(self, name: str, call: Callable[..., R], devices: int, **how: object) -> None:
        self.name, self.devices = name, devices
        self.jitted: Wrapped = jax.jit(call, **how)
        """The function without a token, of which JAX makes traces and `Lowered`s."""
        self.tokened = Tokened(name, call)
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

    A call that would be one too many waits for the oldest. More of them hide longer pauses of the host, and hold more memory:
    each keeps its arguments and results. XLA:CPU cannot run more than 16. Raises Error for fewer than 1, and for more on CPU.

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
