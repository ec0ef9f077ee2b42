# Writes what ArviZ makes of some draws, for crates/consilience/tests/numbers/arviz.rs.
# Run from the root of the repository, with ArviZ and NumPy at hand:
#   pip install arviz==0.23.4 numpy && python scripts/arviz_reference.py
# File: crates/consilience/tests/data/arviz.json

import json
import math

import arviz
import numpy as np
from arviz.stats.diagnostics import _rhat, _split_chains, _z_scale

FILE = "crates/consilience/tests/data/arviz.json"


class Generator:
    """SplitMix64 and Box & Muller: the same draws with any version of NumPy."""

    def __init__(self, seed):
        self.state = seed

    def uniform(self):
        mask = (1 << 64) - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return (((z ^ (z >> 31)) >> 11) + 0.5) / (1 << 53)

    def normal(self):
        radius = math.sqrt(-2 * math.log(self.uniform()))
        return radius * math.cos(2 * math.pi * self.uniform())

    def cauchy(self):
        return math.tan(math.pi * (self.uniform() - 0.5))


def autoregressive(generator, rho, chains, draws):
    def chain():
        x = generator.normal()
        values = []
        for _ in range(draws):
            values.append(x)
            x = rho * x + math.sqrt(1 - rho * rho) * generator.normal()
        return values

    return np.array([chain() for _ in range(chains)])


def independent(draw, chains, draws):
    return np.array([[draw() for _ in range(draws)] for _ in range(chains)])


def r_hat(x):
    if len(x) > 1:
        return arviz.rhat(x, method="rank")
    # ArviZ wants two chains; its parts do not.
    halves = _split_chains(x)
    return max(_rhat(_z_scale(halves)), _rhat(_z_scale(abs(halves - np.median(halves)))))


def reference(name, x, energy):
    def number(value):
        value = float(value)
        return value if math.isfinite(value) else None

    return {
        "name": name,
        "draws": x.tolist(),
        "energy": energy.tolist(),
        "r_hat": number(r_hat(x)),
        "ess_mean": number(arviz.ess(x, method="mean")),
        "ess_bulk": number(arviz.ess(x, method="bulk")),
        "ess_tail": number(arviz.ess(x, method="tail")),
        "ess_square": number(arviz.ess(x, method="sd")),
        "mcse_mean": number(arviz.mcse(x, method="mean")),
        "mcse_sd": number(arviz.mcse(x, method="sd")),
        "e_bfmi": number(np.min(arviz.bfmi(energy))),
    }


def main():
    g = Generator(20260101)
    apart = independent(g.normal, 2, 200)
    apart[1] += 1.5
    wide = independent(g.normal, 4, 150)
    wide[2] *= 4
    drifting = autoregressive(g, 0.5, 2, 200) + np.linspace(0, 3, 200)
    sets = {
        "independent": independent(g.normal, 4, 200),
        "positively correlated": autoregressive(g, 0.7, 4, 250),
        "strongly correlated": autoregressive(g, 0.97, 4, 250),
        "antithetic": autoregressive(g, -0.5, 4, 200),
        "strongly antithetic, at the upper bound": autoregressive(g, -0.95, 2, 200),
        "heavy tails": independent(g.cauchy, 4, 200),
        "apart": apart,
        "wide": wide,
        "drifting": drifting,
        "one chain": autoregressive(g, 0.3, 1, 400),
        "an odd number": autoregressive(g, 0.4, 3, 151),
        "few": independent(g.normal, 2, 11),
        "ties": np.round(autoregressive(g, 0.6, 2, 200) * 2) / 2,
        "large offset": 1e6 + 1e-3 * autoregressive(g, 0.2, 2, 150),
    }
    result = []
    for i, (name, x) in enumerate(sets.items()):
        rho = [0.0, 0.9, -0.3][i % 3]
        energy = 10 + 3 * autoregressive(g, rho, len(x), min(len(x[0]), 60))
        result.append(reference(name, x, energy))
    with open(FILE, "w", encoding="utf-8") as file:
        json.dump({"arviz": arviz.__version__, "sets": result}, file, indent=None)
        file.write("\n")


main()
