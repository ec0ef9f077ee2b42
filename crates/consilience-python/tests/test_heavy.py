"""Models of JAX, NumPyro and PyMC, and shards on Ray."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import consilience as cs

pytestmark = pytest.mark.heavy

PRIORS = {"a": "normal(0, 1)", "b": "normal(0, 1)"}


@pytest.fixture(scope="module")
def pieces(shards):
    return [{k: np.asarray(v, float) for k, v in s.items()} for s in shards]


def near(model, logistic, data):
    """Its log likelihood is within 10⁻⁶ of the built-in one at the same draws, those of the built-in model's posterior, and so
    is its gradient of NumPy's."""
    ours = {"prior": {"default": "normal(0, 1)"}, "model": [{"name": "ours", "formula": "late ~ x", "family": "logistic"}]}
    tables = [pd.DataFrame(piece) for piece in data]
    draws = cs.compare(ours, tables, posterior=True).draws("ours")
    assert len(draws["x"]) >= 1000
    points = np.stack([draws["(Intercept)"], draws["x"]], axis=1)
    found = cs.log_likelihood([model], data, points)
    assert np.abs(found - cs.log_likelihood(ours, tables, draws)).max() < 1e-6
    slopes = [np.asarray(f(points[:17], data[0])) for f in (model._functions[1], logistic[1])]
    assert np.abs(slopes[0] - slopes[1]).max() < 1e-6


def derivatives(model, piece, counted):
    """What a shard answers comes from the gradients of likelihood and prior, which are called (`counted` are objects and
    methods), and is what differences of values say."""
    calls = {}
    for name, owner, method in counted:
        def count(*arguments, name=name, inner=getattr(owner, method)):
            calls[name] = calls.get(name, 0) + 1
            return inner(*arguments)
        setattr(owner, method, count)
    bound = model.bind(piece, 3)
    theta = np.random.default_rng(5).normal(size=model.dim)

    def at(thetas):
        return np.frombuffer(bound.evaluate("values", np.ascontiguousarray(thetas).tobytes(), len(thetas)))

    steps = 1e-4 * np.eye(model.dim)
    differences = (at(theta + steps) - at(theta - steps)) / 2e-4
    gradient = np.frombuffer(bound.evaluate("gradient", theta.tobytes(), 1))
    expansion = np.frombuffer(bound.evaluate("expand", theta.tobytes(), 1))
    scale = 1 + np.abs(differences).max()
    assert gradient[0] == at(theta[None, :])[0]
    assert np.abs(gradient[1:] - differences).max() < 1e-5 * scale
    assert np.abs(expansion[1 : model.dim + 1] - differences).max() < 1e-5 * scale
    plain = cs.Model("plain", dict.fromkeys(model.parameters, "normal(0, 10)"), lambda t, d: at(t), check=False).bind(piece, 3)
    bends = [np.frombuffer(b.evaluate("expand", theta.tobytes(), 1))[model.dim + 1 :] for b in (bound, plain)]
    assert np.abs(bends[0] - bends[1]).max() < 1e-3 * (1 + np.abs(bends[1]).max())
    assert all(calls.get(name, 0) > 0 for name, *_ in counted), calls


def same_evidence(model, logistic, pieces):
    options = {"se_target": 0.003, "draws": 20_000}
    found = cs.compare([model], pieces, **options)
    plain = cs.compare([cs.Model(model.name, PRIORS, *logistic)], pieces, **options)
    name = model.name
    assert abs(found.log_evidence[name] - plain.log_evidence[name]) < 4 * math.hypot(found.se[name], plain.se[name]) + 1e-6


def beside(model, study, frame):
    """Beside a formula, on shards that the library made; and beside one with columns of which the model knows nothing."""
    ours = {"name": "ours", "formula": "late ~ x", "family": "logistic"}
    wider = {"name": "wider", "formula": "late ~ x + z + group", "family": "logistic"}
    for formulas in ([ours], [ours, wider]):
        result = cs.compare({**study, "model": [*formulas, model]}, frame)
        assert abs(result.log_evidence["ours"] - result.log_evidence[model.name]) < 0.05


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
    beside(model, study, frame)

    def centring(theta, data):
        return log_likelihood(theta, {**data, "x": data["x"] - data["x"].mean()})

    with pytest.raises(cs.InputError, match="no sum over rows"):
        cs.compare([cs.Model.jax("c", PRIORS, centring)], pieces)


def test_jax_in_single_precision(pieces):
    """A function that computes in JAX's own default, where a model's own NumPy function calls it."""
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    def values(centred):
        def one(theta, late, x):
            eta = theta[0] + theta[1] * (x - centred * x.mean())
            return jnp.sum(late * eta - jnp.logaddexp(0, eta))
        many = jax.vmap(one, in_axes=(0, None, None))
        return lambda thetas, data: many(*(jnp.asarray(a) for a in (thetas, data["late"], data["x"])))

    large = {k: np.resize(v, 1_000_000) for k, v in pieces[0].items()}
    assert values(0)(np.zeros((1, 2)), large).dtype == np.float32
    for data in (pieces[0], large):
        cs.Model("m", PRIORS, values(0)).check([data, data], 2)
        with pytest.raises(cs.InputError, match="no sum over rows"):
            cs.Model("m", PRIORS, values(1)).check([data, data], 2)


def test_jax_lets_data_go(monkeypatch):
    """What is on the device is there once for a shard that is asked, and for no longer."""
    jax = pytest.importorskip("jax")
    import gc

    import jax.numpy as jnp

    from consilience import _jax

    rng = np.random.default_rng(4)
    shards = [{"y": rng.normal(size=rows)} for rows in (403, 401)]
    model = cs.Model.jax("m", {"a": "normal(0, 1)"}, lambda theta, data: -0.5 * jnp.sum((data["y"] - theta[0]) ** 2))
    cs.compare([model], shards)
    bound = model.bind(shards[0], 2)
    put, inner = [], _jax._arrays
    monkeypatch.setattr(_jax, "_arrays", lambda data: put.append(data) or inner(data))
    for what in ("values", "gradient", "expand", "values"):
        bound.evaluate(what, np.zeros(1).tobytes(), 1)
    assert len(put) == 1
    assert [a.shape for a in jax.live_arrays() if a.shape == (403,)] == [(403,)]
    del bound
    put.clear()
    gc.collect()
    left = {a.shape for a in jax.live_arrays()} & {(403,), (401,), (202,), (201,), (200,), (50,), (35,), (15,)}
    assert left == set()


def test_numpyro(study, frame, pieces, logistic):
    numpyro = pytest.importorskip("numpyro")
    import numpyro.distributions as dist

    def model(x, late=None):
        a = numpyro.sample("a", dist.Normal(0, 1))
        b = numpyro.sample("b", dist.Normal(0, 1))
        numpyro.sample("late", dist.Bernoulli(logits=a + b * x), obs=late)

    own = cs.Model.numpyro("numpyro", model, pieces[0])
    near(own, logistic, pieces)
    same_evidence(own, logistic, pieces)
    beside(own, study, frame)
    near(cs.Model.numpyro("numpyro", model, pieces[0], priors=PRIORS), logistic, pieces)
    # A name that is mistaken leaves nothing observed.
    with pytest.raises(cs.InputError, match="a shard of the NumPyro model has no `late`"):
        cs.compare([own], [{"x": p["x"], "lates": p["late"]} for p in pieces])
    everything = cs.Model.numpyro("numpyro", lambda **columns: model(columns["x"], columns["late"]), pieces[0])
    beside(everything, study, frame)

    def shared(x, late=None):
        """Effects whose scale is in the prior alone."""
        scale = numpyro.sample("scale", dist.HalfNormal(1))
        b = numpyro.sample("b", dist.Normal(0, scale).expand([2]).to_event(1))
        numpyro.sample("late", dist.Bernoulli(logits=b[0] + b[1] * x), obs=late)

    for function in (model, shared):
        own = cs.Model.numpyro("numpyro", function, pieces[0])
        names = ("values", "_gradients", "_hessians")
        prior = [(f"prior {name}", own._log_prior, name) for name in names]
        likelihood = own._functions[0].__self__
        derivatives(own, pieces[0], [*prior, ("likelihood", likelihood, "_run")])
    ran = []
    inner = likelihood._run
    likelihood._run = lambda what, *rest: ran.append(what) or inner(what, *rest)
    own.bind(pieces[0], 3).evaluate("expand", np.zeros(own.dim).tobytes(), 1)
    assert sorted(ran) == ["gradients", "hessians", "values"]

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


def test_pymc(study, frame, pieces, logistic):
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
    beside(own, study, frame)
    near(cs.Model.pymc("pymc", model, priors=PRIORS), logistic, pieces)
    # A name that is mistaken would leave other shards' data in the model.
    with pytest.raises(cs.InputError, match="a shard of the PyMC model has no `late`"):
        cs.compare([own], [{"x": p["x"], "lates": p["late"]} for p in pieces])
    with pytest.raises(cs.InputError, match="names none of its pm.Data containers"):
        cs.compare([own], [{"xs": p["x"]} for p in pieces])
    # What no shard names is the same for all.
    with pm.Model() as constant:
        x = pm.Data("x", pieces[0]["x"])
        late = pm.Data("late", pieces[0]["late"])
        place = pm.Data("place", np.zeros(2))
        a = pm.Normal("a", place[0], 1)
        b = pm.Normal("b", place[1], 1)
        pm.Bernoulli("seen", logit_p=a + b * x, observed=late)
    beside(cs.Model.pymc("constant", constant), study, frame)

    with pm.Model() as shared:
        # Effects whose scale is in the prior alone.
        x = pm.Data("x", pieces[0]["x"])
        late = pm.Data("late", pieces[0]["late"])
        scale = pm.HalfNormal("scale", 1)
        b = pm.Normal("b", 0, scale, shape=2)
        pm.Bernoulli("seen", logit_p=b[0] + b[1] * x, observed=late)

    for other in (model, shared):
        own = cs.Model.pymc("pymc", other)
        compiled = own._functions[0].__self__
        derivatives(own, pieces[0], [("likelihood", compiled, "gradient"), ("prior", compiled, "prior_gradient")])
    # A function of the data that centres them.
    with pm.Model() as centred:
        x = pm.Data("x", pieces[0]["x"])
        a = pm.Normal("a", 0, 1)
        pm.Normal("y", a * (x - x.mean()), 1, observed=pm.Data("late", pieces[0]["late"]))
    with pytest.raises(cs.InputError, match="no sum over rows"):
        cs.compare([cs.Model.pymc("centred", centred)], pieces)


def test_potentials_are_refused(pieces):
    """PyMC leaves them out of what it computes of chosen variables, so that they would vanish."""
    pm = pytest.importorskip("pymc")

    for prior in (True, False):
        with pm.Model() as model:
            x = pm.Data("x", pieces[0]["x"])
            a = pm.Normal("a", 0, 1)
            pm.Normal("y", a * x, 1, observed=pm.Data("late", pieces[0]["late"]))
            pm.Potential("pull", -(a**2) if prior else -((a * x) ** 2).sum())
        with pytest.raises(cs.InputError, match="the potential `pull`.*observed=data"):
            cs.Model.pymc("pulled", model)


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
