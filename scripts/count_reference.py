"""Makes tests/data/counts.csv and counts.json: counts with an exposure, and the log evidences of a Poisson and
a negative-binomial regression of them under normal(0, 1) priors, computed in two independent ways:

1. by Gauss-Hermite quadrature in coordinates that are whitened at the mode, with two numbers of nodes;
2. by importance sampling with a Student-t around the mode.

Needs numpy and scipy. Run from the repository's top folder: python3 scripts/count_reference.py
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
