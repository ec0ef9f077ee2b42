"""PyMC models: their compiled log probabilities, with the data of one shard at a time."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._bound import Derivatives
from ._errors import InputError
from .models import LOCK


class _Compiled:
    """The log likelihood and the log prior of a PyMC model, as functions of a vector."""

    def __init__(self, model: Any) -> None:
        import pymc as pm

        self.model = model
        if model.discrete_value_vars:
            raise InputError(f"the PyMC model has the discrete parameter `{model.discrete_value_vars[0].name}`; sum it out")
        if not model.observed_RVs:
            raise InputError("the PyMC model has no observed variable")
        if model.potentials:
            # It may look at rows or not, and nobody says which: a share of the prior, or a part of the likelihood.
            raise InputError(
                f"the PyMC model has the potential `{model.potentials[0].name}`, of which it cannot be told whether it belongs to the "
                "prior or to the likelihood of the rows; write it as a distribution instead: of a parameter, such as "
                "pm.CustomDist(name, …, logp=f), if it is prior, and with observed=data if it is likelihood"
            )
        self.variables = list(model.continuous_value_vars)
        point = model.initial_point()
        self.shapes = [(v.name, np.shape(point[v.name])) for v in self.variables]

        def compiled(variables: Any, jacobian: bool) -> tuple[Any, Any]:
            log_density = model.logp(vars=variables, jacobian=jacobian)
            # A scale of effects is in the prior alone.
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "grad method was asked", UserWarning)
                gradient = pm.pytensorf.gradient(log_density, self.variables)
            return tuple(model.compile_fn(f, inputs=self.variables, on_unused_input="ignore") for f in (log_density, gradient))

        self.likelihood, self.gradient = compiled(model.observed_RVs, False)
        self.prior, self.prior_gradient = compiled(model.free_RVs, True)
        self._data: Any = None
        # What shards may name, and how long it was at first.
        self.containers = {v.name: np.shape(v.get_value(borrow=True)) for v in model.data_vars}

    def names(self) -> list[str]:
        out = []
        for name, shape in self.shapes:
            if shape == ():
                out.append(name)
            else:
                out += [f"{name}[{','.join(map(str, index))}]" for index in np.ndindex(*shape)]
        return out

    def _point(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        at, point = 0, {}
        for name, shape in self.shapes:
            size = int(np.prod(shape, dtype=int))
            point[name] = theta[at : at + size].reshape(shape)
            at += size
        return point

    def _on(self, data: Any) -> None:
        import pymc as pm
        if data is self._data:
            return
        if not isinstance(data, Mapping):
            raise InputError(f"a shard of a PyMC model is of type {type(data).__name__}; give a dict of its pm.Data containers")
        # Any column beside formulas is among the data, used or not.
        own = {name: value for name, value in data.items() if name in self.containers}
        if not own:
            raise InputError("a shard of the PyMC model names none of its pm.Data containers: the model would have the same data on "
                             "every shard")
        lengths = {shape[0] for name, shape in self.containers.items() if name in own and shape}
        for name, shape in self.containers.items():
            # One of another length is no column of rows, and stays as it is.
            if name not in own and shape and shape[0] in lengths:
                raise InputError(f"a shard of the PyMC model has no `{name}`, for which the model has a pm.Data container")
        pm.set_data(own, model=self.model)
        self._data = data

    def values(self, thetas: np.ndarray, data: Any) -> np.ndarray:
        with LOCK:
            self._on(data)
            return np.array([float(self.likelihood(self._point(theta))) for theta in thetas])

    def gradients(self, thetas: np.ndarray, data: Any) -> np.ndarray:
        with LOCK:
            self._on(data)
            return np.array([np.ravel(self.gradient(self._point(theta))) for theta in thetas])

    def log_prior(self, thetas: np.ndarray) -> np.ndarray:
        with LOCK:
            return np.array([float(self.prior(self._point(theta))) for theta in thetas])

    def log_prior_gradients(self, thetas: np.ndarray) -> np.ndarray:
        with LOCK:
            return np.array([np.ravel(self.prior_gradient(self._point(theta))) for theta in thetas])


def pymc_model(cls: Any, name: str, model: Any, priors: Mapping[str, str] | None, check: bool) -> Any:
    """A model of a PyMC model."""
    compiled = _Compiled(model)
    if priors is not None:
        if list(priors) != compiled.names():
            raise InputError(f"model `{name}`: `priors` names {list(priors)}, and the model's parameters are {compiled.names()}")
        return cls(name, priors, compiled.values, compiled.gradients, check=check)
    own = cls(name, {parameter: "normal(0, 10)" for parameter in compiled.names()}, compiled.values, compiled.gradients, check=check)
    own._log_prior = Derivatives(compiled.log_prior, compiled.log_prior_gradients)
    return own
