"""Models of one's own in NumPy."""

import math
import subprocess
import sys

import numpy as np
import pytest

import consilience as cs
from conftest import OneByOne

PRIORS = {"a": "normal(0, 1)", "b": "normal(0, 1)"}


METHODS = [
    {"se_target": 0.002},
    {"combine": "cmc-is", "local": "importance"},
    {"combine": "normal", "local": "importance"},
    {"combine": "normal", "local": "laplace"},
    {"combine": "normal", "local": "laplace-metropolis", "draws": 1000, "warmup": 300},
    {"combine": "normal", "local": "nuts+warp3", "draws": 500, "warmup": 300},
    {"combine": "normal", "local": "nuts+bridge", "draws": 500, "warmup": 300},
    {"combine": "normal", "local": "nuts+importance", "draws": 500, "warmup": 300},
]


@pytest.mark.filterwarnings("ignore::consilience.UnreliableWarning")
@pytest.mark.parametrize("evidence", METHODS, ids=lambda e: f"{e.get('combine', 'exact')} {e.get('local', '')}")
def test_beside_a_formula(study, frame, logistic, evidence):
    """The same model in NumPy has the same evidence, over shards that the library made, by every method."""
    values, gradient = logistic
    for functions in ((values,), (values, gradient)):
        own = cs.Model("own", PRIORS, *functions)
        ours = {"name": "ours", "formula": "late ~ x", "family": "logistic"}
        result = cs.compare({**study, "model": [ours, own], "evidence": evidence}, frame)
        first, second = result.models
        se = math.hypot(first["log_evidence"]["se"] or 0.0, second["log_evidence"]["se"] or 0.0)
        difference = first["log_evidence"]["value"] - second["log_evidence"]["value"]
        # Laplace's method has no error bar, and no error either but that of differences.
        assert abs(difference) < 4 * se + (1e-3 if evidence.get("local") == "laplace" else 1e-6)
        assert result.models[1]["family"] is None
        for p, q in zip(first["parameters"], second["parameters"]):
            assert abs(p["mean"] - q["mean"]) < 0.3 * p["sd"]


def test_the_likelihood_itself(study, frame, logistic):
    """Within 10⁻⁶ of the built-in one at the same points: the built-in model's draws, and others, by name in whatever has names."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    ours = {"name": "ours", "formula": "late ~ x", "family": "logistic"}
    own = cs.Model("own", PRIORS, *logistic)
    both = {**study, "model": [ours, own]}
    draws = cs.compare(both, frame, posterior=True).draws("ours")
    assert len(draws["x"]) >= 1000
    built_in = cs.log_likelihood(both, frame, draws, model="ours")
    found = cs.log_likelihood(both, frame, {"a": draws["(Intercept)"], "b": draws["x"]}, model="own")
    assert built_in.std() > 0.1 and np.abs(found - built_in).max() < 1e-6
    # And both are what they should be, in whatever order parameters come.
    rows = frame[["late", "x"]].dropna()
    points = np.random.default_rng(3).normal(size=(50, 2))
    eta = points[:, :1] + points[:, 1:] * rows["x"].to_numpy()
    exact = np.array([math.fsum(t) for t in rows["late"].to_numpy() * eta - np.logaddexp(0, eta)])
    only = {**study, "model": [ours]}
    by_name = {"x": points[:, 1], "(Intercept)": points[:, 0]}
    records = np.array(list(zip(points[:, 1], points[:, 0])), dtype=[("x", float), ("(Intercept)", float)])
    tables = [pd.DataFrame(by_name), pl.DataFrame(by_name), pa.table(by_name), records, pd.DataFrame(points)]
    for at in (points, by_name, *tables):
        assert np.abs(cs.log_likelihood(only, frame.drop(columns=["z", "group"]), at) - exact).max() < 1e-6
    halves = [{"late": half["late"].to_numpy(), "x": half["x"].to_numpy()} for half in (rows[:500], rows[500:])]
    alone = cs.log_likelihood([own], halves, points)
    assert np.abs(alone - exact).max() < 1e-6
    for wrong, message in [
        ({"x": [0.0]}, "of which the points say nothing"),
        ({"x": [0.0], "(Intercept)": [0.0], "y": [0.0]}, "no parameter `y`"),
        ({"x": [0.0], "(Intercept)": [0.0, 1.0]}, "different numbers of values"),
        (np.zeros((2, 3)), "has 3 numbers, and the model has 2"),
        (np.zeros(2), "an array of shape"),
        ([[np.nan, 0.0]], "not finite"),
        ({}, "there are no points"),
        (pd.DataFrame({"a": [0.0], "b": [0.0]}), "no parameter `a`"),
        (pl.DataFrame({"x": [0.0]}), "of which the points say nothing"),
        (pd.DataFrame([[0.0, 0.0]], columns=["x", "x"]), "two columns of the same name"),
        (pd.DataFrame([[0.0, 0.0]], columns=["x", 1]), "a column named 1"),
        (pl.LazyFrame(by_name), "LazyFrame, which has no rows yet"),
    ]:
        with pytest.raises(cs.InputError, match=message):
            cs.log_likelihood(only, frame, wrong)
    with pytest.raises(cs.InputError, match="several models; name one of `ours`, `own`"):
        cs.log_likelihood(both, frame, points)
    with pytest.raises(cs.InputError, match="there is no model `theirs`"):
        cs.log_likelihood(both, frame, points, model="theirs")


def test_derivatives_by_differences(shards, logistic):
    """What a shard answers where no derivatives are given."""
    piece = {k: np.asarray(v, float) for k, v in shards[0].items()}
    bound = cs.Model("own", PRIORS, logistic[0]).bind(piece)
    point = np.array([0.4, -0.7])
    value = np.frombuffer(bound.evaluate("expand", point.tobytes(), 1))
    x, y = piece["x"], piece["late"]
    p = 1 / (1 + np.exp(-(point[0] + point[1] * x)))
    slopes = np.array([(y - p).sum(), ((y - p) * x).sum()])
    bends = -np.array([[(p * (1 - p)).sum(), (p * (1 - p) * x).sum()], [(p * (1 - p) * x).sum(), (p * (1 - p) * x * x).sum()]])
    assert np.allclose(value[1:3], slopes, atol=1e-5) and np.allclose(value[3:].reshape(2, 2), bends, atol=1e-3)


def student_t(thetas, data):
    a, b, log_s = thetas[:, :1], thetas[:, 1:2], thetas[:, 2:]
    r = (data["y"] - a - b * data["x"]) / np.exp(log_s)
    constant = math.lgamma(2.5) - math.lgamma(2.0) - 0.5 * math.log(4 * math.pi)
    return (constant - log_s - 2.5 * np.log1p(r * r / 4)).sum(1)


def test_a_student_t_regression_against_quadrature():
    rng = np.random.default_rng(5)
    x = rng.uniform(-2, 2, 150)
    y = 1 + 0.5 * x + 0.8 * rng.standard_t(4, 150)
    pieces = [{"x": x[i::5], "y": y[i::5]} for i in range(5)]
    priors = {"a": "normal(0, 3)", "b": "normal(0, 2)", "log_s": "normal(0, 1)"}
    result = cs.compare([cs.Model("t", priors, student_t)], pieces, se_target=0.003, draws=40_000)
    # The trapezoidal rule is exact to many digits for a smooth function that vanishes at the sides of its box.
    centre = np.array([p["mean"] for p in result.models[0]["parameters"]])
    reach = np.array([9 * p["sd"] for p in result.models[0]["parameters"]])
    steps = 24
    grid = np.stack(np.meshgrid(*[np.arange(-steps, steps + 1)] * 3, indexing="ij"), -1).reshape(-1, 3)
    points = centre + reach * grid / steps
    logs = np.concatenate([student_t(part, {"x": x, "y": y}) for part in np.array_split(points, 50)])
    logs += sum(-0.5 * (points[:, j] / s) ** 2 - 0.5 * math.log(2 * math.pi) - math.log(s) for j, s in enumerate((3, 2, 1)))
    top = logs.max()
    truth = top + math.log(np.exp(logs - top).sum()) + np.log(reach / steps).sum()
    found, se = result.log_evidence["t"], result.se["t"]
    assert se < 0.006 and abs(found - truth) < 4 * se


def standard_normal(thetas):
    return (-0.5 * thetas**2 - 0.5 * math.log(2 * math.pi)).sum(1)


WIDE = {"a": "normal(0, 3)", "b": "student_t(5, 0, 2)"}


def test_a_joint_prior(study, frame, shards, logistic):
    """A joint prior that is the product of normal ones gives what these give."""
    complete = [{k: np.asarray(v, float) for k, v in s.items()} for s in shards]
    plain = cs.compare([cs.Model("m", PRIORS, logistic[0])], complete, se_target=0.002, draws=40_000)
    joint = cs.Model("m", WIDE, *logistic, log_prior=standard_normal)
    other = cs.compare([joint], complete, se_target=0.002, draws=40_000)
    assert abs(plain.log_evidence["m"] - other.log_evidence["m"]) < 4 * math.hypot(plain.se["m"], other.se["m"])
    # Beside a formula, whose shards may share the prior by rows, and on shards of different sizes.
    ours = {"name": "ours", "formula": "late ~ x", "family": "logistic"}
    for share, evidence in (("equal", {"se_target": 0.003}), ("rows", {"combine": "normal", "local": "importance"})):
        split = {"shards": 3, "sizes": "multinomial", "share": share}
        both = cs.compare({**study, "split": split, "model": [ours, joint], "evidence": evidence}, frame)
        assert abs(both.log_evidence["m"] - both.log_evidence["ours"]) < 4 * math.hypot(both.se["m"], both.se["ours"])
    with pytest.raises(cs.InputError, match="with an engine, `log_prior` goes with models of your own alone"):
        cs.compare({**study, "model": [ours, joint]}, frame, engine=OneByOne())
    # It is no part of the likelihood.
    points = np.random.default_rng(4).normal(size=(20, 2))
    values = sum(logistic[0](points, piece) for piece in complete)
    assert np.abs(cs.log_likelihood([joint], complete, points) - values).max() < 1e-6
    for more in ({"prior_scale": [0.5, 2]}, {"leave_one_out": True}):
        with pytest.raises(cs.InputError, match=f"joint log prior.*`{next(iter(more))}` does not work"):
            cs.compare([joint], complete, **more)
    # Arrays are what they hold.
    with pytest.raises(cs.InputError, match="`prior_scale` does not work"):
        cs.compare([joint], complete, prior_scale=np.array([0.5, 2.0]))
    cs.compare([joint], complete, prior_scale=np.array([]), leave_one_out=np.bool_(False))


def test_prior_scales_of_any_kind(study, frame):
    """Lists, arrays and single numbers."""
    import pandas as pd

    expected = cs.compare(study, frame, prior_scale=[0.5, 2.0])
    assert [scaled["scale"] for scaled in expected.json["prior_sensitivity"]] == [0.5, 1.0, 2.0]
    for scales in (np.array([0.5, 2.0]), (0.5, np.float32(2)), pd.Series([0.5, 2.0])):
        assert cs.compare(study, frame, prior_scale=scales) == expected
    assert cs.compare(study, frame, prior_scale=2) == cs.compare(study, frame, prior_scale=[2.0])
    for wrong in ("much", ["much"], None):
        with pytest.raises(cs.InputError, match="give a list of factors"):
            cs.compare(study, frame, prior_scale=wrong)


def test_gradients_are_used_whatever_the_prior(shards, logistic):
    """With a joint prior too: the likelihood is not asked for differences, and what comes out is what differences say."""
    piece = {k: np.asarray(v, float) for k, v in shards[0].items()}
    calls = {"values": 0, "gradient": 0}

    def values(thetas, data):
        calls["values"] += len(thetas)
        return logistic[0](thetas, data)

    def gradient(thetas, data):
        calls["gradient"] += len(thetas)
        return logistic[1](thetas, data)

    with_it = cs.Model("m", WIDE, values, gradient, log_prior=standard_normal).bind(piece, 3)
    without = cs.Model("m", WIDE, logistic[0], log_prior=standard_normal).bind(piece, 3)
    point = np.array([0.4, -0.7])
    one, other = (np.frombuffer(b.evaluate("gradient", point.tobytes(), 1)) for b in (with_it, without))
    assert calls == {"values": 1, "gradient": 1}
    assert np.allclose(one, other, atol=1e-5)
    one, other = (np.frombuffer(b.evaluate("expand", point.tobytes(), 1)) for b in (with_it, without))
    # Two steps along each of two axes, and the point.
    assert calls == {"values": 2, "gradient": 6}
    assert np.allclose(one, other, atol=1e-3)
    # What the prior adds, in closed form: a third of the difference between the two priors.
    plain = np.frombuffer(cs.Model("m", WIDE, *logistic).bind(piece, 3).evaluate("expand", point.tobytes(), 1))
    t = -6 * point[1] / (5 * 4 + point[1] ** 2)
    assert np.allclose(3 * (one - plain)[1:3], [-point[0] + point[0] / 9, -point[1] - t], atol=1e-6)


def test_data_of_many_kinds(frame, shards):
    """Shards are whatever the function takes."""
    import polars as pl
    import pyarrow as pa

    complete = frame.drop(columns="mixed").dropna().reset_index(drop=True)

    def of(x, y):
        return lambda thetas, data: -0.5 * ((y(data) - thetas[:, :1] - thetas[:, 1:] * x(data)) ** 2).sum(1)

    kinds = [
        ([complete.iloc[:500], complete.iloc[500:]], of(lambda d: d["x"].to_numpy(), lambda d: d["z"].to_numpy())),
        ([pl.from_pandas(complete)], of(lambda d: d["x"].to_numpy(), lambda d: d["z"].to_numpy())),
        ([pa.Table.from_pandas(complete)], of(lambda d: d["x"].to_numpy(), lambda d: d["z"].to_numpy())),
        ([(complete["x"].to_numpy(), complete["z"].to_numpy())], of(lambda d: d[0], lambda d: d[1])),
        (complete[["x", "z"]].to_numpy(), of(lambda d: d[:, 0], lambda d: d[:, 1])),
    ]
    found = [cs.compare([cs.Model("m", PRIORS, f)], data).log_evidence["m"] for data, f in kinds]
    assert np.ptp(found) < 0.05


def test_exceptions_come_through(study, frame, shards):
    def broken(thetas, data):
        raise LookupError("my own fault")

    with pytest.raises(LookupError, match="my own fault"):
        cs.compare([cs.Model("m", PRIORS, broken)], shards)
    calls = []

    def later(thetas, data):
        calls.append(1)
        if len(calls) > 12:
            raise LookupError("later")
        return -0.5 * (thetas**2).sum(1)

    with pytest.raises(LookupError, match="later"):
        cs.compare([cs.Model("m", PRIORS, later, check=False)], shards)
    with pytest.raises(cs.NumericError, match="the likelihood is NaN") as raised:
        cs.compare([cs.Model("m", PRIORS, lambda t, d: np.full(len(t), np.nan), check=False)], shards)
    assert isinstance(raised.value, ArithmeticError) and raised.value.model == "m"


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np, pandas as pd
import consilience as cs
rng = np.random.default_rng(1)
frame = pd.DataFrame({"y": rng.integers(0, 2, 60_000), "x": rng.normal(size=60_000), "z": rng.normal(size=60_000)})
study = {"split": {"shards": 2}, "model": [{"formula": "y ~ x + z", "family": "logistic"}],
         "evidence": {"local": "nuts+warp3", "combine": "normal", "draws": 1_000_000}}
if sys.argv[1] == "own":
    def slow(thetas, data):
        time.sleep(0.01)
        return -0.5 * (thetas ** 2).sum(1)
    study = {**study, "model": [cs.Model("slow", {"a": "normal(0, 1)"}, slow, check=False)]}
    del study["split"]
    frame = [1, 2]
sent = []
def press():
    time.sleep(2)
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=press).start()
try:
    cs.compare(study, frame)
except KeyboardInterrupt:
    print("took", time.monotonic() - sent[0])
    time.sleep(0.2)
    print("threads", threading.active_count())
"""


@pytest.mark.parametrize("what", ["formula", "own"])
def test_control_c(what):
    """NUTS ends when Ctrl-C comes, and leaves no thread behind."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, what], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("took"), done.stderr
    # It would have been many minutes, and the process is not let run so long. The goal is half a second.
    print(done.stdout)
    assert "threads 1" in done.stdout
