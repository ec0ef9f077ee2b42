"""PyMC models: their compiled log probabilities, with the data of one shard at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

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
        self.variables = list(model.continuous_value_vars)
        point = model.initial_point()
        self.shapes = [(v.name, np.shape(point[v.name])) for v in self.variables]
        self.likelihood = model.compile_logp(vars=model.observed_RVs, jacobian=False)
        gradient = pm.pytensorf.gradient(model.logp(vars=model.observed_RVs, jacobian=False), self.variables)
        self.gradient = model.compile_fn(gradient, inputs=self.variables)
        self.prior = model.compile_logp(vars=model.free_RVs)
        self._data: Any = None

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
        pm.set_data(dict(data), model=self.model)
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


def pymc_model(cls: Any, name: str, model: Any, priors: Mapping[str, str] | None, check: bool) -> Any:
    """A model of a PyMC model."""
    compiled = _Compiled(model)
    if priors is not None:
        if list(priors) != compiled.names():
            raise InputError(f"model `{name}`: `priors` names {list(priors)}, and the model's parameters are {compiled.names()}")
        return cls(name, priors, compiled.values, compiled.gradients, check=check)
    own = {parameter: "normal(0, 10)" for parameter in compiled.names()}
    return cls(name, own, compiled.values, compiled.gradients, log_prior=compiled.log_prior, check=check)
