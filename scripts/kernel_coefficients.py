"""The polynomials in crates/consilience/src/kernel/ (functions.rs, x86.rs): interpolants at Chebyshev's nodes
(next to the best there are), as coefficients from the constant up, with their largest relative errors.

    python3 scripts/kernel_coefficients.py     # needs mpmath
"""

from mpmath import atanh, chebyt, cos, erfc, exp, linspace, log, lu_solve, matrix, mp, mpf, pi, polyval, quad, sqrt

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


def tail(w):
    """2^(w^2) times the chance above z of a standard normal, where 2^(-w^2) = e^(-z^2/2)."""
    return mills(w * sqrt(2 * log(2))) / sqrt(2 * pi)


def ratio(name, f, n, c, rounds=5):
    """f(w) = P(w)/Q(w) for w >= 0 with degrees n - 1 and n, by Remez' algorithm: (1 + w) f(w) is smooth in
    t = (w - c)/(w + c), where it is a ratio of two polynomials of degree n - 1."""

    def g(t):
        return (1 + c * (1 + t) / (1 - t)) * f(c * (1 + t) / (1 - t)) if t < 1 - mpf(10) ** -12 else limit

    limit = 1 / (2 * sqrt(pi * log(2)))
    points = 2 * n
    at = [-cos(pi * (2 * k + 1) / (2 * points)) for k in range(points)]

    def solve(at):
        error = mpf(0)
        for _ in range(8):
            rows, right = [], []
            for k, t in enumerate(at):
                value, sign = g(t), (-1) ** k
                powers = [chebyt(j, t) for j in range(n)]
                rows.append(powers + [-value * (1 + sign * error) * p for p in powers[1:]] + [-value * sign])
                right.append(value)
            found = lu_solve(matrix(rows), matrix(right))
            error = found[points - 1]
        above = list(found[:n])
        return above, [mpf(1)] + list(found[n : points - 1])

    def series(c, t):
        return sum(a * chebyt(j, t) for j, a in enumerate(c))

    grid = [-cos(pi * k / 1000) for k in range(1001)]
    values = [g(t) for t in grid]
    for _ in range(rounds):
        above, below = solve(at)
        # The largest error between any two changes of its sign.
        tops = []
        for t, value in zip(grid, values):
            off = series(above, t) / series(below, t) / value - 1
            if not tops or (off > 0) != (tops[-1][1] > 0):
                tops.append((t, off))
            elif abs(off) > abs(tops[-1][1]):
                tops[-1] = (t, off)
        assert len(tops) == points
        at = [t for t, _ in tops]
    print(f"{name}: relative error {float(max(abs(off) for _, off in tops)):.1e}")

    def in_w(coefficients):
        """A series in t, times (w + c)^(n - 1), by the powers of w."""
        nodes = [mpf(k) for k in range(n)]
        right = [series(coefficients, (w - c) / (w + c)) * (w + c) ** (n - 1) for w in nodes]
        return list(lu_solve(matrix([[w**j for j in range(n)] for w in nodes]), matrix(right)))

    p, q = in_w(above), in_w(below)
    q = [a + b for a, b in zip(q + [mpf(0)], [mpf(0)] + q)]
    for what, coefficients in (("P", p), ("Q", q)):
        print(f"  {what}")
        for a in coefficients:
            print(f"    {float(a / q[0])!r},")


def power(f):
    """(2^f - 1)/f."""
    return (2**f - 1) / f if abs(f) > mpf(10) ** -25 else log(2)


show("(2^f - 1)/f to a half", power, mpf(-1) / 2, mpf(1) / 2, 9)
show("(2^f - 1)/f to a quarter (AVX2)", power, mpf(-1) / 4, mpf(1) / 4, 7)
show("(2^f - 1)/f to a 32nd (AVX-512)", power, mpf(-1) / 32, mpf(1) / 32, 4)
show("2 artanh(s)/s in s^2", lambda t: 2 * atanh(sqrt(t)) / sqrt(t) if t else mpf(2), mpf(0), mpf(1) / 9, 10)
ratio("2^(w^2) times the normal tail, P(w)/Q(w)", tail, 11, mpf(4))
print("2^(i/16)")
for i in range(16):
    print(f"    {float(mpf(2) ** (mpf(i) / 16))!r},")
