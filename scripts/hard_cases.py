#!/usr/bin/env python3
"""Makes crates/consilience/tests/data/own_hard.jsonl: models whose posteriors are not like a normal density,
with their log evidence by quadrature that knows nothing of the program.

    pip install numpy scipy && python3 scripts/hard_cases.py > crates/consilience/tests/data/own_hard.jsonl
    python3 scripts/hard_cases.py trios > crates/consilience/tests/data/trios.jsonl

The second makes studies of three models each, for the coverage of probability intervals.

Every truth is computed with two rules; where these differ by more than 1e-7 the script stops. One-dimensional
integrals are sums of Gauss-Legendre rules on intervals that are broken at the prior's and the likelihood's
own scales. Models `y ~ 0 + g` are products of such integrals, two columns that are equal are one with the sum of
the coefficients, a single row is one number x'b; the rest is done with nested rules.
"""
import json
import sys

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import gammaln, log_ndtr, logsumexp

RNG = np.random.default_rng(20261116)
RULES = {n: leggauss(n) for n in (24, 40)}


# Priors: log density, centre, scale.
def log_prior(kind, x):
    name, *a = kind
    if name == "normal":
        m, s = a
        return -0.5 * ((x - m) / s) ** 2 - np.log(s) - 0.5 * np.log(2 * np.pi)
    if name == "laplace":
        m, b = a
        return -np.abs(x - m) / b - np.log(2 * b)
    if name == "cauchy":
        m, s = a
        return -np.log1p(((x - m) / s) ** 2) - np.log(np.pi * s)
    nu, m, s = a
    const = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * np.pi) - np.log(s)
    return const - (nu + 1) / 2 * np.log1p(((x - m) / s) ** 2 / nu)


def text(kind):
    name, *a = kind
    return f"{name}({', '.join(repr(v) for v in a)})"


def breaks(kind, peak, width):
    """Where an integrand of one parameter may change its ways."""
    centre, scale = kind[-2], kind[-1]
    heavy = kind[0] in ("cauchy", "student_t")
    out = {centre}
    top = 9 if heavy and kind[1] >= 1 or kind[0] == "cauchy" else 40 if heavy else 2.6
    for far in 10.0 ** np.arange(-3, top, 0.25 if not heavy else 0.5):
        out |= {centre - scale * far, centre + scale * far}
    for k in np.concatenate([np.arange(0, 10, 0.5), 10 * 1.6 ** np.arange(0, 8)]):
        out |= {peak - width * k, peak + width * k}
    return np.array(sorted(out))


def nodes(points, order):
    x, w = RULES[order]
    a, b = points[:-1, None], points[1:, None]
    return (0.5 * (a + b) + 0.5 * (b - a) * x).ravel(), (0.5 * (b - a) * w).ravel()


def log_integral(f, points, order):
    x, w = nodes(points, order)
    return logsumexp(f(x), b=w)


def both(compute, what):
    """The value by two rules."""
    low, high = compute(24), compute(40)
    if not abs(low - high) < 1e-7 * max(1.0, abs(high)):
        sys.exit(f"{what}: {low} is not {high}")
    return float(high)


# Likelihoods of a linear predictor, summed over rows (rows first).
def log_lik(family, y, eta):
    if family == "logistic":
        return np.sum(y * eta - np.logaddexp(0, eta), 0)
    if family == "probit":
        return np.sum(log_ndtr((2 * y - 1) * eta), 0)
    if family == "poisson":
        # Relative to the saturated model, so that large counts lose nothing.
        safe = np.maximum(y, 1e-300)
        gap = eta - np.log(safe)
        with np.errstate(over="ignore"):
            unit = np.where(y > 0, -y * (np.expm1(gap) - gap), -np.exp(eta))
        return np.sum(unit + saturated(y), 0)
    raise ValueError(family)


def saturated(y):
    big = -0.5 * np.log(2 * np.pi * np.maximum(y, 1)) - 1 / (12 * np.maximum(y, 1)) + 1 / (360 * np.maximum(y, 1) ** 3)
    small = y * np.log(np.maximum(y, 1e-300)) - y - gammaln(y + 1)
    return np.where(y > 1e4, big, np.where(y > 0, small, 0.0))


def negative_binomial(y, eta, a):
    """Rows first; y moderate."""
    r = np.exp(a)
    soft = np.logaddexp(0, eta - a)
    return np.sum(gammaln(y + r) - gammaln(r) - gammaln(y + 1) + y * (eta - a - soft) - r * soft, 0)


def one_parameter(family, y, x, kind, what):
    """log of the integral of p(y | x b) p(b)."""
    grid = np.concatenate([-(10.0 ** np.arange(12, -9, -0.02)), [0], 10.0 ** np.arange(-8, 12, 0.02)])
    grid = np.concatenate([grid, kind[-2] + kind[-1] * np.linspace(-40, 40, 4001)])
    if family == "poisson" and np.all(x == 1):
        top = np.log(max(y.mean(), 0.1))
        grid = np.concatenate([grid, top + np.linspace(-1, 1, 4001) * 20 / np.sqrt(max(y.sum(), 1))])
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.nan_to_num(log_lik(family, y[:, None], x[:, None] * grid), nan=-np.inf)
    peak = grid[np.argmax(values)]
    near = np.abs(grid[values > values.max() - 2.0] - peak)
    width = max(near.max() / 2, 1e-14 * max(abs(peak), 1e-300))

    def f(b):
        with np.errstate(over="ignore", invalid="ignore"):
            return np.nan_to_num(log_lik(family, y[:, None], x[:, None] * b), nan=-np.inf) + log_prior(kind, b)

    return both(lambda n: log_integral(f, breaks(kind, peak, width), n), what)


CASES = []


def add(name, family, formula, priors, rows, header, truth, shards=1, evidence="", **more):
    prior = "\n".join(f'{k} = "{v if isinstance(v, str) else text(v)}"' for k, v in priors.items())
    study = f'[data]\npath = "d.csv"\n[split]\nshards = {shards}\n[prior]\n{prior}\n[[model]]\nname = "m"\nformula = "{formula}"\nfamily = "{family}"\n'
    if evidence:
        study += f"[evidence]\n{evidence}\n"
    csv = header + "\n" + "\n".join(",".join(str(v) for v in row) for row in rows) + "\n"
    CASES.append({"name": name, "study": study, "csv": csv, "truth": truth, "truth_se": 0.0, **more})


HEAVY = [("normal", 0, 2.5), ("laplace", 0, 1.0), ("student_t", 3, 0, 2.5), ("cauchy", 0, 2.5), ("cauchy", 0, 0.1)]


def levels():
    """y ~ 0 + g: exact in any dimension. Few rows a level, so that many are all 0 or all 1."""
    for i, (family, kind, count, most, shards) in enumerate([
        ("logistic", HEAVY[1], 10, 6, 1), ("logistic", HEAVY[3], 30, 4, 1), ("logistic", HEAVY[2], 20, 5, 5),
        ("logistic", HEAVY[4], 8, 8, 3), ("probit", HEAVY[3], 15, 5, 1), ("probit", HEAVY[1], 12, 4, 4),
        ("probit", HEAVY[0], 25, 3, 1), ("poisson", HEAVY[3], 10, 4, 1), ("poisson", HEAVY[1], 14, 3, 7),
        ("poisson", HEAVY[2], 6, 2, 1), ("logistic", HEAVY[0], 60, 12, 3), ("logistic", ("laplace", 0, 10.0), 6, 5, 1),
    ]):
        rows, truth = [], 0.0
        for level in range(count):
            n = int(RNG.integers(1, most + 1))
            p = RNG.uniform(0.05, 0.95)
            y = RNG.poisson(RNG.gamma(1.0, 3.0), n) if family == "poisson" else (RNG.random(n) < p).astype(int)
            rows += [(int(v), f"L{level:02d}") for v in y]
            truth += one_parameter(family, y.astype(float), np.ones(n), kind, "level")
        if family != "poisson" and len({r[0] for r in rows}) < 2:
            sys.exit("one class only")
        add(f"levels_{i}_{family}_{kind[0]}_{count}", family, "y ~ 0 + g", {"coefficients": kind}, rows, "y,g", truth, shards)


def slopes():
    """y ~ 0 + x: separable, of huge and tiny scales, and at odds with the prior."""
    for i, (family, kind, scale, n, apart, shards) in enumerate([
        ("logistic", ("cauchy", 0, 2.5), 1.0, 6, True, 1), ("logistic", ("laplace", 0, 10.0), 1.0, 8, True, 2),
        ("logistic", ("normal", 0, 50.0), 1.0, 20, True, 1), ("probit", ("cauchy", 0, 1.0), 1.0, 5, True, 1),
        ("logistic", ("normal", 0, 1e8), 1e-8, 40, False, 4), ("logistic", ("cauchy", 0, 1e-8), 1e8, 40, False, 1),
        ("probit", ("student_t", 3, 0, 1e6), 1e-6, 30, False, 3), ("poisson", ("laplace", 0, 1e-4), 1e4, 30, False, 1),
        ("logistic", ("student_t", 1, 0, 0.01), 1.0, 60, False, 1), ("logistic", ("cauchy", 0, 0.001), 1.0, 200, False, 10),
        ("poisson", ("cauchy", 0, 0.01), 1.0, 40, False, 2), ("probit", ("student_t", 2, 0, 0.05), 1.0, 80, False, 20),
        ("logistic", ("student_t", 0.5, 0, 1.0), 1.0, 4, True, 1), ("logistic", ("laplace", 3.0, 0.05), 1.0, 50, False, 5),
        ("logistic", ("normal", -5.0, 0.5), 1.0, 50, False, 1), ("poisson", ("normal", 0, 0.05), 1.0, 25, False, 1),
    ]):
        x = np.round(RNG.normal(size=n), 2)
        x[x == 0] = 0.5
        slope = 1.2
        if family == "poisson":
            y = RNG.poisson(np.exp(0.8 * x))
        elif apart:
            y = (x > 0).astype(int)
            y[0], x[0] = 1 - (y[1] if n > 1 else 0), (1 if y[1] == 0 else -1) * abs(x[0])
            y[0] = int(x[0] > 0)
        else:
            y = (RNG.random(n) < 1 / (1 + np.exp(-slope * x))).astype(int)
        if family != "poisson" and len(set(y)) < 2:
            x[0], y[0] = -x[0], 1 - y[0]
        scaled = x * scale
        truth = one_parameter(family, y.astype(float), scaled, kind, f"slope {i}")
        rows = [(int(a), repr(float(b))) for a, b in zip(y, scaled)]
        add(f"slope_{i}_{family}_{kind[0]}", family, "y ~ 0 + x", {"coefficients": kind}, rows, "y,x", truth, shards)


def counts():
    for i, (size, n, kind, shards) in enumerate([
        (1e6, 20, ("normal", 14.0, 1.0), 1), (1e12, 10, ("normal", 27.0, 2.0), 2), (1e9, 5, ("cauchy", 20.0, 0.5), 1),
        (1e12, 3, ("laplace", 20.0, 0.3), 1), (3e14, 8, ("normal", 0.0, 10.0), 4), (50.0, 30, ("student_t", 3, 0.0, 0.2), 1),
    ]):
        y = RNG.poisson(size, n)
        truth = one_parameter("poisson", y.astype(float), np.ones(n), kind, f"count {i}")
        add(f"count_{i}_{size:g}", "poisson", "y ~ 1", {"intercept": kind}, [(int(v),) for v in y], "y", truth, shards)


def twins():
    """Two equal columns: only the sum of their coefficients meets the data."""
    def of_sum(kind):
        name, m, s = kind
        if name == "normal":
            return ("normal", 2 * m, s * np.sqrt(2))
        return ("cauchy", 2 * m, 2 * s)

    for i, (family, kind, n, shards) in enumerate([
        ("logistic", ("cauchy", 0, 1.0), 40, 1), ("logistic", ("cauchy", 0, 0.05), 80, 1), ("probit", ("cauchy", 0, 0.2), 60, 3),
        ("logistic", ("normal", 0, 10.0), 30, 2), ("poisson", ("cauchy", 0, 0.05), 40, 1), ("poisson", ("cauchy", 0, 2.5), 10, 1),
    ]):
        x = np.round(RNG.normal(size=n), 2)
        p = 1 / (1 + np.exp(-1.5 * x))
        y = RNG.poisson(np.exp(0.9 * x)) if family == "poisson" else (RNG.random(n) < p).astype(int)
        truth = one_parameter(family, y.astype(float), x, of_sum(kind), f"twins {i}")
        rows = [(int(a), b, b) for a, b in zip(y, x)]
        add(f"twins_{i}_{family}_{kind[0]}", family, "y ~ 0 + x + z", {"coefficients": kind}, rows, "y,x,z", truth, shards)


def single_rows():
    """One row, or two far apart, with more coefficients than rows: x'b of Cauchy or normal b is one number."""
    for i, (family, name, scale, y, width) in enumerate([
        ("poisson", "cauchy", 1.0, 4, 6), ("poisson", "normal", 2.0, 9, 5), ("poisson", "cauchy", 0.1, 30, 3), ("poisson", "cauchy", 2.5, 0, 8),
    ]):
        x = np.round(RNG.normal(size=width), 2)
        total = np.sum(np.abs(x)) * scale if name == "cauchy" else np.sqrt(np.sum(x**2)) * scale
        truth = one_parameter(family, np.array([float(y)]), np.ones(1), (name, 0.0, float(total)), f"row {i}")
        header = "y," + ",".join(f"x{j}" for j in range(width))
        add(f"row_{i}_{family}_{name}", family, "y ~ 0 + " + " + ".join(f"x{j}" for j in range(width)),
            {"coefficients": (name, 0, scale)}, [(y, *x)], header, truth)


def gaussians():
    """y ~ 1: nested rules over log sd and the mean."""
    for i, (y, mean, log_sd, shards, statistics) in enumerate([
        ([15.2, 14.9, 15.1, 15.0, 14.7, 15.3, 15.1, 14.8], ("normal", 0, 1), ("normal", 0, 1), 1, True),
        ([15.2, 14.9, 15.1, 15.0, 14.7, 15.3, 15.1, 14.8], ("normal", 0, 1), ("normal", 0, 1), 4, False),
        ([15.2, 14.9, 15.1, 15.0, 14.7, 15.3, 15.1, 14.8], ("cauchy", 0, 1), ("normal", 0, 1), 2, False),
        ([0.3, -1.1, 0.8, 2.2, 0.1, -0.4, 1.9, 0.6], ("laplace", 0, 1), ("normal", 0, 1), 1, True),
        ([0.3, -1.1, 0.8, 2.2, 0.1, -0.4, 1.9, 0.6], ("laplace", 0, 1), ("normal", 0, 1), 3, False),
        ([3.1], ("student_t", 3, 0, 2.5), ("normal", 0, 1), 1, False),
        ([3.1, 3.0], ("normal", 0, 10), ("student_t", 4, 0, 1), 1, False),
        ([100.0, 101.0, 99.5], ("cauchy", 0, 1), ("normal", 0, 2), 1, True),
        ([1e6 + 1, 1e6 - 2, 1e6 + 0.5, 1e6 + 3], ("normal", 0, 1e6), ("normal", 0, 3), 2, True),
        ([2e-7, -1e-7, 5e-7, 3e-7, 1e-7], ("normal", 0, 1e-6), ("normal", -15, 2), 1, True),
        ([5.0, 5.5, 4.8, 5.1, 40.0], ("student_t", 3, 0, 1), ("laplace", 0, 0.5), 1, False),
        ([8.0, 8.1, 7.9, 8.05, 8.0, 7.95] * 4, ("student_t", 3, 0, 0.5), ("normal", 0, 1), 6, False),
        ([0.0, 0.0, 0.0], ("laplace", 1, 0.5), ("normal", 0, 1), 1, False),
    ]):
        y = np.array(y)
        n = len(y)
        around, ss = y.mean(), np.sum((y - y.mean()) ** 2)

        def inner(u, order):
            sd = np.exp(u)
            width = sd / np.sqrt(n)

            def f(b):
                misfit = ss + n * (b - around) ** 2
                return -n * u - 0.5 * n * np.log(2 * np.pi) - 0.5 * misfit / sd**2 + log_prior(mean, b)

            return log_integral(f, breaks(mean, around, width), order)

        def whole(order):
            floor = max(ss / n, 1e-12)
            points = set(log_sd[-2] + log_sd[-1] * np.arange(-12, 12.5, 0.5))
            points |= set(0.5 * np.log(floor) + np.arange(-4, 8, 0.25)) | set(0.5 * np.log(np.mean(y**2) + 1e-12) + np.arange(-3, 3, 0.25))
            if log_sd[0] == "student_t":
                points |= set(log_sd[-2] + log_sd[-1] * np.concatenate([10.0 ** np.arange(1, 3.6, 0.2), -(10.0 ** np.arange(1, 3.6, 0.2))]))
            points = np.array(sorted(p for p in points if -340 < p < 340))
            u, w = nodes(points, order // 4)
            values = np.array([inner(v, order) for v in u]) + log_prior(log_sd, u)
            return logsumexp(values, b=w)

        RULES.setdefault(6, leggauss(6))
        RULES.setdefault(10, leggauss(10))
        truth = both(whole, f"gaussian {i}")
        add(f"gauss_{i}_{mean[0]}_S{shards}", "gaussian", "y ~ 1", {"intercept": mean, "log_sd": log_sd}, [(repr(float(v)),) for v in y],
            "y", truth, shards, "" if statistics else "statistics = false")


def dispersed():
    """Negative binomial y ~ 1: nested rules over log dispersion and the level."""
    for i, (y, level, dispersion, shards) in enumerate([
        ([0, 0, 0, 0, 7, 0, 0, 22, 0, 1], ("normal", 0, 5), ("student_t", 3, 0, 2.5), 1),
        ([3, 5, 4, 6, 5, 4, 3, 5], ("student_t", 3, 0, 2.5), ("normal", 0, 2), 2),
        ([900, 1100, 1000, 950], ("normal", 0, 1), ("normal", 0, 1), 1),
        ([50, 61, 48, 55, 52, 47], ("cauchy", 0, 0.2), ("normal", 0, 1), 3),
        ([0, 0], ("laplace", 0, 2), ("laplace", 0, 1), 1),
        ([12], ("normal", 0, 3), ("normal", 0, 3), 1),
    ]):
        y = np.array(y, float)

        def inner(a, order):
            def f(eta):
                return negative_binomial(y[:, None], eta, a) + log_prior(level, eta)

            top = np.log(max(y.mean(), 0.2))
            width = np.sqrt((1 / max(y.mean(), 0.2) + np.exp(-min(a, 300))) / len(y))
            return log_integral(f, breaks(level, top, min(width, 50.0)), order)

        def whole(order):
            points = set(dispersion[-2] + dispersion[-1] * np.arange(-12, 12.5, 0.5)) | set(np.arange(-12, 16, 0.5))
            if dispersion[0] == "student_t":
                points |= set(dispersion[-2] + dispersion[-1] * np.concatenate([10.0 ** np.arange(1, 2.4, 0.1), -(10.0 ** np.arange(1, 2.4, 0.1))]))
            # Beyond e^20 the likelihood is Poisson's, and gammaln loses its digits: the prior's tail is added.
            points = np.array(sorted(p for p in points if -300 < p <= 18) + [18.0])
            u, w = nodes(np.unique(points), order // 4)
            values = np.array([inner(v, order) for v in u]) + log_prior(dispersion, u)
            body = logsumexp(values, b=w)
            far = nodes(18 + np.concatenate([[0], 10.0 ** np.arange(-2, 7, 0.1)]), order)
            tail = logsumexp(log_prior(dispersion, far[0]), b=far[1])

            def poisson(eta):
                return log_lik("poisson", y[:, None], eta) + log_prior(level, eta)

            top = np.log(max(y.mean(), 0.2))
            width = np.sqrt(1 / max(y.sum(), 0.5))
            return np.logaddexp(body, tail + log_integral(poisson, breaks(level, top, width), order))

        truth = both(whole, f"dispersed {i}")
        add(f"negbin_{i}_{level[0]}", "negative-binomial", "y ~ 1", {"intercept": level, "log_dispersion": dispersion}, [(int(v),) for v in y], "y", truth, shards)


def ordinary():
    """Two parameters and data enough: nothing special."""
    for i, (family, n, kind, shards) in enumerate([
        ("logistic", 200, ("normal", 0, 2.5), 1), ("probit", 150, ("student_t", 3, 0, 2.5), 5),
        ("poisson", 120, ("laplace", 0, 1.0), 3), ("logistic", 300, ("cauchy", 0, 2.5), 20),
    ]):
        x = np.round(RNG.normal(size=n), 2)
        eta = 0.4 + 0.7 * x
        y = RNG.poisson(np.exp(eta)) if family == "poisson" else (RNG.random(n) < 1 / (1 + np.exp(-eta))).astype(int)
        y = y.astype(float)

        def whole(order):
            points = np.linspace(-1.6, 2.6, 43)
            a, wa = nodes(points, order // 4)
            b, wb = nodes(points, order // 4)
            values = np.array([log_lik(family, y[:, None], u + x[:, None] * b) for u in a])
            values += log_prior(kind, a)[:, None] + log_prior(kind, b)[None, :]
            return logsumexp(values, b=np.outer(wa, wb))

        truth = both(whole, f"ordinary {i}")
        add(f"ordinary_{i}_{family}_{kind[0]}", family, "y ~ x", {"coefficients": kind, "intercept": kind}, [(int(c), d) for c, d in zip(y, x)], "y,x", truth, shards)


def infinite():
    for shards in (1, 2, 3):
        add(f"infinite_S{shards}", "gaussian", "y ~ 1", {"intercept": ("normal", 0, 10), "log_sd": ("cauchy", 0, 1)},
            [(4.5,)] * 3, "y", 0.0, shards, infinite=True)
    add("infinite_by_draws", "gaussian", "y ~ 1", {"intercept": ("normal", 0, 10), "log_sd": ("cauchy", 0, 1)},
        [(4.5,)] * 3, "y", 0.0, 1, "statistics = false", infinite=True)


def trio(name, family, formula, rows, header, kinds, truths, shards):
    """One formula under three priors."""
    study = f'[data]\npath = "d.csv"\n[split]\nshards = {shards}\n'
    for k, kind in enumerate(kinds):
        study += f'[[model]]\nname = "m{k}"\nformula = "{formula}"\nfamily = "{family}"\n[model.prior]\ndefault = "{text(kind)}"\n'
    csv = header + "\n" + "\n".join(",".join(str(v) for v in row) for row in rows) + "\n"
    CASES.append({"name": name, "study": study, "csv": csv, "truths": truths})


def trios():
    kinds = [("cauchy", 0, 2.5), ("laplace", 0, 1.5), ("student_t", 3, 0, 2.0)]
    rows, truths = [], np.zeros(3)
    for level in range(8):
        y = (RNG.random(int(RNG.integers(2, 7))) < RNG.uniform(0.05, 0.95)).astype(int)
        rows += [(int(v), f"L{level}") for v in y]
        truths += [one_parameter("logistic", y.astype(float), np.ones(len(y)), kind, "trio") for kind in kinds]
    trio("hard_levels", "logistic", "y ~ 0 + g", rows, "y,g", kinds, list(truths), 1)
    x = np.round(np.abs(RNG.normal(size=8)) + 0.1, 2) * np.where(np.arange(8) < 4, 1, -1)
    y = (x > 0).astype(float)
    kinds = [("cauchy", 0, 5.0), ("laplace", 0, 4.0), ("normal", 0, 6.0)]
    truths = [one_parameter("logistic", y, x, kind, "trio") for kind in kinds]
    trio("hard_separable", "logistic", "y ~ 0 + x", [(int(a), b) for a, b in zip(y, x)], "y,x", kinds, truths, 2)
    x = np.round(RNG.normal(size=150), 2)
    y = (RNG.random(150) < 1 / (1 + np.exp(-0.6 * x))).astype(float)
    kinds = [("normal", 0, 0.7), ("normal", 0, 1.0), ("normal", 0, 0.4)]
    truths = [one_parameter("logistic", y, x, kind, "trio") for kind in kinds]
    trio("easy_logistic", "logistic", "y ~ 0 + x", [(int(a), b) for a, b in zip(y, x)], "y,x", kinds, truths, 3)
    y = RNG.poisson(np.exp(0.4 * x)).astype(float)
    truths = [one_parameter("poisson", y, x, kind, "trio") for kind in kinds]
    trio("easy_poisson", "poisson", "y ~ 0 + x", [(int(a), b) for a, b in zip(y, x)], "y,x", kinds, truths, 5)


alone = (levels, slopes, counts, twins, single_rows, gaussians, dispersed, ordinary, infinite)
for make in (trios,) if sys.argv[1:] == ["trios"] else alone:
    make()
for case in CASES:
    print(json.dumps(case))
