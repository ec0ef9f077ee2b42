"""Models of JAX, NumPyro and PyMC, and shards on Ray."""

import json
import math

import numpy as np
import pytest

import consilience as cs

pytestmark = pytest.mark.heavy

PRIORS = {"a": "normal(0, 1)", "b": "normal(0, 1)"}


@pytest.fixture(scope="module")
def pieces(shards):
    return [{k: np.asarray(v, float) for k, v in s.items()} for s in shards]


def near(model, logistic, data, names=PRIORS):
    """Its log likelihood is within 10⁻⁶ of NumPy's at the same points, and so are its derivatives by differences."""
    plain = cs.Model("plain", PRIORS, *logistic)
    points = np.random.default_rng(3).normal(size=(17, 2))
    for piece in data:
        one, other = model.bind(piece, 3), plain.bind(piece, 3)
        values = [np.asarray(m._functions[0](points, piece)) for m in (model, plain)]
        assert np.abs(values[0] - values[1]).max() < 1e-6
        slopes = [np.asarray(m._functions[1](points, piece)) for m in (model, plain)]
        assert np.abs(slopes[0] - slopes[1]).max() < 1e-6
        del one, other


def same_evidence(model, logistic, pieces):
    options = {"se_target": 0.003, "draws": 20_000}
    found = cs.compare([model], pieces, **options)
    plain = cs.compare([cs.Model(model.name, PRIORS, *logistic)], pieces, **options)
    name = model.name
    assert abs(found.log_evidence[name] - plain.log_evidence[name]) < 4 * math.hypot(found.se[name], plain.se[name]) + 1e-6


def test_jax(study, frame, pieces, logistic):
    jnp = pytest.importorskip("jax.numpy")

    def log_likelihood(theta, data):
        eta = theta[0] + theta[1] * data["x"]
        return jnp.sum(data["late"] * eta - jnp.logaddexp(0, eta))

    model = cs.Model.jax("jax", PRIORS, log_likelihood)
    near(model, logistic, pieces)
    same_evidence(model, logistic, pieces)
    hessian = model._functions[2](np.zeros((1, 2)), pieces[0])[0]
    x = pieces[0]["x"]
    assert np.allclose(hessian, -0.25 * np.array([[len(x), x.sum()], [x.sum(), (x * x).sum()]]))
    # Beside a formula, on shards that the library made.
    ours = {"name": "ours", "formula": "late ~ x", "family": "logistic"}
    result = cs.compare({**study, "model": [ours, model]}, frame)
    assert abs(result.log_evidence["ours"] - result.log_evidence["jax"]) < 0.05

    def centring(theta, data):
        return log_likelihood(theta, {**data, "x": data["x"] - data["x"].mean()})

    with pytest.raises(cs.InputError, match="no sum over rows"):
        cs.compare([cs.Model.jax("c", PRIORS, centring)], pieces)


def test_numpyro(pieces, logistic):
    numpyro = pytest.importorskip("numpyro")
    import numpyro.distributions as dist

    def model(x, late=None):
        a = numpyro.sample("a", dist.Normal(0, 1))
        b = numpyro.sample("b", dist.Normal(0, 1))
        numpyro.sample("late", dist.Bernoulli(logits=a + b * x), obs=late)

    own = cs.Model.numpyro("numpyro", model, pieces[0])
    near(own, logistic, pieces)
    same_evidence(own, logistic, pieces)
    near(cs.Model.numpyro("numpyro", model, pieces[0], priors=PRIORS), logistic, pieces)

    # A scale that is positive: its logarithm is the parameter, and the prior is that of the model.
    def spread(x):
        s = numpyro.sample("s", dist.HalfNormal(2.0))
        numpyro.sample("x", dist.Normal(0, s), obs=x)

    data = [{"x": p["x"]} for p in pieces]
    found = cs.compare([cs.Model.numpyro("spread", spread, data[0])], data, se_target=0.003)
    x = np.concatenate([p["x"] for p in data])
    grid = np.linspace(0.5, 2, 20001)
    logs = (-0.5 * (x**2).sum() / grid**2 - len(x) * (np.log(grid) + 0.5 * math.log(2 * math.pi))
            - 0.5 * (grid / 2) ** 2 + math.log(2 / (2 * math.sqrt(2 * math.pi))))
    truth = logs.max() + math.log(np.exp(logs - logs.max()).sum() * (grid[1] - grid[0]))
    assert abs(found.log_evidence["spread"] - truth) < 4 * found.se["spread"] + 1e-4


def test_pymc(pieces, logistic):
    pm = pytest.importorskip("pymc")

    with pm.Model() as model:
        x = pm.Data("x", pieces[0]["x"])
        late = pm.Data("late", pieces[0]["late"])
        a = pm.Normal("a", 0, 1)
        b = pm.Normal("b", 0, 1)
        pm.Bernoulli("seen", logit_p=a + b * x, observed=late)

    own = cs.Model.pymc("pymc", model)
    assert own.parameters == ["a", "b"]
    near(own, logistic, pieces)
    same_evidence(own, logistic, pieces)


def test_ray(study, frame, shards, logistic):
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        engine = cs.ray.Engine(num_cpus=0.25)
        for evidence in ({}, {"local": "nuts+warp3", "combine": "normal", "draws": 400, "warmup": 200}):
            own = {**study, "evidence": evidence}
            expected = cs.compare(own, frame, kernel="portable")
            found = cs.compare(own, frame, engine=engine)
            assert json.dumps(found.json["models"]) == json.dumps(expected.json["models"])
    finally:
        ray.shutdown()
