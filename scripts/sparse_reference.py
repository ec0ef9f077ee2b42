"""Makes tests/data/sparse.csv and sparse.json: a linear regression on allele doses with Laplace(0, 1)
priors on the coefficients and normal(0, 1) priors on intercept and log sd, and its log evidence computed
in two independent ways:

1. by quadrature: given sigma, the likelihood is normal in (intercept, coefficients), and a Laplace prior is
   exponential on each orthant, so the integral over an orthant is a normal orthant probability;
   a trapezoidal rule over log sd does the rest;
2. by importance sampling with a Student-t around the moments of a first run.

Needs numpy and scipy. Run from the repository's top folder: python3 scripts/sparse_reference.py
"""
import itertools
import json
import numpy as np
from scipy.stats import multivariate_normal, multivariate_t

rng = np.random.default_rng(1)
n, p = 400, 4
# Two haplotypes per row; neighbouring variants agree more often than not.
haplotypes = np.zeros((2, n, p))
haplotypes[:, :, 0] = rng.random((2, n)) < 0.4
for j in range(1, p):
    keep = rng.random((2, n)) < 0.6
    haplotypes[:, :, j] = np.where(keep, haplotypes[:, :, j - 1], rng.random((2, n)) < 0.3)
x = haplotypes.sum(axis=0)
y = 0.7 + x @ np.array([0.5, 0.1, 0.0, -0.08]) + 1.2 * rng.standard_normal(n)
y = np.round(y, 6)
design = np.column_stack([np.ones(n), x])
gram, moment, total = design.T @ design, design.T @ y, y @ y
folder = "crates/consilience/tests/data/"
np.savetxt(folder + "sparse.csv", np.column_stack([y, x]), delimiter=",", comments="", fmt="%.10g",
           header="y," + ",".join(f"x{j + 1}" for j in range(p)))


def given_log_sd(u):
    """log of the integral over intercept and coefficients, prior of u included."""
    s2 = np.exp(2 * u)
    precision = gram / s2
    precision[0, 0] += 1.0
    terms = []
    for signs in itertools.product([1.0, -1.0], repeat=p):
        linear = moment / s2 - np.concatenate([[0.0], signs])
        covariance = np.linalg.inv(precision)
        mean = covariance @ linear
        log_all = 0.5 * (linear @ mean) + 0.5 * (p + 1) * np.log(2 * np.pi) + 0.5 * np.linalg.slogdet(covariance)[1]
        # P(sign_j * beta_j > 0 for all j)
        flip = np.diag(signs)
        inner = flip @ covariance[1:, 1:] @ flip
        frozen = multivariate_normal(np.zeros(p), inner, seed=7, abseps=1e-8, releps=1e-8, maxpts=400_000)
        chance = frozen.cdf(flip @ mean[1:])
        terms.append(log_all + np.log(max(chance, 1e-300)))
    log_prior = -p * np.log(2.0) - 0.5 * np.log(2 * np.pi)
    log_likelihood = -n * u - 0.5 * n * np.log(2 * np.pi) - 0.5 * total / s2
    return np.logaddexp.reduce(terms) + log_prior + log_likelihood - 0.5 * u * u - 0.5 * np.log(2 * np.pi)


residual = y - design @ np.linalg.solve(gram, moment)
centre, width = np.log(residual.std()), 1 / np.sqrt(2 * n)
grid = centre + width * np.linspace(-7, 7, 29)
quadrature = np.logaddexp.reduce([given_log_sd(u) for u in grid]) + np.log(grid[1] - grid[0])


def log_target(theta):
    beta, u = theta[:, :-1], theta[:, -1]
    rss = total - 2 * beta @ moment + np.einsum("ki,ij,kj->k", beta, gram, beta)
    value = -n * u - 0.5 * n * np.log(2 * np.pi) - 0.5 * rss * np.exp(-2 * u)
    value += -0.5 * beta[:, 0] ** 2 - 0.5 * u**2 - np.log(2 * np.pi)
    return value - np.abs(beta[:, 1:]).sum(axis=1) - p * np.log(2.0)


mean = np.append(np.linalg.solve(gram, moment), centre)
covariance = np.zeros((p + 2, p + 2))
covariance[:-1, :-1] = np.linalg.inv(gram) * residual.var()
covariance[-1, -1] = width**2
for draws in [200_000, 2_000_000]:
    proposal = multivariate_t(mean, covariance, df=8, seed=rng)
    theta = proposal.rvs(draws)
    log_weights = log_target(theta) - proposal.logpdf(theta)
    weights = np.exp(log_weights - log_weights.max())
    sampled = log_weights.max() + np.log(weights.mean())
    se = weights.std() / np.sqrt(draws) / weights.mean()
    mean = weights @ theta / weights.sum()
    covariance = np.cov(theta.T, aweights=weights) * 6 / 8

print(f"quadrature {quadrature:.6f}, importance sampling {sampled:.6f} +- {se:.6f}")
assert abs(quadrature - sampled) < 4 * se
with open(folder + "sparse.json", "w") as out:
    json.dump({"formula": "y ~ x1 + x2 + x3 + x4", "quadrature": quadrature, "importance": {"value": sampled, "se": se}}, out, indent=1)
