"""JAX and NumPyro: functions of one point, compiled, with their derivatives."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ._bound import Derivatives
from ._errors import InputError


@contextlib.contextmanager
def _doubles():
    """In double precision: single loses what evidences are about."""
    import jax
    if hasattr(jax, "enable_x64"):
        with jax.enable_x64(True):
            yield
    else:
        from jax.experimental import enable_x64
        with enable_x64(True):
            yield


class JaxFunctions:
    """Values, gradients and Hessians of a JAX function of one point and data, at many points."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.function = function
        self._compiled: dict[str, Any] = {}

    def __getstate__(self):
        return {"function": self.function, "_compiled": {}}

    def values(self, thetas: np.ndarray, data: Any) -> np.ndarray:
        return self._run("values", thetas, data)

    def gradients(self, thetas: np.ndarray, data: Any) -> np.ndarray:
        return self._run("gradients", thetas, data)

    def hessians(self, thetas: np.ndarray, data: Any) -> np.ndarray:
        return self._run("hessians", thetas, data)

    def derivatives(self, data: Any) -> Derivatives:
        """The function on these data."""
        data = OnDevice(data)
        return Derivatives(lambda thetas: self.values(thetas, data), lambda thetas: self.gradients(thetas, data),
                           lambda thetas: self.hessians(thetas, data))

    def _run(self, what: str, thetas: np.ndarray, data: Any) -> np.ndarray:
        import jax
        with _doubles():
            if what not in self._compiled:
                derivative = {"values": lambda f: f, "gradients": jax.grad, "hessians": jax.hessian}[what]
                self._compiled[what] = jax.jit(jax.vmap(derivative(self.function), in_axes=(0, None)))
            # A length of its own would be compiled anew: powers of two are few.
            count = len(thetas)
            padded = 1 << (count - 1).bit_length()
            points = np.concatenate([thetas, np.repeat(thetas[-1:], padded - count, axis=0)])
            arrays = data.arrays() if isinstance(data, OnDevice) else _arrays(data)
            return np.asarray(self._compiled[what](points, arrays))[:count]


class OnDevice:
    """Data that are put on the device once, and are there for as long as this is."""

    def __init__(self, data: Any) -> None:
        self.data, self._arrays = data, None

    def __getstate__(self):
        return {"data": self.data, "_arrays": None}

    def arrays(self) -> Any:
        """The data on the device."""
        if self._arrays is None:
            self._arrays = (_arrays(self.data),)
        return self._arrays[0]


def _arrays(data: Any) -> Any:
    """Data as arrays on the device."""
    import jax
    import jax.numpy as jnp
    if isinstance(data, Mapping):
        # Text has no place in JAX.
        data_in = {k: v for k, v in data.items() if getattr(np.asarray(v), "dtype", None) != object}
    elif hasattr(data, "to_numpy"):
        data_in = {k: data[k].to_numpy() for k in data.columns}
    else:
        data_in = data
    return jax.tree_util.tree_map(jnp.asarray, data_in)


class _Sites:
    """A NumPyro model as two functions of an unconstrained vector: log likelihood and log prior."""

    def __init__(self, model: Callable[..., Any], example: Mapping[str, Any]) -> None:
        import jax
        from numpyro import handlers

        self.model = model
        arguments = inspect.signature(model).parameters.values()
        # Any column beside formulas is among the data, used or not.
        self.takes = None if any(a.kind is a.VAR_KEYWORD for a in arguments) else {a.name for a in arguments}
        self.needs: set[str] = set()
        self.needs = set(self._arguments(example))
        self.sites: list[tuple[str, tuple[int, ...]]] = []
        with _doubles():
            trace = handlers.trace(handlers.seed(model, jax.random.PRNGKey(0))).get_trace(**self._arguments(example))
        for name, site in trace.items():
            if site["type"] != "sample" or site["is_observed"]:
                continue
            if site["fn"].support is not None and site["fn"].support.is_discrete:
                raise InputError(f"the NumPyro model has the discrete parameter `{name}`; sum it out")
            from numpyro.distributions import biject_to
            shape = biject_to(site["fn"].support).inverse_shape(np.shape(site["value"]))
            self.sites.append((name, tuple(shape)))

    def names(self) -> list[str]:
        out = []
        for name, shape in self.sites:
            if shape == ():
                out.append(name)
            else:
                out += [f"{name}[{','.join(map(str, index))}]" for index in np.ndindex(*shape)]
        return out

    def _arguments(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Those of a shard's data that the model takes. An error if one that its example has is not among them: observed values that
        are missing would be drawn."""
        missing = sorted(self.needs - set(data))
        if missing:
            raise InputError(f"a shard of the NumPyro model has no `{missing[0]}`, which the example has")
        return {name: value for name, value in data.items() if self.takes is None or name in self.takes}

    def _trace(self, theta: Any, data: Mapping[str, Any]) -> tuple[Any, Any]:
        """The log likelihood and the log prior at an unconstrained point."""
        import jax
        import jax.numpy as jnp
        from numpyro import handlers
        from numpyro.distributions import biject_to

        at, values = 0, {}
        for name, shape in self.sites:
            size = int(np.prod(shape, dtype=int))
            values[name] = jnp.reshape(theta[at : at + size], shape)
            at += size
        jacobian = []

        def constrained(site: Mapping[str, Any]) -> Any:
            if site["type"] == "sample" and not site.get("is_observed") and site["name"] in values:
                transform = biject_to(site["fn"].support)
                free = values[site["name"]]
                value = transform(free)
                jacobian.append(jnp.sum(transform.log_abs_det_jacobian(free, value)))
                return value
            return None

        seeded = handlers.seed(self.model, jax.random.PRNGKey(0))
        trace = handlers.trace(handlers.substitute(seeded, substitute_fn=constrained)).get_trace(**self._arguments(data))
        likelihood, prior = 0.0, sum(jacobian)
        for site in trace.values():
            if site["type"] != "sample":
                continue
            value = jnp.sum(site["fn"].log_prob(site["value"]))
            if site.get("scale") is not None:
                value = value * site["scale"]
            if site["is_observed"]:
                likelihood = likelihood + value
            else:
                prior = prior + value
        return likelihood, prior

    def log_likelihood(self, theta: Any, data: Mapping[str, Any]) -> Any:
        return self._trace(theta, data)[0]

    def log_prior(self, theta: Any, data: Mapping[str, Any]) -> Any:
        return self._trace(theta, data)[1]


def numpyro_model(cls: Any, name: str, model: Callable[..., Any], example: Mapping[str, Any],
                  priors: Mapping[str, str] | None, check: bool) -> Any:
    """A model of a NumPyro function."""
    if not isinstance(example, Mapping):
        raise InputError(f"model `{name}`: `example` is of type {type(example).__name__}; shards of a NumPyro model are dicts of "
                         "its arguments")
    sites = _Sites(model, example)
    functions = JaxFunctions(sites.log_likelihood)
    if priors is not None and list(priors) != sites.names():
        raise InputError(f"model `{name}`: `priors` names {list(priors)}, and the model's parameters are {sites.names()}")
    places = {parameter: "normal(0, 10)" for parameter in sites.names()} if priors is None else priors
    own = cls(name, places, functions.values, functions.gradients, functions.hessians, check=check)
    own._keep = OnDevice
    if priors is not None:
        return own
    # The example's data are those that it is computed with: priors do not look at them.
    own._log_prior = JaxFunctions(sites.log_prior).derivatives(dict(example))
    return own
