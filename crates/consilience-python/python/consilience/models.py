"""Models of your own: a log likelihood that Python computes, on one shard's rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ._additive import SumTest
from ._bound import Bound, Derivatives
from ._errors import InputError
from ._rows import rows_of


class Model:
    """A model whose likelihood is yours.

    `priors` names the parameters in their order, each with its prior as a study writes it: ``{"a": "normal(0, 2)"}``. Scales
    are unconstrained: a standard deviation is a parameter by its logarithm. What is ``fixed(…)`` is no coordinate of θ.

    `log_likelihood(thetas, data)` takes K points as an array [K, d] and one shard's data, and returns K values, every constant
    included, without the prior. `gradient(thetas, data)` returns [K, d] and `hessian(thetas, data)` [K, d, d]; what is not given
    is made of differences. `data` is an element of the list of shards as you gave it, or, beside formula models, the shard's
    rows as a dict of arrays: of the columns that the formulas name.

    `log_prior(thetas)`, where there is one, is the joint log prior, normalised; `priors` then only say where to look.

    Shards see their own rows alone, so that the log likelihood must be a sum over rows. That is tested on a few rows of a shard,
    cut in two, and on its halves (on two shards put together, if they have one row each), at points around the priors. One that is
    no such sum is refused, and so are shards whose rows cannot be told: a test needs tables, arrays, dicts or tuples of columns, or
    lists of rows. `check=False` leaves the test out.
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
        self._log_prior = None if log_prior is None else Derivatives(log_prior)
        self._check = check
        # What makes of a shard's data what the functions are quick with, for as long as the shard is asked.
        self._keep: Callable[[Any], Any] | None = None

    @property
    def dim(self) -> int:
        """The number of parameters that are not held fixed."""
        return len(self.parameters)

    def __repr__(self) -> str:
        return f"<consilience.Model {self.name!r} of {', '.join(self.parameters)}>"

    # What the engines and the compiled part call.

    def parts(self, pieces: list[Any] | None, prior: bool = True) -> tuple[str, list[tuple[str, str]], Callable[[int, Any, int, float], Any]]:
        """Its name, parameters and priors, and what makes its likelihood of a shard: of its number, its columns, how many
        shards there are, and its share of the prior. Without a prior it is the likelihood alone, whatever the model has."""
        test = SumTest(self)
        def bind(index: int, columns: Any, shards: int, share: float) -> Any:
            data = rows_of(columns) if pieces is None else pieces[index]
            if pieces is None:
                test.see(data)
                if index + 1 == shards:
                    test.finish(shards)
            return Bound(self, data, share if prior else 0.0)
        return self.name, list(self.priors.items()), bind

    def bind(self, data: Any, shards: int | None = None) -> Any:
        """Its likelihood on these data, of so many shards that share the prior alike; None where they may not."""
        if self._log_prior is not None and shards is None:
            raise InputError(f"model `{self.name}`: with an engine, `log_prior` goes with models of your own alone, since its "
                             "workers do not know how formula models share out the prior; give priors per parameter, or no engine")
        return Bound(self, data, 1.0 / (shards or 1))

    def check(self, pieces: Iterable[Any], shards: int) -> None:
        """Refuses a likelihood that is no sum over the rows of these, of so many shards; one of which that cannot be told; and
        one that does not return what it should."""
        test = SumTest(self)
        for data in pieces:
            test.see(data)
            if test.done:
                return
        test.finish(shards)

    def _values(self, thetas: np.ndarray, data: Any) -> np.ndarray:
        """Its log likelihood at points, in the shape that it must have."""
        return self._returned("log_likelihood", self._functions[0](thetas, data), (len(thetas),))

    def _returned(self, what: str, found: Any, wanted: tuple[int, ...]) -> np.ndarray:
        """What a function returned, as numbers; an error if they are not as many as is needed."""
        found = np.asarray(found, dtype=float)
        if found.shape != wanted:
            raise InputError(f"model `{self.name}`: `{what}` returned an array of shape {found.shape}, and {wanted} is needed")
        return found

    # Models of other libraries.

    @classmethod
    def jax(cls, name: str, priors: Mapping[str, str], log_likelihood: Callable[[Any, Any], Any], *,
            log_prior: Callable[[Any], Any] | None = None, check: bool = True) -> Model:
        """Of a JAX function of one point: `log_likelihood(theta[d], data)` returns a number. It is compiled, and gradient and
        Hessian are taken of it."""
        from ._jax import JaxFunctions, OnDevice
        functions = JaxFunctions(log_likelihood)
        own = cls(name, priors, functions.values, functions.gradients, functions.hessians, check=check)
        own._keep = OnDevice
        if log_prior is not None:
            own._log_prior = JaxFunctions(lambda theta, _: log_prior(theta)).derivatives(None)
        return own

    @classmethod
    def numpyro(cls, name: str, model: Callable[..., Any], example: Mapping[str, Any], *,
                priors: Mapping[str, str] | None = None, check: bool = True) -> Model:
        """Of a NumPyro model, a function whose arguments are a shard's data: shards are dicts. `example` is one of them. What is no
        argument is left out.

        Parameters are on NumPyro's unconstrained scales. Its own priors count, unless `priors` names others on these scales."""
        from ._jax import numpyro_model
        return numpyro_model(cls, name, model, example, priors, check)

    @classmethod
    def pymc(cls, name: str, model: Any, *, priors: Mapping[str, str] | None = None, check: bool = True) -> Model:
        """Of a PyMC model whose data are in ``pm.Data`` containers: shards are dicts of these by their names. What has no container
        is left out, and a container that shards do not name stays as it is.

        Parameters are on PyMC's unconstrained scales. Its own priors count, unless `priors` names others on these scales."""
        from ._pymc import pymc_model
        return pymc_model(cls, name, model, priors, check)



# Compiling and setting data of other libraries is not for several threads at once.
LOCK = threading.RLock()
