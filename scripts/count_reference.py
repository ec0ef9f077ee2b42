"""Makes tests/data/counts.csv and counts.json: counts with an exposure, and the log evidences of a Poisson and
a negative-binomial regression of them under normal(0, 1) priors, computed in two independent ways:

1. by Gauss-Hermite quadrature in coordinates that are whitened at the mode, with two numbers of nodes;
2. by importance sampling with a Student-t around the mode.

Also makes tests/data/large_counts.json: log-likelihoods of large counts with their derivatives, by mpmath.

Needs numpy, scipy and mpmath. Run from the repository's top folder: python3 scripts/count_reference.py
"""
import json
import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln
from scipy.stats import multivariate_t

rng = np.random.default_rng(1)
n = 1000
x1 = np.round(rng.standard_normal(n), 3)
x2 = np.where(rng.random(n) < 0.3, 1.0, 0.0)
exposure = np.round(rng.uniform(0.5, 3.0, n), 2)
mean = exposure * np.exp(0.4 + 0.3 * x1 - 0.5 * x2)
y = rng.poisson(mean * rng.gamma(3.0, 1 / 3.0, n))
folder = "crates/consilience/tests/data/"
np.savetxt(folder + "counts.csv", np.column_stack([y, x1, x2, exposure]), delimiter=",", comments="", fmt="%.10g",
           header="y,x1,x2,exposure")
design = np.column_stack([np.ones(n), x1, x2])
offset = np.log(exposure)


def log_prior(theta):
    return -0.5 * (theta**2).sum(-1) - 0.5 * theta.shape[-1] * np.log(2 * np.pi)


def poisson(theta):
    eta = theta @ design.T + offset
    return (y * eta - np.exp(eta) - gammaln(y + 1)).sum(-1) + log_prior(theta)


def negative_binomial(theta):
    a = theta[..., 3:]
    eta, r = theta[..., :3] @ design.T + offset, np.exp(a)
    terms = gammaln(y + r) - gammaln(r) - gammaln(y + 1) + y * (eta - a) - (y + r) * np.logaddexp(0, eta - a)
    return terms.sum(-1) + log_prior(theta)


def in_parts(log_f, points):
    return np.concatenate([log_f(part) for part in np.array_split(points, max(1, len(points) // 2000))])


def reference(log_f, d):
    found = minimize(lambda t: -log_f(t), np.zeros(d), method="BFGS", options={"gtol": 1e-8})
    step, unit = 1e-3, np.eye(d)
    at = lambda i, j, a, b: log_f(found.x + step * (a * unit[i] + b * unit[j]))
    hessian = np.array([[(at(i, j, 1, 1) - at(i, j, 1, -1) - at(i, j, -1, 1) + at(i, j, -1, -1)) / (4 * step**2)
                         for j in range(d)] for i in range(d)])
    covariance = np.linalg.inv(-hessian)
    root = np.linalg.cholesky(covariance)
    log_det = np.log(np.diag(root)).sum()

    def hermite(nodes):
        z, w = np.polynomial.hermite.hermgauss(nodes)
        grid = np.stack(np.meshgrid(*[z] * d, indexing="ij"), -1).reshape(-1, d)
        weights = sum(np.meshgrid(*[np.log(w) + z**2] * d, indexing="ij")).reshape(-1)
        keep = weights - (grid**2).sum(-1) > -60
        points = found.x + np.sqrt(2) * grid[keep] @ root.T
        return np.logaddexp.reduce(in_parts(log_f, points) + weights[keep]) + log_det + 0.5 * d * np.log(2)

    proposal = multivariate_t(found.x, covariance, df=7, seed=2)
    draws = proposal.rvs(200_000)
    logs = in_parts(log_f, draws) - proposal.logpdf(draws)
    top = logs.max()
    weights = np.exp(logs - top)
    value = top + np.log(weights.mean())
    se = weights.std(ddof=1) / weights.mean() / np.sqrt(len(weights))
    fine, coarse = hermite(20), hermite(16)
    return {"quadrature": fine, "coarser": coarse, "importance": {"value": value, "se": se}}


out = {
    "formula": "y ~ x1 + x2 + offset(log(exposure))",
    "poisson": reference(poisson, 3),
    "negative-binomial": reference(negative_binomial, 4),
}
print(json.dumps(out, indent=1))
for family in ["poisson", "negative-binomial"]:
    case = out[family]
    assert abs(case["quadrature"] - case["coarser"]) < 1e-6, "the quadrature has not converged"
    assert abs(case["quadrature"] - case["importance"]["value"]) < 4 * case["importance"]["se"]
with open(folder + "counts.json", "w") as file:
    json.dump(out, file, indent=1)
    file.write("\n")

# ---------------------------------------------------------------------------------------------------------------------
# tests/data/large_counts.json: log-likelihoods of counts up to 2^53 with gradient and Hessian, by mpmath with 80 digits
# from the textbook formulas.
import mpmath as mp

mp.mp.dps = 80


def log_likelihood(case, theta):
    d = len(case["columns"])
    total = mp.mpf(0)
    for i, y in enumerate(case["y"]):
        eta = mp.mpf(case["offset"][i]) + sum(mp.mpf(c[i]) * t for c, t in zip(case["columns"], theta[:d]))
        if case["family"] == "poisson":
            term = y * eta - mp.exp(eta) - mp.loggamma(y + 1)
        else:
            r, mean = mp.exp(theta[d]), mp.exp(eta)
            # log(1 + x) keeps its digits where r and the mean are far apart.
            term = (mp.loggamma(y + r) - mp.loggamma(r) - mp.loggamma(y + 1)
                    - r * mp.log1p(mean / r) - y * mp.log1p(r / mean))
        total += case["weights"][i] * term
    return total


def with_derivatives(case, theta):
    # Small enough beside what counts of 2^53 leave of a step, large enough beside 80 digits.
    theta, h = [mp.mpf(t) for t in theta], mp.mpf(10) ** -20
    d = len(theta)
    if case["family"] != "poisson":
        # log Γ(y + r) − log Γ(r) cancels as far as r is large.
        mp.mp.dps = 80 + int(max(0, theta[-1]) / 2)

    def at(*steps):
        moved = list(theta)
        for j, s in steps:
            moved[j] += s * h
        return log_likelihood(case, moved)

    here = at()
    up, down = [at((j, 1)) for j in range(d)], [at((j, -1)) for j in range(d)]
    gradient = [(u - l) / (2 * h) for u, l in zip(up, down)]
    hessian = [[(up[i] - 2 * here + down[i]) / h**2 if i == j else
                (at((i, 1), (j, 1)) - at((i, 1), (j, -1)) - at((i, -1), (j, 1)) + at((i, -1), (j, -1))) / (4 * h**2)
                for j in range(d)] for i in range(d)]
    mp.mp.dps = 80
    return {"theta": [float(t) for t in theta], "value": float(here), "gradient": [float(g) for g in gradient],
            "hessian": [[float(v) for v in row] for row in hessian]}


def large_cases():
    rng = np.random.default_rng(7)
    draw = lambda mean, n: [int(v) for v in np.round(mean + np.sqrt(mean) * rng.standard_normal(n))]
    cases = []
    for mean, n in [(3e8, 6), (1e13, 12), (4e15, 3)]:
        y = draw(mean, n)
        plain = {"columns": [[1.0] * n], "y": y, "offset": [0.0] * n, "weights": [1] * n}
        top, sd = float(mp.log(sum(y)) - mp.log(n)), float(1 / mp.sqrt(sum(y)))
        cases.append({"family": "poisson", **plain,
                      "thetas": [[top + k * sd] for k in (-3, 0.5, 2)] + [[top - 0.7], [top + 3]]})
        thetas = [[top + k * sd, a] for a in (-700.0, -30.0, -1.0, 3.0, 10.0, 31.0, 34.0, 60.0, 600.0) for k in (-1, 2)]
        cases.append({"family": "negative-binomial", **plain, "thetas": thetas + [[top - 20, 1.5], [top + 2, 33.0]]})
    # All sizes at once, with an offset that goes with them, weights, and rows that differ in the outcome alone.
    sizes = [0, 0, 1, 10, 137, 10**6, 10**6, 10**13, 4 * 10**15, 2**53 - 1]
    rows = [(s, x, k) for s in sizes for x in (-1.0, 0.5) for k in range(2)]
    y = [s if s < 10**6 or s > 9 * 10**15 else draw(s, 1)[0] for s, _, _ in rows]
    offset = [float(np.log(max(s, 0.5))) for s, _, _ in rows]
    mixed = {"columns": [[1.0] * len(y), [x for _, x, _ in rows]], "y": y, "offset": offset,
             "weights": [1 + i % 3 for i in range(len(y))]}
    points = [[0.0, 0.0], [1e-8, -2e-8], [0.3, -0.2]]
    cases.append({"family": "poisson", **mixed, "thetas": points})
    cases.append({"family": "negative-binomial", **mixed,
                  "thetas": [[*p, a] for p in points for a in (-700.0, -20.0, -0.5, 2.0, 20.0, 33.0, 300.0)]})
    # Ordinary counts, at ordinary and at far dispersions.
    y = [0, 0, 1, 3, 10, 41, 60, 900]
    usual = {"columns": [[1.0] * 8, [0.5, -1.0, 0.25, 0.0, 1.0, 2.0, 1.5, 3.0]], "y": y, "offset": [0.1] * 8, "weights": [2] * 8}
    cases.append({"family": "negative-binomial", **usual,
                  "thetas": [[1.0, 1.7, a] for a in (-700.0, -40.0, -2.0, 0.0, 3.0, 12.0, 40.0, 300.0, 600.0)]})
    return cases


cases = large_cases()
for case in cases:
    case["points"] = [with_derivatives(case, theta) for theta in case.pop("thetas")]
with open(folder + "large_counts.json", "w") as file:
    json.dump(cases, file)
    file.write("\n")
