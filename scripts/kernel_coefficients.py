"""The polynomials in crates/consilience/src/kernel/ (functions.rs, x86.rs): interpolants at Chebyshev's nodes
(next to the best there are), as coefficients from the constant up, with their largest relative errors.

    python3 scripts/kernel_coefficients.py     # needs mpmath
"""

from mpmath import atanh, cos, erfc, exp, linspace, log, lu_solve, matrix, mp, mpf, pi, polyval, quad, sqrt

mp.dps = 60


def fit(f, a, b, degree):
    nodes = [(a + b) / 2 + (b - a) / 2 * cos(pi * (2 * k + 1) / (2 * (degree + 1))) for k in range(degree + 1)]
    return list(lu_solve(matrix([[x**j for j in range(degree + 1)] for x in nodes]), matrix([f(x) for x in nodes])))


def show(name, f, a, b, degree):
    coefficients = fit(f, a, b, degree)
    error = max(abs(polyval(coefficients[::-1], x) / f(x) - 1) for x in linspace(a, b, 999)[1:-1])
    print(f"{name}: relative error {float(error):.1e}")
    for c in coefficients:
        print(f"    {float(c)!r},")


def mills(z):
    """The chance above z of a standard normal, over its density at z."""
    if z < 200:
        return sqrt(pi / 2) * exp(z * z / 2) * erfc(z / sqrt(2))
    return quad(lambda u: exp(-u - u * u / (2 * z * z)) / z, [0, 5, 20, 60, 150])


def mills_in_t(t):
    if t == 1:
        return mpf(1)
    z = 5 * (1 + t) / (1 - t)
    return (1 + z) * mills(z)


def power(f):
    """(2^f - 1)/f."""
    return (2**f - 1) / f if abs(f) > mpf(10) ** -25 else log(2)


show("(2^f - 1)/f to a half", power, mpf(-1) / 2, mpf(1) / 2, 9)
show("(2^f - 1)/f to a quarter (AVX2)", power, mpf(-1) / 4, mpf(1) / 4, 7)
show("(2^f - 1)/f to a 32nd (AVX-512)", power, mpf(-1) / 32, mpf(1) / 32, 4)
show("2 artanh(s)/s in s^2", lambda t: 2 * atanh(sqrt(t)) / sqrt(t) if t else mpf(2), mpf(0), mpf(1) / 9, 10)
show("(1 + z) mills(z) in t = (z - 5)/(z + 5)", mills_in_t, mpf(-1), mpf(1), 24)
print("2^(i/16)")
for i in range(16):
    print(f"    {float(mpf(2) ** (mpf(i) / 16))!r},")
