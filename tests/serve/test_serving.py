"""A saved program behind Ray Serve: every request has its own rows of the result, or an error that says what is taken.

`make extras` installs Ray and runs this file; without Ray it is left out.
"""

# JAX annotates its functions only in part, and Ray is in no virtual environment that pyright reads.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportMissingImports=false, reportUnknownLambdaType=false, reportMissingModuleSource=false

import json
import os
import socket
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import requests

import partita as pt

with warnings.catch_warnings(action="ignore"):
    # Ray declares its settings in a way that Pydantic deprecates.
    import ray
    from ray import serve
    from ray.util import list_named_actors

    from partita.examples.serve import Arguments, build

# Ray forks only to run another program, which has nothing of JAX.
pytestmark = pytest.mark.filterwarnings(r"ignore:os\.fork\(\) was called:RuntimeWarning")

BATCH, CLIENTS, REQUESTS = 16, 16, 1000
RANDOM = np.random.default_rng(0)
W1, W2 = (RANDOM.standard_normal(shape, np.float32) / 4 for shape in ((8, 32), (32, 4)))
TABLE = RANDOM.standard_normal((50, 3), np.float32)
MESH = pt.Mesh(data=4, model=2)


def model(x: Any) -> Any:
    hidden = jnp.tanh(x @ W1)
    return {"logits": hidden @ W2, "norm": (x * x).sum(1)}


def lookup(tokens: Any, keep: Any, scale: Any) -> Any:
    """Arguments of other dtypes, and a result that is one array."""
    found = jnp.asarray(TABLE)[tokens].sum(1) * keep[:, None]
    return (found * scale.astype(jnp.float32)[:, None]).astype(jnp.bfloat16)


def wanted(x: np.ndarray) -> dict[str, np.ndarray]:
    """What the model is, by NumPy."""
    return {"logits": np.tanh(x @ W1) @ W2, "norm": (x * x).sum(1)}


def rows(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, 8), np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The saved programs."""
    folder = tmp_path_factory.mktemp("saved")
    x = jnp.zeros((BATCH, 8))
    plan = pt.plan(model, MESH, x).tile("x", 0, "data").tile("const/0", 1, "model")
    plan.compile(donate="x").save(folder / "model")
    args = jnp.zeros((4, 6), "uint8"), jnp.zeros(4, bool), jnp.zeros(4, "bfloat16")
    pt.plan(lookup, pt.Mesh(data=2), *args).tile("tokens", 0, "data").lower().save(folder / "lookup")
    pt.plan(lambda x: x.sum(), pt.Mesh(), x).lower().save(folder / "sum")
    pt.plan(lambda x: x + 1, pt.Mesh(data=16), x).tile("x", 0, "data").lower().save(folder / "large")
    return folder


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A small cluster on this machine, which sends nothing anywhere."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # A replica that cannot start is started again once, not twice.
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_SERVE_MAX_PER_REPLICA_RETRY_COUNT": "2"}
    ray.init(num_cpus=4, include_dashboard=False, object_store_memory=80 << 20, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    yield f"http://127.0.0.1:{port}"
    serve.shutdown()
    ray.shutdown()


@pytest.fixture(scope="module")
def url(address: str, folder: Path) -> str:
    """Where two replicas of the model answer."""
    serve.run(build(Arguments(path=str(folder / "model"), replicas=2)))
    return f"{address}/"


@pytest.fixture(scope="module")
def lookup_url(address: str, folder: Path) -> str:
    serve.run(build(Arguments(path=str(folder / "lookup"))), name="lookup", route_prefix="/lookup")
    return f"{address}/lookup"


def assert_right(response: requests.Response, x: np.ndarray) -> None:
    assert response.status_code == 200, response.text
    found = response.json()
    for name, each in wanted(x).items():
        np.testing.assert_allclose(np.array(found[name]), each, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("count", [1, 2, BATCH - 1, BATCH, BATCH + 1, 5 * BATCH + 3])
def test_a_request_has_any_number_of_rows(url: str, count: int) -> None:
    x = rows(count)
    assert_right(requests.post(url, json={"x": x.tolist()}), x)


def test_a_thousand_requests_of_sixteen_clients_have_each_their_own_rows(url: str) -> None:
    """Each tenth request is wrong, and those that share its batch are right."""

    def client(number: int) -> int:
        wrong = 0
        with requests.Session() as session:
            for at in range(number, REQUESTS, CLIENTS):
                x = rows(1 + at % 7 * (at % 5), seed=at)
                if at % 10 == 9:
                    response = session.post(url, json={"x": [*x.tolist(), [1.0] * 7]})
                    assert response.status_code == 422, response.text
                    wrong += 1
                else:
                    assert_right(session.post(url, json={"x": x.tolist()}), x)
        return wrong

    with ThreadPoolExecutor(CLIENTS) as pool:
        assert sum(pool.map(client, range(CLIENTS))) == REQUESTS // 10
    (deployment,) = serve.status().applications["default"].deployments.values()
    assert deployment.replica_states == {"RUNNING": 2}


GOOD = rows(2).tolist()
WRONG: dict[str, tuple[str, str]] = {
    "a missing argument": ("{}", "the program takes x, got nothing"),
    "another name": (json.dumps({"y": GOOD}), "the program takes x, got y"),
    "an argument more": (json.dumps({"x": GOOD, "y": 1}), "the program takes x, got x, y"),
    "rows that are too short": ('{"x": [[1, 2, 3]]}', "`x` must be float32[rows, 8], got int64[1, 3]"),
    "one row only": (json.dumps({"x": GOOD[0]}), "`x` must be float32[rows, 8], got float64[8]"),
    "no rows": ('{"x": []}', "got float64[0]"),
    "a number": ('{"x": 3}', "got int64[]"),
    "rows of different lengths": ('{"x": [[1, 2], [3]]}', "got lists of different lengths"),
    "texts": (json.dumps({"x": [["1"] * 8]}), "got values that are not numbers"),
    "nulls": (json.dumps({"x": [[None] * 8]}), "got values that are not numbers"),
    "an object": ('{"x": {"a": 1}}', "got values that are not numbers"),
    "bools": (json.dumps({"x": [[True] * 8]}), "got bool[1, 8]"),
    "no object": ("[1, 2]", "valid dictionary"),
    "no JSON": ('{"x": [[1,', "JSON decode error"),
    "nothing": ("", "Field required"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_request_is_told_what_the_program_takes(url: str, what: str) -> None:
    body, says = WRONG[what]
    response = requests.post(url, data=body, headers={"content-type": "application/json"})
    assert response.status_code == 422
    assert says in response.json()["detail"] if says.startswith(("the", "got", "`")) else says in response.text


TOKENS = [[1, 2, 3, 4, 5, 49]] * 5
WRONG_LOOKUPS: dict[str, tuple[dict[str, Any], str]] = {
    "floats for integers": ({"tokens": [[0.5] * 6]}, "`tokens` must be uint8[rows, 6], got float64[1, 6]"),
    "a number that is too large": ({"tokens": [[300] * 6]}, "Python integer 300 out of bounds for uint8"),
    "a number that is too small": ({"tokens": [[-1] * 6]}, "Python integer -1 out of bounds for uint8"),
    "integers for bools": ({"keep": [0, 1, 1, 1, 1]}, "`keep` must be bool[rows], got int64[5]"),
    "fewer rows": ({"scale": [1.0]}, "all arguments must have as many rows, got 5 of tokens, 5 of keep, 1 of scale"),
}


def test_arguments_are_of_any_dtype(lookup_url: str) -> None:
    keep, scale = [True, False, True, True, False], [1, 2.5, 0.5, 3, 4]
    response = requests.post(lookup_url, json={"tokens": TOKENS, "keep": keep, "scale": scale})
    assert response.status_code == 200, response.text
    expected = TABLE[np.array(TOKENS)].sum(1) * (np.array(keep) * np.array(scale))[:, None]
    np.testing.assert_allclose(np.array(response.json()), expected, rtol=0.01, atol=0.01)


@pytest.mark.parametrize("what", WRONG_LOOKUPS)
def test_numbers_that_do_not_fit_are_refused(lookup_url: str, what: str) -> None:
    changed, says = WRONG_LOOKUPS[what]
    right = {"tokens": TOKENS, "keep": [True] * 5, "scale": [1.0] * 5}
    response = requests.post(lookup_url, json=right | changed)
    assert response.status_code == 422
    assert says in response.json()["detail"]


def test_what_is_no_finite_number_is_null(url: str) -> None:
    x = rows(3)
    x[1, 2] = np.nan
    response = requests.post(url, data=json.dumps({"x": x.tolist()}), headers={"content-type": "application/json"})
    assert response.json()["norm"][1] is None
    np.testing.assert_allclose(response.json()["norm"][2], (x * x).sum(1)[2], rtol=1e-4)


def test_health_is_asked_over_http_and_of_each_replica(url: str, address: str) -> None:
    assert requests.get(f"{address}/-/healthz").text == "success"
    serve.get_app_handle("default").check_health.remote().result()


def replicas() -> set[str]:
    """The names of the actors that are replicas of the model."""
    names = [each["name"] for each in list_named_actors(all_namespaces=True)]
    return {name for name in names if "default#Program#" in name}


def test_a_replica_that_ends_is_replaced_and_the_other_one_answers_meanwhile(url: str) -> None:
    before, x = replicas(), rows(3)
    ray.kill(ray.get_actor(min(before), namespace="serve"))
    for _ in range(5000):
        assert_right(requests.post(url, json={"x": x.tolist()}), x)
        (deployment,) = serve.status().applications["default"].deployments.values()
        if deployment.replica_states == {"RUNNING": 2} and len(replicas() & before) == 1 and len(replicas()) == 2:
            return
    raise AssertionError(f"no replica in place of {min(before)}")


def test_metrics_count_the_batches_of_each_replica(url: str) -> None:
    port = ray.nodes()[0]["MetricsExportPort"]
    asked = (requests.post(url, json={"x": rows(40).tolist()}) for _ in range(1000))
    for _ in asked:
        lines = requests.get(f"http://127.0.0.1:{port}/metrics").text.splitlines()
        found = [line for line in lines if line.startswith("ray_serve_batch_utilization_percent_count")]
        if len([line for line in found if 'application="default"' in line]) == 2:
            return
    raise AssertionError("no metrics")


FAILS: dict[str, tuple[str, str]] = {
    "too few devices": ("large", "the mesh data=16 needs 16 devices, but there are 8"),
    "a result without a batch": ("sum", "dim 0 of all arguments and results must be the batch, got {'x': 'f32[16, 8]',"),
    "no file": ("none", "give the name of a file that `save` wrote"),
}


@pytest.mark.parametrize("what", FAILS)
def test_what_cannot_be_served_is_an_error_at_the_start(address: str, folder: Path, what: str) -> None:
    name, says = FAILS[what]
    application = build(Arguments(path=str(folder / name)))
    with pytest.raises(RuntimeError, match="failed"):
        serve.run(application, name=name, route_prefix=f"/{name}")
    (deployment,) = serve.status().applications[name].deployments.values()
    assert says in deployment.message
    serve.delete(name)
