"""Prints the log evidences that tests/numbers/gaussian_exact.rs holds the program to: Gaussian models whose
posterior has two peaks, heavy tails, kinks, a perfect fit, or data far from 0. With normal priors on the
coefficients the numbers come from the rows in 40 digits and more, and mpmath integrates over log sd; with
others both integrals are computed directly, in doubles. No formula is shared with the program.

Needs mpmath and numpy. Run from the repository's top folder: python3 scripts/gaussian_reference.py
"""
import json
from math import lgamma

import numpy as np
from mpmath import mp, mpf, quad, log, exp, sqrt, pi, gamma, matrix, lu_solve, det, inf

mp.dps = 40
with open("crates/consilience/tests/data/gaussian_hard.jsonl") as lines:
    hard = {case["name"]: case["csv"] for case in map(json.loads, lines)}


def normal(mean, sd):
    return lambda x: exp(-((x - mpf(mean)) / mpf(sd)) ** 2 / 2) / (mpf(sd) * sqrt(2 * pi))


def laplace(mean, b):
    return lambda x: exp(-abs(x - mpf(mean)) / mpf(b)) / (2 * mpf(b))


def student(df, mean, scale):
    df, scale = mpf(df), mpf(scale)
    constant = gamma((df + 1) / 2) / (gamma(df / 2) * sqrt(df * pi) * scale)
    return lambda x: constant * (1 + ((x - mpf(mean)) / scale) ** 2 / df) ** (-(df + 1) / 2)


def cauchy(mean, scale):
    return student(1, mean, scale)


def rows(y, columns, means, sds):
    """p(y|sigma) of a linear model with normal priors, by completing the square."""
    n, p = len(y), len(columns)
    left = [y[i] - sum(c[i] * mpf(m) for c, m in zip(columns, means)) for i in range(n)]
    gram = matrix(p, p)
    for i in range(p):
        for j in range(p):
            gram[i, j] = sum(a * b for a, b in zip(columns[i], columns[j]))
    cross = matrix([sum(a * b for a, b in zip(c, left)) for c in columns])
    total = sum(v * v for v in left)

    def density(u):
        s2 = exp(2 * u)
        precision = gram / s2
        for j in range(p):
            precision[j, j] += 1 / mpf(sds[j]) ** 2
        explained = (cross.T * lu_solve(precision, cross))[0] / s2 ** 2
        prior = 1
        for sd in sds:
            prior *= mpf(sd) ** 2
        return exp((explained - total / s2) / 2) / sqrt((2 * pi * s2) ** n * det(precision) * prior)

    return density


def line(y, mean, sd):
    """The same for y ~ 1, by its mean and the squares around it (exact in this many digits)."""
    n = len(y)
    centre = sum(y) / n
    squares = sum((v - centre) ** 2 for v in y)
    off, sd = centre - mpf(mean), mpf(sd)

    def density(u):
        s2 = exp(2 * u)
        # y has variance s2 along n - 1 directions and s2 + n·sd² along the mean.
        own = s2 + n * sd ** 2
        return exp(-squares / (2 * s2) - n * off ** 2 / (2 * own)) / (
            (2 * pi) ** (mpf(n) / 2) * s2 ** (mpf(n - 1) / 2) * sqrt(own))

    return density


def whole(f, points):
    """log of the integral of f over panels between these points. mpmath stops at an absolute error, so f is
    brought to a height of about 1 first."""
    finite = [x for x in points if abs(x) != inf]
    inner = [a + (b - a) * mpf(k) / 8 for a, b in zip(finite, finite[1:]) for k in range(8)]
    top = max(f(x) for x in inner)
    return log(quad(lambda x: f(x) / top, points)) + log(top)


def over(density, prior, points):
    return whole(lambda u: density(u) * prior(u), points)


def between(low, high, step):
    return [mpf(low) + k * mpf(step) for k in range(int((high - low) / step) + 1)]


def show(name, value):
    print(f"{name}: {mp.nstr(value, 17)}")


def numbers(values):
    """Decimals as the program reads them: the nearest doubles."""
    return [mpf(float(v)) for v in values]


twenty = numbers(
    "15.3535 14.6058 15.0895 14.9292 14.9479 14.9865 14.6929 14.9838 14.8808 15.5621 "
    "15.0583 14.9642 14.9758 14.9129 14.8499 14.958 15.0999 14.9827 15.1773 14.989".split())
show("two peaks", over(line(twenty, 0, 1), normal(0, 1), between(-6, 6, 0.25)))

same = numbers(["0.1"] * 60)
show("60 equal rows", over(line(same, 0, 1), normal(0, 1), between(-80, -40, 1)))
show("60 equal rows, laplace(0, 0.01)",
     over(line(same, 0, 1), laplace(0, 0.01), between(-4, 4, 0.05)))

far = numbers([1.7e9 + 0.01 * ((7919 * i) % 201 - 100) / 58 for i in range(200)])
show("far from 0", over(line(far, 1.7e9, 1), normal(0, 1), between(-7, 3, 0.1)))

# y = 3 + 2(x − 1.7e9) + noise, x = 1.7e9 ± 1: slope normal(0, 1), intercept normal(−3.4e9, 10).
x = numbers([1.7e9 + ((37 * i) % 40 - 19.5) / 10 for i in range(40)])
noise = [mpf((7919 * i) % 41 - 20) / 100 for i in range(40)]
y = numbers([3 + 2 * (v - mpf(1.7e9)) + e for v, e in zip(x, noise)])
ones = [mpf(1)] * 40
mp.dps = 60
show("a column far from 0", over(rows(y, [ones, x], [-3.4e9, 0], [10, 1]), normal(0, 1),
                                 between(-4, 2, 0.25)))
mp.dps = 40

normals = numbers(
    "-1.11 -0.288 -0.263 -0.237 1.119 0.133 0.359 0.006 -0.898 0.172 0.726 0.117 -0.548 -1.221 "
    "1.625 -0.787 -0.795 -1.312 0.312 0.107".split())
spots = [mpf(0.8)] + [mpf(0.8) + s * mpf(2) ** k / 1000 for s in (-1, 1) for k in range(9)]
show("cauchy(0.8, 0.001)", over(line(normals, 0, 1), cauchy(0.8, 0.001), sorted(set(spots + between(-2, 6, 0.25)))))

# A case of tests/data/gaussian_hard.jsonl whose first reference was good to five digits only.
values = numbers(hard["C_cauchy125002"].split()[1:])
spots = [mpf("1.25")] + [mpf("1.25") + s * mpf(2) ** k / 50 for s in (-1, 1) for k in range(5)]
show("cauchy(1.25, 0.02)",
     over(line(values, 0, 1), cauchy("1.25", "0.02"), sorted(set(spots + between(-2, 6, 0.25)))))

# As many rows as coefficients: the likelihood has a limit as sd falls, and the prior's tail counts.
show("one row, cauchy log_sd",
     over(line(numbers([3]), 0, 1), cauchy(0, 1),
          [-inf] + [-mpf(2) ** k for k in range(20, -2, -1)] + between(0, 6, 0.5) + [8, 12, 20, 40]))


# From here on in doubles: Gauss-Legendre on many panels, over the coefficient itself within log sd.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)


def panels(cuts):
    """Nodes and weights on the panels between these points."""
    cuts = np.array(sorted(set(cuts)))
    half = np.diff(cuts) / 2
    middle = cuts[:-1] + half
    return (middle[:, None] + half[:, None] * NODES).ravel(), (half[:, None] * WEIGHTS).ravel()


def wide(centre, scale):
    return [centre + s * scale * 2.0 ** k for s in (-1, 1) for k in range(-3, 40)] + [centre]


def heights(log_prior, y, u):
    """log of the integral over the intercept given log sd."""
    n, centre = len(y), np.mean(y)
    squares = np.sum((y - centre) ** 2)
    sd = np.exp(u) / np.sqrt(n)
    low, high = centre - 40 * sd, centre + 40 * sd
    cuts = [low, high] + [c for c in wide(centre, sd) + wide(0.0, 0.01) if low < c < high]
    b, weight = panels(cuts)
    inside = np.sum(weight * np.exp(-((b - centre) / sd) ** 2 / 2 + log_prior(b)))
    return np.log(inside) - squares / (2 * np.exp(2 * u)) - n * (u + np.log(2 * np.pi) / 2)


def log_student(df, scale):
    constant = lgamma((df + 1) / 2) - lgamma(df / 2) - 0.5 * np.log(df * np.pi) - np.log(scale)
    return lambda x: constant - (df + 1) / 2 * np.log1p((x / scale) ** 2 / df)


def log_laplace(b):
    return lambda x: -np.abs(x) / b - np.log(2 * b)


for text, prior in [("student_t(3, 0, 2.5)", log_student(3, 2.5)), ("cauchy(0, 0.01)", log_student(1, 0.01)),
                    ("laplace(0, 0.1)", log_laplace(0.1))]:
    print(f"y ~ 1 with 5 under {text}, sd 1: {heights(prior, np.array([5.0]), 0.0):.13f}")
    for data in [[5.0], [5.0, 5.5, 4.0], [5.0, 5.0, 5.0]]:
        u, weight = panels(np.arange(-9, 9.01, 0.5))
        logs = np.array([heights(prior, np.array(data), v) for v in u]) - u ** 2 / 2 - np.log(2 * np.pi) / 2
        value = np.log(np.sum(weight * np.exp(logs - logs.max()))) + logs.max()
        print(f"y ~ 1 with {data} under {text}: {value:.13f}")

# The same column twice under student_t(3, 0, 0.1), sd 1: only the sum of the two coefficients matters.
y, x = np.array([row.split(",")[:2] for row in hard["I_gaussian_student_t_3__0__0_1_"].split()[1:]], float).T
prior = log_student(3, 0.1)
total, outer = panels(np.arange(-3, 6.01, 0.25))
sums = []
for t in total:
    b, weight = panels(wide(0.0, 0.1) + wide(t, 0.1))
    sums.append(np.sum(weight * np.exp(prior(b) + prior(t - b))))
misfit = ((y[:, None] - x[:, None] * total) ** 2).sum(axis=0)
value = np.log(np.sum(outer * np.exp(-misfit / 2) * np.array(sums))) - len(y) * np.log(2 * np.pi) / 2
print(f"a column twice under student_t(3, 0, 0.1): {value:.13f}")
