"""Prints the log evidences that tests/gaussian_exact.rs holds the program to: Gaussian models whose
posterior has two peaks, heavy tails, kinks, a perfect fit, or data far from 0. Every number comes from the
rows themselves in 40 digits: given sigma (and the variances of scale mixtures) y is multivariate normal, and
mpmath integrates over the rest. No formula is shared with the program.

Needs mpmath. Run from the repository's top folder: python3 scripts/gaussian_reference.py
"""
from mpmath import mp, mpf, quad, log, exp, sqrt, pi, gamma, matrix, lu_solve, det, inf

mp.dps = 40


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
    """p(y|sigma) of a linear model with normal priors, by the moments of y."""
    n = len(y)
    left = matrix([y[i] - sum(c[i] * mpf(m) for c, m in zip(columns, means)) for i in range(n)])
    shared = matrix(n, n)
    for c, s in zip(columns, sds):
        for i in range(n):
            for j in range(n):
                shared[i, j] += mpf(s) ** 2 * c[i] * c[j]

    def density(u):
        covariance = shared.copy()
        for i in range(n):
            covariance[i, i] += exp(2 * u)
        misfit = (left.T * lu_solve(covariance, left))[0]
        return exp(-misfit / 2) / sqrt((2 * pi) ** n * det(covariance))

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

# As many rows as coefficients: the likelihood has a limit as sd falls, and the prior's tail counts.
show("one row, cauchy log_sd",
     over(line(numbers([3]), 0, 1), cauchy(0, 1),
          [-inf] + [-mpf(2) ** k for k in range(20, -2, -1)] + between(0, 6, 0.5) + [8, 12, 20, 40]))


mp.dps = 25


def intercept(y, prior, scale, u_prior, us):
    """y ~ 1 under any prior around 0, with panels where likelihood and prior are."""
    n = len(y)
    centre = sum(y) / n
    squares = sum((v - centre) ** 2 for v in y)

    def inner(u):
        s = exp(u)
        sd = s / sqrt(mpf(n))
        outside = exp(-squares / (2 * s * s)) / (sqrt(2 * pi) * s) ** n
        steps = [-40, -20, -12, -8, -5, -3, -1, 0, 1, 3, 5, 8, 12, 20, 40]
        cuts = [centre + k * sd for k in steps]
        low, high = cuts[0], cuts[-1]
        cuts += [c for k in range(-12, 13) for c in (scale * mpf(3) ** k, -scale * mpf(3) ** k) if low < c < high]
        if low < 0 < high:
            cuts.append(mpf(0))
        return outside * exp(whole(lambda b: exp(-((b - centre) / sd) ** 2 / 2) * prior(b), sorted(set(cuts))))

    if u_prior is None:
        return log(inner(mpf(0)))
    return whole(lambda u: inner(u) * u_prior(u), us)


show("one row, cauchy(0, 0.01)", intercept(numbers([5]), cauchy(0, 0.01), mpf(0.01), None, None))
show("one row, laplace(0, 0.1)", intercept(numbers([5]), laplace(0, 0.1), mpf(0.1), None, None))
us = between(-8, 7, 1)
for text, prior, scale in [("student_t(3, 0, 2.5)", student(3, 0, 2.5), mpf(2.5)),
                           ("cauchy(0, 0.01)", cauchy(0, 0.01), mpf(0.01)),
                           ("laplace(0, 0.1)", laplace(0, 0.1), mpf(0.1))]:
    for data in [["5"], ["5", "5.5"], ["5", "5.5", "4"], ["5", "5", "5"]]:
        show(f"y ~ 1 with {' '.join(data)} under {text}", intercept(numbers(data), prior, scale, normal(0, 1), us))

# The same column twice under student_t(3, 0, 0.1), sd 1: only the sum of the two coefficients matters.
ten = "-0.844,-0.595 2.084,0.631 2.408,1.039 0.759,1.031 4.541,1.818 -0.324,-0.385 0.551,0.544 -0.151,-0.366 "
ten = [numbers(pair.split(",")) for pair in (ten + "-2.485,-1.425 -1.114,-0.704").split()]
prior = student(3, 0, 0.1)
xx, xy, yy = (sum(r[i] * r[j] for r in ten) for i, j in ((1, 1), (1, 0), (0, 0)))


def of_sum(total):
    scale = [mpf(0.1) * mpf(2) ** k for k in range(-2, 12)]
    cuts = [0, total] + [c + s * d for c in (0, total) for s in (-1, 1) for d in scale]
    return exp(whole(lambda b: prior(b) * prior(total - b), [-inf] + sorted(set(cuts)) + [inf]))


mp.dps = 15
show("a column twice under student_t(3, 0, 0.1)",
     whole(lambda b: exp(-(yy - 2 * b * xy + b * b * xx) / 2) * of_sum(b), between(-2, 5, 0.5))
     - len(ten) * log(2 * pi) / 2)
