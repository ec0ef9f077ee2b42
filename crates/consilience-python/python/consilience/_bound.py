"""A log likelihood of one's own on one shard's data, as the compiled part calls it, with derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._rows import length

# Steps of differences: the cube and the fourth root of the rounding error balance it against what is left out.
_STEP, _STEP2 = 6e-6, 1.2e-4


class Derivatives:
    """A function of K points with what is known of its derivatives; what is not is made of differences."""

    def __init__(self, values: Callable[[np.ndarray], Any], gradients: Callable[[np.ndarray], Any] | None = None,
                 hessians: Callable[[np.ndarray], Any] | None = None) -> None:
        self.values, self._gradients, self._hessians = values, gradients, hessians

    def gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Its value and slopes at a point."""
        if self._gradients is not None:
            return float(self.values(theta[None, :])[0]), np.asarray(self._gradients(theta[None, :]), dtype=float)[0]
        moved, widths = _moves(theta)
        values, d = np.asarray(self.values(np.concatenate([theta[None, :], moved])), dtype=float), len(theta)
        with np.errstate(invalid="ignore"):
            slopes = (values[1 : d + 1] - values[d + 1 :]) / widths
        return float(values[0]), np.nan_to_num(slopes, nan=0.0, posinf=0.0, neginf=0.0)

    def expansion(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Its value, slopes and curvature at a point."""
        value, slope = self.gradient(theta)
        if self._gradients is not None and self._hessians is not None:
            bends = np.asarray(self._hessians(theta[None, :]), dtype=float)[0]
        elif self._gradients is not None:
            moved, widths = _moves(theta)
            slopes, d = np.asarray(self._gradients(moved), dtype=float), len(theta)
            bends = (slopes[:d] - slopes[d:]) / widths[:, None]
        else:
            return value, slope, self._second_differences(theta)
        return value, slope, 0.5 * (bends + bends.T)

    def _second_differences(self, theta: np.ndarray) -> np.ndarray:
        """All points in one call."""
        d = len(theta)
        steps = _STEP2 * np.maximum(1.0, np.abs(theta))
        pairs = [(i, j) for i in range(d) for j in range(i + 1)]
        points = []
        for i, j in pairs:
            for a, b in ((+1, +1), (+1, -1), (-1, +1), (-1, -1)):
                point = theta.copy()
                point[i] += a * steps[i]
                point[j] += b * steps[j]
                points.append(point)
        values = np.asarray(self.values(np.array(points)), dtype=float).reshape(-1, 4) if points else np.zeros((0, 4))
        bends = np.zeros((d, d))
        for (i, j), (pp, pm, mp, mm) in zip(pairs, values):
            bends[i, j] = bends[j, i] = (pp - pm - mp + mm) / (4 * steps[i] * steps[j])
        return bends


def _moves(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points a step ahead and a step behind along every axis, and how far apart they are."""
    steps = np.diag(_STEP * np.maximum(1.0, np.abs(theta)))
    ahead, behind = theta + steps, theta - steps
    return np.concatenate([ahead, behind]), np.diag(ahead) - np.diag(behind)


class Bound:
    """A model's log likelihood on one shard's data: points and results are bytes of doubles.

    Where the model has a joint prior, its difference to the priors that the compiled part knows is in it, by the shard's share."""

    def __init__(self, model: Any, data: Any, share: float) -> None:
        self.rows = float(length(data) or 0)
        # Each with its weight. The gradient of the likelihood serves whatever the prior is.
        self._terms = [(1.0, _likelihood(model, data))]
        if model._log_prior is not None and share > 0:
            self._terms += [(share, model._log_prior), (-share, _priors(model))]
        self._dim = model.dim

    def evaluate(self, what: str, points: bytes, count: int) -> bytes:
        thetas = np.frombuffer(points).reshape(count, self._dim)
        if what == "values":
            return np.asarray(self._sum(lambda term: term.values(thetas)), dtype=float).tobytes()
        if what == "gradient":
            return self._sum(lambda term: _flat(term.gradient(thetas[0]))).tobytes()
        return self._sum(lambda term: _flat(term.expansion(thetas[0]))).tobytes()

    def _sum(self, of: Callable[[Derivatives], Any]) -> Any:
        return sum(weight * np.asarray(of(term), dtype=float) for weight, term in self._terms)


def _flat(parts: tuple[Any, ...]) -> np.ndarray:
    return np.concatenate([np.ravel(part) for part in parts])


def _likelihood(model: Any, data: Any) -> Derivatives:
    _, gradient, hessian = model._functions
    if model._keep is not None:
        data = model._keep(data)

    def gradients(thetas: np.ndarray) -> np.ndarray:
        return model._returned("gradient", gradient(thetas, data), thetas.shape)

    def hessians(thetas: np.ndarray) -> np.ndarray:
        return model._returned("hessian", hessian(thetas, data), (*thetas.shape, thetas.shape[1]))

    return Derivatives(lambda thetas: model._values(thetas, data), None if gradient is None else gradients,
                       None if hessian is None else hessians)


def _priors(model: Any) -> Derivatives:
    """The log density of the priors per parameter."""
    from . import _consilience
    priors, d = [model.priors[p] for p in model.parameters], model.dim

    def known(thetas: np.ndarray) -> np.ndarray:
        """A point a row: the value, d slopes, d curvatures."""
        return np.frombuffer(_consilience.log_priors(priors, np.ascontiguousarray(thetas).tobytes())).reshape(len(thetas), -1)

    return Derivatives(lambda thetas: known(thetas)[:, 0], lambda thetas: known(thetas)[:, 1 : d + 1],
                       lambda thetas: known(thetas)[:, d + 1 :, None] * np.eye(d))
