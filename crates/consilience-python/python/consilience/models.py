"""Models of your own: a log likelihood that Python computes, on one shard's rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ._errors import InputError

# Steps of differences: the cube and the fourth root of the rounding error balance it against what is left out.
_STEP, _STEP2 = 6e-6, 1.2e-4


class Model:
    """A model whose likelihood is yours.

    `priors` names the parameters in their order, each with its prior as a study writes it: ``{"a": "normal(0, 2)"}``. Scales
    are unconstrained: a standard deviation is a parameter by its logarithm. What is ``fixed(…)`` is no coordinate of θ.

    `log_likelihood(thetas, data)` takes K points as an array [K, d] and one shard's data, and returns K values, every constant
    included, without the prior. `gradient(thetas, data)` returns [K, d] and `hessian(thetas, data)` [K, d, d]; what is not given
    is made of differences. `data` is an element of the list of shards as you gave it, or, beside formula models, the shard's
    rows as a dict of arrays: of the columns that the formulas name.

    `log_prior(thetas)`, where there is one, is the joint log prior, normalised; `priors` then only say where to look.

    Shards see their own rows alone, so that the log likelihood must be a sum over rows. That is tested on random halves of the
    first shard, and refused if it is not; `check=False` leaves the test out.
    """

    def __init__(
        self,
        name: str,
        priors: Mapping[str, str],
        log_likelihood: Callable[[np.ndarray, Any], Any],
        gradient: Callable[[np.ndarray, Any], Any] | None = None,
        hessian: Callable[[np.ndarray, Any], Any] | None = None,
        *,
        log_prior: Callable[[np.ndarray], Any] | None = None,
        check: bool = True,
    ) -> None:
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"a model's name is {name!r}; give it one")
        if not isinstance(priors, Mapping) or not priors:
            raise InputError(f"model `{name}`: `priors` must be a dict of parameters and priors, such as "
                             '{"a": "normal(0, 2)"}')
        for parameter, prior in priors.items():
            if not isinstance(parameter, str) or not isinstance(prior, str):
                raise InputError(f"model `{name}`: the prior of {parameter!r} is {prior!r}; give text such as "
                                 '"normal(0, 2)"')
        for what, function in (("log_likelihood", log_likelihood), ("gradient", gradient), ("hessian", hessian),
                               ("log_prior", log_prior)):
            if not (callable(function) or (function is None and what != "log_likelihood")):
                raise InputError(f"model `{name}`: `{what}` is no function but {function!r}")
        self.name = name
        self.priors = dict(priors)
        self.parameters = [p for p, prior in self.priors.items() if not prior.strip().startswith("fixed")]
        self._functions = (log_likelihood, gradient, hessian)
        self._log_prior = log_prior
        self._check = check

    @property
    def dim(self) -> int:
        """The number of parameters that are not held fixed."""
        return len(self.parameters)

    def __repr__(self) -> str:
        return f"<consilience.Model {self.name!r} of {', '.join(self.parameters)}>"

    # What the engines and the compiled part call.

    def parts(self, pieces: list[Any] | None) -> tuple[str, list[tuple[str, str]], Callable[[int, Any], Any]]:
        """Its name, parameters and priors, and what makes its likelihood of a shard."""
        def bind(index: int, columns: Any) -> Any:
            data = rows_of(columns) if pieces is None else pieces[index]
            if index == 0 and pieces is None:
                self.check([data])
            return self.bind(data, None if pieces is None else len(pieces))
        return self.name, list(self.priors.items()), bind

    def bind(self, data: Any, shards: int | None = None) -> Any:
        """Its likelihood on these data, of so many shards."""
        if self._log_prior is not None and shards is None:
            raise InputError(f"model `{self.name}`: `log_prior` goes with models of your own alone; beside formula models give "
                             "priors per parameter")
        return _Bound(self, data, 1.0 / (shards or 1))

    def check(self, pieces: list[Any]) -> None:
        """Refuses a likelihood that is no sum over rows, or does not return what it should."""
        data = pieces[0]
        rng = np.random.default_rng(20)
        points = 0.3 * rng.standard_normal((3, self.dim))
        whole = _values(self, self._functions[0], points, data)
        if not self._check:
            return
        halves = _halves(data, rng)
        if halves is None:
            return
        one, other = (_values(self, self._functions[0], points, half) for half in halves)
        for all_rows, a, b in zip(whole, one, other):
            if not np.isfinite([all_rows, a, b]).all():
                continue
            if abs(all_rows - a - b) > 1e-6 * (1.0 + abs(a) + abs(b)):
                raise InputError(
                    f"model `{self.name}`: its log likelihood is no sum over rows: on two halves of a shard it is {a:.6g} and "
                    f"{b:.6g}, and on all of it {all_rows:.6g}, not {a + b:.6g}. Shards see their own rows alone, so that it would "
                    "be another model on every split. Does it centre, scale or rank the data inside? Do that before"
                )

    # Models of other libraries.

    @classmethod
    def jax(cls, name: str, priors: Mapping[str, str], log_likelihood: Callable[[Any, Any], Any], *,
            log_prior: Callable[[Any], Any] | None = None, check: bool = True) -> Model:
        """Of a JAX function of one point: `log_likelihood(theta[d], data)` returns a number. It is compiled, and gradient and
        Hessian are taken of it."""
        from ._jax import JaxFunctions
        functions = JaxFunctions(log_likelihood)
        prior = None if log_prior is None else JaxFunctions(lambda theta, _: log_prior(theta)).values
        own = cls(name, priors, functions.values, functions.gradients, functions.hessians,
                  log_prior=None if prior is None else (lambda thetas: prior(thetas, None)), check=check)
        return own

    @classmethod
    def numpyro(cls, name: str, model: Callable[..., Any], example: Mapping[str, Any], *,
                priors: Mapping[str, str] | None = None, check: bool = True) -> Model:
        """Of a NumPyro model, a function whose arguments are a shard's data: shards are dicts. `example` is one of them.

        Parameters are on NumPyro's unconstrained scales. Its own priors count, unless `priors` names others on these scales."""
        from ._jax import numpyro_model
        return numpyro_model(cls, name, model, example, priors, check)

    @classmethod
    def pymc(cls, name: str, model: Any, *, priors: Mapping[str, str] | None = None, check: bool = True) -> Model:
        """Of a PyMC model whose data are in ``pm.Data`` containers: shards are dicts of these by their names.

        Parameters are on PyMC's unconstrained scales. Its own priors count, unless `priors` names others on these scales."""
        from ._pymc import pymc_model
        return pymc_model(cls, name, model, priors, check)


class _Bound:
    """A log likelihood on one shard's data, as the compiled part calls it: points and results are bytes of doubles."""

    def __init__(self, model: Model, data: Any, share: float) -> None:
        self.model, self.data, self.share = model, data, share
        self.rows = float(length(data) or 0)

    def evaluate(self, what: str, points: bytes, count: int) -> bytes:
        thetas = np.frombuffer(points).reshape(count, self.model.dim)
        if what == "values":
            return self._values(thetas).tobytes()
        if what == "gradient":
            value, gradient = self._gradient(thetas[0])
            return np.concatenate([[value], gradient]).tobytes()
        value, gradient, hessian = self._expansion(thetas[0])
        return np.concatenate([[value], gradient, hessian.ravel()]).tobytes()

    def _values(self, thetas: np.ndarray) -> np.ndarray:
        model = self.model
        values = _values(model, model._functions[0], thetas, self.data)
        if model._log_prior is None:
            return values
        # The difference to the priors that the compiled part knows, of which every shard has its share.
        joint = np.asarray(model._log_prior(thetas), dtype=float)
        return values + self.share * (joint - _log_priors(model, thetas))

    def _gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        gradient = self.model._functions[1]
        if gradient is not None and self.model._log_prior is None:
            found = np.asarray(gradient(theta[None, :], self.data), dtype=float)
            _shape(self.model, "gradient", found, (1, len(theta)))
            return float(self._values(theta[None, :])[0]), found[0]
        steps = _STEP * np.maximum(1.0, np.abs(theta))
        moved = np.concatenate([[theta], theta + np.diag(steps), theta - np.diag(steps)])
        values, d = self._values(moved), len(theta)
        widths = np.diag(moved[1 : d + 1]) - np.diag(moved[d + 1 :])
        with np.errstate(invalid="ignore"):
            slopes = (values[1 : d + 1] - values[d + 1 :]) / widths
        return float(values[0]), np.nan_to_num(slopes, nan=0.0, posinf=0.0, neginf=0.0)

    def _expansion(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        _, gradient, hessian = self.model._functions
        d = len(theta)
        if hessian is not None and gradient is not None and self.model._log_prior is None:
            found = np.asarray(hessian(theta[None, :], self.data), dtype=float)
            _shape(self.model, "hessian", found, (1, d, d))
            value, slope = self._gradient(theta)
            return value, slope, 0.5 * (found[0] + found[0].T)
        if gradient is not None and self.model._log_prior is None:
            steps = _STEP * np.maximum(1.0, np.abs(theta))
            moved = np.concatenate([theta + np.diag(steps), theta - np.diag(steps)])
            slopes = np.asarray(gradient(moved, self.data), dtype=float)
            _shape(self.model, "gradient", slopes, (2 * d, d))
            widths = np.diag(moved[:d]) - np.diag(moved[d:])
            bends = (slopes[:d] - slopes[d:]) / widths[:, None]
            value, slope = self._gradient(theta)
            return value, slope, 0.5 * (bends + bends.T)
        # Second differences, all points in one call.
        steps = _STEP2 * np.maximum(1.0, np.abs(theta))
        pairs = [(i, j) for i in range(d) for j in range(i + 1)]
        moves = [[(+1, +1), (+1, -1), (-1, +1), (-1, -1)] for _ in pairs]
        points = []
        for (i, j), signs in zip(pairs, moves):
            for a, b in signs:
                point = theta.copy()
                point[i] += a * steps[i]
                point[j] += b * steps[j]
                points.append(point)
        values = self._values(np.array(points)).reshape(-1, 4) if points else np.zeros((0, 4))
        bends = np.zeros((d, d))
        for (i, j), (pp, pm, mp, mm) in zip(pairs, values):
            bends[i, j] = bends[j, i] = (pp - pm - mp + mm) / (4 * steps[i] * steps[j])
        value, slope = self._gradient(theta)
        return value, slope, bends


def _shape(model: Model, what: str, found: np.ndarray, wanted: tuple[int, ...]) -> None:
    if found.shape != wanted:
        raise InputError(f"model `{model.name}`: `{what}` returned an array of shape {found.shape}, and {wanted} is needed")


def _values(model: Model, function: Callable, thetas: np.ndarray, data: Any) -> np.ndarray:
    found = np.asarray(function(thetas, data), dtype=float)
    _shape(model, "log_likelihood", found, (len(thetas),))
    return found


def _log_priors(model: Model, thetas: np.ndarray) -> np.ndarray:
    """The log density of priors per parameter."""
    from . import _consilience
    priors = [model.priors[p] for p in model.parameters]
    return np.frombuffer(_consilience.log_priors(priors, np.ascontiguousarray(thetas).tobytes()))


def rows_of(columns: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """A shard's columns as arrays."""
    return {name: np.frombuffer(column) if isinstance(column, bytes) else np.array(column, dtype=object)
            for name, column in columns.items()}


def length(data: Any) -> int | None:
    """How many rows data have; None if that cannot be told."""
    if isinstance(data, Mapping):
        sizes = [len(v) for v in data.values() if getattr(v, "shape", None) not in (None, ())]
        return max(sizes, default=None)
    if isinstance(data, (tuple, list)) and data and all(getattr(one, "shape", ()) for one in data):
        return max(len(one) for one in data)
    if hasattr(data, "num_rows"):
        return int(data.num_rows)
    if hasattr(data, "shape") and data.shape:
        return int(data.shape[0])
    return None


def _halves(data: Any, rng: np.random.Generator) -> tuple[Any, Any] | None:
    """Random halves of data; None where they cannot be cut."""
    n = length(data)
    if n is None or n < 2:
        return None
    order = rng.permutation(n)
    one, other = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
    return _take(data, one, n), _take(data, other, n)


def _take(data: Any, rows: np.ndarray, n: int) -> Any:
    if isinstance(data, Mapping):
        own = {k: v[rows] if getattr(v, "shape", None) not in (None, ()) and len(v) == n else v for k, v in data.items()}
        return own
    if isinstance(data, (tuple, list)):
        return type(data)([v[rows] if len(v) == n else v for v in data])
    if hasattr(data, "iloc"):
        return data.iloc[rows]
    if hasattr(data, "take") and hasattr(data, "num_rows"):
        return data.take(rows)
    return data[rows]


# Compiling and setting data of other libraries is not for several threads at once.
LOCK = threading.RLock()
