#!/usr/bin/env python3
"""Log evidences under hyper-g(4) of logistic regressions whose column tells the two kinds of rows apart: by plain sums over
level, coefficient and g, for crates/consilience/tests/numbers/g_priors_glm.rs. Needs numpy.

Rows are x = 0 … n − 1, y = 1 where 2x ≥ n, the level is flat, and β | g ~ N(0, g/Λ), where Λ is the information about β where β
is 0. In units of 1/√Λ the likelihood of a coefficient d with the level integrated out is M(d); where g is large, Z(g) rises as √g."""

import numpy as np


def log_evidence(n: int, fineness: int) -> float:
    x = np.arange(n, dtype=float)
    y = (2 * x >= n).astype(float)
    apart = x - x.mean()
    share = y.mean()
    root = np.sqrt(share * (1 - share) * (apart**2).sum())
    ds = np.concatenate([-np.geomspace(1e-3, 80, 100 * fineness)[::-1], [0], np.geomspace(1e-3, 1e7, 1000 * fineness)])
    log_m = []
    for b in ds / root:
        wide = min(abs(b) * (n / 2 + 1) + 60, 2 * abs(b) + 80)
        level = np.linspace(-wide, wide, 1000 * fineness + 1)
        eta = level[:, None] + b * apart
        value = (y * eta - np.logaddexp(0, eta)).sum(1)
        log_m.append(value.max() + np.log(np.trapezoid(np.exp(value - value.max()), level)))
    log_m = np.array(log_m)
    vs = np.linspace(-25, 80, 1050 * fineness + 1)
    heights = []
    for k, v in enumerate(vs):
        g = np.exp(v)
        if g < 1e-4:
            log_z = np.interp(0, ds, log_m)
        elif g > 1e11:
            log_z += 0.5 * (v - vs[k - 1])
        else:
            inner = log_m - 0.5 * ds**2 / g - 0.5 * np.log(2 * np.pi * g)
            log_z = inner.max() + np.log(np.trapezoid(np.exp(inner - inner.max()), ds))
        # The density of v = log g: g(1 + g)⁻².
        heights.append(log_z + v - 2 * np.logaddexp(0, v))
    heights = np.array(heights)
    return heights.max() + np.log(np.trapezoid(np.exp(heights - heights.max()), vs))


for n in (8, 60):
    print(n, [round(log_evidence(n, fineness), 6) for fineness in (3, 6)])
