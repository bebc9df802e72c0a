"""A saved program behind HTTP, by Ray Serve: rows of several requests share a call, which is padded to the program's batch.

    serve run examples.serve:build path=mlp.partita-program replicas=2

Dim 0 of its arguments and results must be the batch, and no row may depend on another one. See docs/serving.md.
"""

import asyncio
from operator import itemgetter
from pathlib import Path
from typing import Any

import jax
import numpy as np
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
from ray import serve

import partita as pt

api = FastAPI()


class Arguments(BaseModel):
    """What `serve run` and a config file of Ray Serve say."""

    path: str
    replicas: int = 1


KINDS = {"b": "b", "i": "iu", "u": "iu"}
"""The kinds of numbers from which an argument is made, by its own kind. Floats are made from all but bools."""


def rows_of(request: dict[str, Any], takes: dict[str, jax.ShapeDtypeStruct]) -> list[dict[str, np.ndarray]]:
    """The rows of a request. Raises HTTPException for arguments that the program does not take."""
    if request.keys() != takes.keys():
        raise HTTPException(422, f"the program takes {', '.join(takes)}, got {', '.join(request) or 'nothing'}")
    arrays = [array_of(name, request[name], like) for name, like in takes.items()]
    if len({*map(len, arrays)}) > 1:
        counts = ", ".join(f"{len(array)} of {name}" for name, array in zip(takes, arrays, strict=True))
        raise HTTPException(422, f"all arguments must have as many rows, got {counts}")
    return [dict(zip(takes, row, strict=True)) for row in zip(*arrays, strict=True)]


def array_of(name: str, rows: Any, like: jax.ShapeDtypeStruct) -> np.ndarray:
    """An argument of a request, as rows of an array like `like`. Raises HTTPException for anything else."""
    got = "values that are not numbers"
    try:
        found = np.array(rows)
        if found.dtype.kind in "biuf":
            got = f"{found.dtype}{list(found.shape)}"
            fits = found.ndim == len(like.shape) and found.shape[1:] == like.shape[1:] and len(found) > 0
            if fits and found.dtype.kind in KINDS.get(like.dtype.kind, "iuf"):
                return np.array(rows, like.dtype)
    except ValueError:
        got = "lists of different lengths"
    except OverflowError as error:
        got = str(error)
    wanted = ", ".join(["rows", *map(str, like.shape[1:])])
    raise HTTPException(422, f"`{name}` must be {like.dtype}[{wanted}], got {got}")


# Last in the file: `serve.ingress` pickles the routes at once, with the functions above that they call.
@serve.deployment(max_ongoing_requests=1000)
@serve.ingress(api)
class Program:
    """A replica: a process with the program on its devices."""

    def __init__(self, path: str) -> None:
        self.program = pt.load_compiled(path)
        self.takes = self.program.shapes()
        self.zeros = {name: np.zeros(like.shape, like.dtype) for name, like in self.takes.items()}
        batches = {each.shape[:1] for each in jax.tree.leaves((self.zeros, self.run(self.zeros)))}
        if len(batches) > 1 or batches == {()}:
            raise ValueError(f"dim 0 of all arguments and results must be the batch, got {self.program.layout()}")
        ((batch,),) = batches
        self.call.set_max_batch_size(batch)

    def run(self, batch: dict[str, np.ndarray]) -> Any:
        return jax.device_get(self.program(**batch))

    @serve.batch(batch_wait_timeout_s=0.005)
    async def call(self, rows: list[dict[str, np.ndarray]]) -> list[Any]:
        """Runs the program on rows of several requests, which are repeated until the batch is full."""
        batch = {name: np.resize([row[name] for row in rows], like.shape) for name, like in self.takes.items()}
        results = await asyncio.to_thread(self.run, batch)
        return [jax.tree.map(itemgetter(at), results) for at in range(len(rows))]

    @api.post("/")
    async def answer(self, request: dict[str, Any]) -> Any:
        results = await asyncio.gather(*map(self.call, rows_of(request, self.takes)))
        return jax.tree.map(lambda *rows: np.array(rows).tolist(), *results)

    async def check_health(self) -> None:
        """Runs the program. Ray Serve asks every ten seconds, and starts another replica if this raises or does not return."""
        await asyncio.to_thread(self.run, self.zeros)


def build(arguments: Arguments) -> serve.Application:
    """The application, for `serve run` and config files."""
    return Program.options(num_replicas=arguments.replicas).bind(str(Path(arguments.path).resolve()))
