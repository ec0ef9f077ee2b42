"""What the tests share: data, a study, and the program to compare with."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
# `pytest -m heavy` is the second group; each of its libraries takes long to come and to start.
LIBRARIES = ("jax", "numpyro", "pymc", "ray")


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def frame():
    """Rows of every kind: numbers of both widths, text, logicals, some missing; a column that no table can export; an index
    that is no column."""
    import pandas as pd

    rng = np.random.default_rng(7)
    n = 1200
    x, z = rng.normal(size=n), rng.normal(size=n).astype("float32")
    group = rng.choice(["b", "a", "c"], n)
    late = rng.random(n) < 1 / (1 + np.exp(-(0.2 + 0.6 * x)))
    frame = pd.DataFrame(
        {
            "late": late.astype(int),
            "x": np.where(np.arange(n) % 101 == 0, np.nan, x),
            "z": z,
            "group": group,
            "count": rng.poisson(np.exp(0.3 + 0.2 * x)),
            "mixed": [object() if i % 2 else 1 for i in range(n)],
        },
        index=pd.Index(np.arange(n)[::-1] * 10, name="x_index"),
    )
    return frame


@pytest.fixture(scope="session")
def study():
    return {
        "split": {"shards": 4},
        "prior": {"default": "normal(0, 1)"},
        "model": [
            {"name": "with groups", "formula": "late ~ x + z + group", "family": "logistic"},
            {"name": "without", "formula": "late ~ x", "family": "logistic"},
        ],
    }


@pytest.fixture(scope="session")
def parquet(frame, tmp_path_factory):
    """The columns that can be written, in a file."""
    path = tmp_path_factory.mktemp("data") / "data.parquet"
    frame.drop(columns="mixed").to_parquet(path, index=False)
    return path


@pytest.fixture(scope="session")
def run_program():
    """What the program prints."""
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    path = Path(os.environ.get("CONSILIENCE") or target / "release/consilience")
    if not path.exists():
        if os.environ.get("CI") == "true":
            pytest.fail(f"there is no program at {path}")
        pytest.skip(f"there is no program at {path}: build it, or name it by CONSILIENCE")

    def run(*arguments):
        done = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True, timeout=600)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def program(run_program):
    """The program's document, which the tests hold the package against."""
    return lambda *arguments: json.loads(run_program(*arguments))


@pytest.fixture(scope="session")
def study_file(parquet, tmp_path_factory):
    """Writes a study on the file as the program reads it."""
    def write(study, evidence=()):
        lines = ["[data]", f'path = "{parquet}"', "[split]", "shards = 4", "[prior]", 'default = "normal(0, 1)"', "[evidence]"]
        lines += [f"{k} = {json.dumps(v)}" for k, v in dict(evidence).items()]
        for model in study["model"]:
            lines += ["[[model]]"] + [f"{k} = {json.dumps(v)}" for k, v in model.items()]
        file = tmp_path_factory.mktemp("study") / "study.toml"
        file.write_text("\n".join(lines))
        return file

    return write


@pytest.fixture(scope="session")
def logistic():
    """A logistic regression in NumPy: log likelihood, gradient, Hessian."""

    def values(thetas, data):
        eta = thetas[:, :1] + thetas[:, 1:] * data["x"]
        return (data["late"] * eta - np.logaddexp(0, eta)).sum(1)

    def gradient(thetas, data):
        eta = thetas[:, :1] + thetas[:, 1:] * data["x"]
        rest = data["late"] - 1 / (1 + np.exp(-eta))
        return np.stack([rest.sum(1), (rest * data["x"]).sum(1)], axis=1)

    return values, gradient


@pytest.fixture(scope="session")
def shards(frame):
    """Complete rows in three pieces, as dicts of arrays."""
    complete = frame.drop(columns="mixed").dropna()
    return [{c: complete[c].to_numpy()[i::3] for c in ("late", "x")} for i in range(3)]


class OneByOne:
    """An engine that asks one shard after the other."""

    def place(self, shards):
        self.shards = shards

    def ask(self, question, stopped):
        for shard in self.shards:
            yield shard.index, shard.answer(question)
