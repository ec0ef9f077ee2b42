"""Makes crates/consilience/tests/data/families.json: log-likelihoods of every family that has parameters of its own, or
outcomes of more than one number, with gradients and Hessians, by mpmath: textbook formulas, differences with 150 digits.

Needs mpmath. Run from the repository's top folder: python3 scripts/family_reference.py
"""
import json
import random
from mpmath import mp, mpf, exp, log, loggamma, ncdf, npdf, pi, sqrt, inf

mp.dps = 150
rng = random.Random(18)
N = 14


def logistic(x):
    return 1 / (1 + exp(-x))


def student(eta, y, _, own):
    sd, df = exp(own[0]), exp(own[1])
    r = (y - eta) / sd
    return (loggamma((df + 1) / 2) - loggamma(df / 2) - log(df * pi) / 2 - log(sd)
            - (df + 1) / 2 * log(1 + r * r / df))


def gamma(eta, y, _, own):
    shape = exp(own[0])
    rate = shape / exp(eta)
    return shape * log(rate) + (shape - 1) * log(y) - rate * y - loggamma(shape)


def beta(eta, y, _, own):
    precision, mean = exp(own[0]), logistic(eta)
    p, q = mean * precision, (1 - mean) * precision
    return loggamma(precision) - loggamma(p) - loggamma(q) + (p - 1) * log(y) + (q - 1) * log(1 - y)


def weibull(eta, low, high, own):
    shape = exp(own[0]) if own else mpf(1)
    hazard = lambda t: (t / exp(eta)) ** shape
    if low == high:
        return log(shape) - log(low) + log(hazard(low)) - hazard(low)
    upper = mpf(0) if high == inf else exp(-hazard(high))
    lower = mpf(1) if low == 0 else exp(-hazard(low))
    return log(lower - upper)


def log_normal(eta, low, high, own):
    sd = exp(own[0])
    z = lambda t: (log(t) - eta) / sd
    if low == high:
        return log(npdf(z(low))) - log(sd) - log(low)
    if low == 0:
        return log(ncdf(z(high)))
    # From the side on which nothing cancels.
    if z(low) > 0:
        return log(ncdf(-z(low)) - (0 if high == inf else ncdf(-z(high))))
    return log((1 if high == inf else ncdf(z(high))) - ncdf(z(low)))


def cumulative(distribution):
    def law(eta, y, classes, own):
        cuts = [own[0]]
        for gap in own[1:]:
            cuts.append(cuts[-1] + exp(gap))
        upper = mpf(1) if y == classes - 1 else distribution(cuts[int(y)] - eta)
        lower = mpf(0) if y == 0 else distribution(cuts[int(y) - 1] - eta)
        return log(upper - lower)
    return law


def zero_inflated(eta, y, _, own):
    share, mean = logistic(own[0]), exp(eta)
    poisson = exp(y * eta - mean - loggamma(y + 1))
    return log((share if y == 0 else 0) + (1 - share) * poisson)


def binomial(distribution):
    def law(eta, k, n, _):
        p = distribution(eta)
        ways = loggamma(n + 1) - loggamma(k + 1) - loggamma(n - k + 1)
        return ways + (k * log(p) if k else 0) + ((n - k) * log(1 - p) if n > k else 0)
    return law


def times(kind):
    t = round(rng.expovariate(0.5) + 0.05, 3)
    return {0: (t, t), 1: (t, inf), 2: (0.0, t), 3: (t, round(t * 1.7, 3))}[kind]


def outcomes(family):
    uniform = rng.random
    if family == "student-t":
        return [round(rng.gauss(0.5, 1.0) * (5 if i % 5 == 0 else 1), 3) for i in range(N)], None
    if family == "gamma":
        return [round(rng.gammavariate(2.0, 1.0) + 0.01, 4) for _ in range(N)], None
    if family == "beta":
        return [round(0.01 + 0.98 * uniform(), 4) for _ in range(N)], None
    if family in ("exponential", "weibull", "log-normal"):
        pairs = [times(i % 4) for i in range(N)]
        return [a for a, _ in pairs], [b for _, b in pairs]
    if family.startswith("cumulative"):
        return [float(rng.randrange(4)) for _ in range(N)], [4.0] * N
    if family == "zero-inflated-poisson":
        return [float(max(0, rng.randrange(-3, 5))) for _ in range(N)], None
    trials = [float(rng.randrange(0, 9)) for _ in range(N)]
    return [float(rng.randrange(int(n) + 1)) for n in trials], trials


normal = lambda x: ncdf(x)
FAMILIES = [
    ("logistic", binomial(logistic), 0),
    ("probit", binomial(normal), 0),
    ("student-t", student, 2),
    ("gamma", gamma, 1),
    ("beta", beta, 1),
    ("exponential", weibull, 0),
    ("weibull", weibull, 1),
    ("log-normal", log_normal, 1),
    ("cumulative-logit", cumulative(logistic), 3),
    ("cumulative-probit", cumulative(normal), 3),
    ("zero-inflated-poisson", zero_inflated, 1),
]


def points(family, own):
    beta = [[0.3, -0.4], [-0.8, 0.7], [1.5, 1.1]]
    owns = [[0.2, -0.5, 0.1], [-0.7, 0.3, -0.4], [1.9, 2.5, 0.8]]
    # Far out: tails, and shapes so large that terms cancel.
    far = [([4.0, -3.0], [-1.5, 1.0, -2.0])]
    if own == 1:
        far.append(([0.4, 0.2], [4.5 if family in ("gamma", "beta") else 1.2]))
        far.append(([0.4, 0.2], [-2.5]))
    if own == 2:
        far.append(([0.4, 0.2], [0.1, 18.0]))
    return [b + o[:own] for b, o in zip(beta, owns)] + [b + o[:own] for b, o in far]


cases = []
for family, law, own in FAMILIES:
    y, second = outcomes(family)
    columns = [[1.0] * N, [round(rng.gauss(0, 1), 2) for _ in range(N)]]
    offset = [round(0.3 * rng.random(), 2) for _ in range(N)]
    weights = [float(1 + i % 3) for i in range(N)]

    def value(*theta):
        total = mpf(0)
        for i in range(N):
            eta = mpf(offset[i]) + sum(mpf(c[i]) * b for c, b in zip(columns, theta))
            z = None if second is None else (inf if second[i] == inf else mpf(second[i]))
            total += mpf(weights[i]) * law(eta, mpf(y[i]), z, list(theta[2:]))
        return total

    found = []
    for theta in points(family, own):
        at = tuple(mpf(t) for t in theta)
        d = len(at)
        order = lambda *which: tuple(sum(1 for w in which if w == j) for j in range(d))
        gradient = [mp.diff(value, at, order(j)) for j in range(d)]
        hessian = [[mp.diff(value, at, order(j, k)) if k <= j else None for k in range(d)] for j in range(d)]
        for j in range(d):
            for k in range(j + 1, d):
                hessian[j][k] = hessian[k][j]
        found.append({
            "theta": theta,
            "value": float(value(*at)),
            "gradient": [float(g) for g in gradient],
            "hessian": [[float(h) for h in row] for row in hessian],
        })
    print(family, [f["value"] for f in found], flush=True)
    # A bound that is infinite is written as null, which JSON has.
    bounds = None if second is None else [None if s == inf else s for s in second]
    cases.append({"family": family, "columns": columns, "y": y, "second": bounds, "offset": offset,
                  "weights": weights, "own": own, "points": found})
with open("crates/consilience/tests/data/families.json", "w") as out:
    json.dump(cases, out, indent=0)
    out.write("\n")
