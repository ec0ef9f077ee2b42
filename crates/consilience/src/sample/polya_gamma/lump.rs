//! Many Pólya–Gamma variables at once: the sum X of n draws of J(z), in time that does not grow with n.
//!
//! X has the density e^(−z²x/2)·f(x) up to a constant, f that of n draws of J(0). With q = x/n and w the squared tilt
//! under which the mean of J is q, q = T(w) = tanh √w/√w (tan √−w/√−w below 0), the saddlepoint gives
//!
//! ```text
//! f(nq) = √(1/2πnV)·e^(n·a(q))·R,   a = −log cosh √w + wq/2,   V = −2T'(w)
//! ```
//!
//! where R is nearly 1: n·log R is between r and r + `LOOSE`/n for a known r (Daniels 1954). In y = log q the density
//!
//! ```text
//! h(y) = n·(a(q) − z²q/2) + y − ½ log V + log R
//! ```
//!
//! is concave, so that tangents on both sides of its peak and a level at the peak bound it. Tangents are taken at nodes of
//! a table, where nothing has to be computed. As with single draws nothing is approximated: the table decides where it
//! is sure, and where it is not, R is computed by its integral.

use crate::math::Stream;
use crate::math::ziggurat::{exponential, normal};
use libm::{atan2, cos, cosh, exp, log, log1p, sin, sinh, sqrt, tan, tanh};
use rand::RngExt;
use std::f64::consts::{LN_2, PI};
use std::sync::LazyLock;

/// From so many draws on a lump is faster than one by one.
pub(super) const FEWEST: u64 = 3;
/// Of more, tangents at nodes would be too far apart.
pub(super) const MOST: u64 = 512;

/// Nodes lie 1/128 of y apart, from log 1/80 to log 8.
const STEPS: f64 = 128.0;
const FIRST: f64 = -4.382_026_634_673_881;
const LAST: f64 = 2.079_441_541_679_836;
/// From this z on e^(−2z) is less than a uniform draw can tell, and J(z) an inverse Gaussian.
const STEEP: f64 = 20.0;
/// Entries per unit of z.
const HOMES: f64 = 16.0;
/// n·log R is less than this over n from r.
const LOOSE: f64 = 0.02;
/// More than the error of what is interpolated.
const DOUBT: f64 = 1e-6;
/// Below this |w| series are used.
const SMALL: f64 = 0.25;

/// What is known at a node. Slopes are per step.
#[derive(Debug, Clone, Copy)]
struct LumpNode {
    w: f64,
    q: f64,
    /// a(q).
    level: f64,
    /// a(q) + 1/2q, which stays small where q does.
    lift: f64,
    lift_slope: f64,
    /// y − ½ log V.
    bend: f64,
    bend_slope: f64,
    /// r.
    rest: f64,
    rest_slope: f64,
}

/// Where the peak lies for some z, and how far a standard deviation of n = 1 goes: in steps.
#[derive(Debug, Clone, Copy)]
struct Home {
    place: f64,
    spread: f64,
}

struct LumpTable {
    nodes: Vec<LumpNode>,
    homes: Vec<Home>,
}

static TABLE: LazyLock<LumpTable> = LazyLock::new(LumpTable::new);

impl LumpTable {
    fn new() -> LumpTable {
        let count = ((LAST - FIRST) * STEPS) as usize + 1;
        let mut nodes: Vec<LumpNode> = (0..count).map(LumpNode::new).collect();
        for i in 1..count - 1 {
            nodes[i].rest_slope = 0.5 * (nodes[i + 1].rest - nodes[i - 1].rest);
        }
        // A parabola through the last three, at either end.
        let at_end = |a: f64, b: f64, c: f64| 2.0 * b - 1.5 * a - 0.5 * c;
        let rest = |i: usize| nodes[i].rest;
        let (first, last) = (
            at_end(rest(0), rest(1), rest(2)),
            -at_end(rest(count - 1), rest(count - 2), rest(count - 3)),
        );
        nodes[0].rest_slope = first;
        nodes[count - 1].rest_slope = last;
        let home = |i: usize| {
            let z = i as f64 / HOMES;
            let q = mean(z * z);
            let sd = sqrt(Cumulants::at(z * z).second) / q;
            Home { place: (log(q) - FIRST) * STEPS, spread: sd * STEPS }
        };
        LumpTable { nodes, homes: (0..(STEEP * HOMES) as usize + 2).map(home).collect() }
    }

    /// Where to begin for this z.
    #[inline(always)]
    fn home(&self, z: f64) -> Home {
        let place = z * HOMES;
        let i = place as usize;
        let part = place - i as f64;
        let (a, b) = (self.homes[i], self.homes[i + 1]);
        Home {
            place: a.place + part * (b.place - a.place),
            spread: a.spread + part * (b.spread - a.spread),
        }
    }

    /// q and h at a place within the table, with R as r says.
    #[inline(always)]
    fn height(&self, lump: &Lump, place: f64) -> Option<(f64, f64)> {
        if !(place >= 0.0 && place < (self.nodes.len() - 1) as f64) {
            return None;
        }
        let i = place as usize;
        let t = place - i as f64;
        let (left, right) = (&self.nodes[i], &self.nodes[i + 1]);
        // e^x − 1 for x below 1/128.
        let x = t * (1.0 / STEPS);
        let growth = x * (1.0 + x * (0.5 + x * (1.0 / 6.0 + x * (1.0 / 24.0 + x * (1.0 / 120.0)))));
        let q = left.q + left.q * growth;
        let lift = hermite(t, left.lift, right.lift, left.lift_slope, right.lift_slope);
        let (b, c) = (lump.flat(left), lump.flat(right));
        let bend = hermite(t, b.0, c.0, b.1, c.1);
        Some((q, lump.n * (lift - 0.5 / q - lump.half_z2 * q) + bend))
    }
}

/// The cubic between two nodes.
#[inline(always)]
fn hermite(t: f64, left: f64, right: f64, left_slope: f64, right_slope: f64) -> f64 {
    let rise = right - left;
    let (a, b) = (left_slope - rise, rise - right_slope);
    left + t * (rise + (1.0 - t) * ((1.0 - t) * a + t * b))
}

impl LumpNode {
    fn new(i: usize) -> LumpNode {
        let y = FIRST + i as f64 / STEPS;
        let q = exp(y);
        let exact = Saddlepoint::new(q);
        let Saddlepoint { w, level, cumulants } = exact;
        LumpNode {
            w,
            q,
            level,
            lift: level + 0.5 / q,
            lift_slope: (0.5 * q * w - 0.5 / q) / STEPS,
            bend: y - 0.5 * log(cumulants.second),
            bend_slope: cumulants.slope_of_bend(q) / STEPS,
            rest: cumulants.rest(),
            rest_slope: 0.0,
        }
    }
}

/// n and z.
#[derive(Debug, Clone, Copy)]
struct Lump {
    n: f64,
    inverse: f64,
    half_z2: f64,
}

impl Lump {
    /// What of h does not grow with n, and its slope.
    #[inline(always)]
    fn flat(&self, node: &LumpNode) -> (f64, f64) {
        let rest = self.inverse * node.rest;
        (node.bend + rest, node.bend_slope + self.inverse * node.rest_slope)
    }

    /// h and its slope per step.
    #[inline(always)]
    fn at(&self, node: &LumpNode) -> (f64, f64) {
        let (bend, slope) = self.flat(node);
        let pull = 0.5 * node.w - self.half_z2;
        let height = self.n * (node.level - self.half_z2 * node.q) + bend;
        (height, self.n * node.q * pull * (1.0 / STEPS) + slope)
    }
}

/// A bound of h: a level between two places and straight lines beyond, all of it in steps.
#[derive(Debug, Clone, Copy)]
struct LumpBound {
    level: f64,
    left: f64,
    right: f64,
    /// How far the lines go until they are 1 lower.
    left_reach: f64,
    right_reach: f64,
}

impl LumpBound {
    #[inline(always)]
    fn new(table: &LumpTable, lump: &Lump, home: Home) -> Option<LumpBound> {
        let middle = (home.place + 0.5) as usize;
        // √2 standard deviations away tangents leave least between them and a normal density.
        let away = (std::f64::consts::SQRT_2 * home.spread * sqrt(lump.inverse) + 0.5) as usize;
        let away = away.max(1);
        if middle < away || middle + away >= table.nodes.len() {
            return None;
        }
        let (top, tilt) = lump.at(&table.nodes[middle]);
        let (left, rise) = lump.at(&table.nodes[middle - away]);
        let (right, fall) = lump.at(&table.nodes[middle + away]);
        let away = away as f64;
        // The tangent at the middle bounds the peak. True heights are up to these more than those of the table.
        let level = top + tilt.abs() * away;
        let (left_reach, right_reach) = (1.0 / rise, -1.0 / fall);
        let bound = LumpBound {
            level: level + LOOSE * lump.inverse * lump.inverse + DOUBT,
            left: middle as f64 - away + (level - left) * left_reach,
            right: middle as f64 + away - (level - right) * right_reach,
            left_reach,
            right_reach,
        };
        (rise > 0.0 && fall < 0.0 && bound.left <= bound.right).then_some(bound)
    }

    /// A place under the bound, and how high the bound is there.
    #[inline(always)]
    fn draw(&self, rng: &mut Stream) -> (f64, f64) {
        let width = self.right - self.left;
        let u = rng.random::<f64>() * (width + self.left_reach + self.right_reach);
        if u < width {
            return (self.left + u, self.level);
        }
        let down = exponential(rng);
        let place = if u < width + self.left_reach {
            self.left - down * self.left_reach
        } else {
            self.right + down * self.right_reach
        };
        (place, self.level - down)
    }
}

/// A draw of the sum of n draws of J(z); None where one by one is the way.
#[inline(always)]
pub(super) fn draw(n: u64, z: f64, rng: &mut Stream) -> Option<f64> {
    debug_assert!((FEWEST..=MOST).contains(&n));
    if z >= STEEP {
        return Some(inverse_gaussian(n as f64, z, rng));
    }
    let table = &*TABLE;
    let n = n as f64;
    let lump = Lump { n, inverse: 1.0 / n, half_z2: 0.5 * z * z };
    let bound = LumpBound::new(table, &lump, table.home(z))?;
    loop {
        let (place, bar) = bound.draw(rng);
        let drop = exponential(rng);
        let Some((q, height)) = table.height(&lump, place) else {
            let q = exp(FIRST + place / STEPS);
            if drop >= bar - Saddlepoint::new(q).height(&lump, q) {
                return Some(n * q);
            }
            continue;
        };
        let gap = bar - height;
        if drop >= gap + DOUBT {
            return Some(n * q);
        }
        if drop >= gap - LOOSE * lump.inverse * lump.inverse - DOUBT
            && drop >= bar - Saddlepoint::new(q).height(&lump, q)
        {
            return Some(n * q);
        }
    }
}

/// The sum of n inverse Gaussians of mean 1/z and shape 1, by Michael, Schucany & Haas (1976).
fn inverse_gaussian(n: f64, z: f64, rng: &mut Stream) -> f64 {
    let mean = n / z;
    let noise = normal(rng);
    let w = 0.5 * noise * noise / (z * n);
    let stretch = 1.0 + w + (w * (2.0 + w)).sqrt();
    let swap = rng.random::<f64>() * (1.0 + stretch) > stretch;
    if swap { mean * stretch } else { mean / stretch }
}

/// All of one q, without a table.
#[derive(Debug, Clone, Copy)]
struct Saddlepoint {
    w: f64,
    /// a(q).
    level: f64,
    cumulants: Cumulants,
}

impl Saddlepoint {
    #[cold]
    fn new(q: f64) -> Saddlepoint {
        let w = tilt(q);
        Saddlepoint { w, level: 0.5 * w * q - log_cosh(w), cumulants: Cumulants::at(w) }
    }

    /// h, with R by its integral.
    #[cold]
    fn height(&self, lump: &Lump, q: f64) -> f64 {
        let bend = log(q) - 0.5 * log(self.cumulants.second);
        lump.n * (self.level - lump.half_z2 * q) + bend + self.log_rest(lump.n, q)
    }

    /// log R: the integral of e^(n·(K(t) − K(s) − (t − s)q)) along a line through s, K the cumulant generating function of
    /// J(0), over what it would be if K were a parabola. The line is bent towards where the integrand falls, and sums of
    /// equal steps along it converge faster than any power.
    fn log_rest(&self, n: f64, q: f64) -> f64 {
        // Here J is an inverse Gaussian, of which the saddlepoint is right.
        if self.w > 1600.0 {
            return 0.0;
        }
        let Cumulants { second, third, .. } = self.cumulants;
        let (s, bow) = (-0.5 * self.w, third / (6.0 * second));
        let step = 0.125 / sqrt(n * second);
        let from = log_cosh(self.w);
        let mut sum = 0.5;
        for k in 1..2000 {
            let u = f64::from(k) * step;
            let out = bow * u * u;
            // √2t = α + iβ; cos(α + iβ) = cos α cosh β − i sin α sinh β.
            let (re, im) = (2.0 * (s + out), 2.0 * u);
            let size = sqrt(re * re + im * im);
            let alpha = sqrt(0.5 * (size + re).max(0.0));
            let beta = sqrt(0.5 * (size - re).max(0.0));
            let log_size = 0.5 * log(cos(alpha) * cos(alpha) + sinh(beta) * sinh(beta));
            let angle = atan2(sin(alpha) * sinh(beta), cos(alpha) * cosh(beta));
            let height = n * (from - log_size - out * q);
            let turn = n * (angle - u * q);
            let size = exp(height);
            sum += size * (cos(turn) + 2.0 * bow * u * sin(turn));
            if size < 1e-18 {
                break;
            }
        }
        // Twice the sum, over √2π of the parabola, whose standard deviation is eight steps.
        log(sum * 0.25 / sqrt(2.0 * PI))
    }
}

/// Coefficients of T in powers of w: (2k + 1)·c_k = −Σ c_i·c_j over i + j = k − 1.
const SERIES: [f64; 24] = {
    let mut c = [0.0; 24];
    c[0] = 1.0;
    let mut k = 1;
    while k < c.len() {
        let (mut sum, mut i) = (0.0, 0);
        while i < k {
            sum += c[i] * c[k - 1 - i];
            i += 1;
        }
        c[k] = -sum / (2.0 * k as f64 + 1.0);
        k += 1;
    }
    c
};

/// T(w), the mean of J under this squared tilt.
fn mean(w: f64) -> f64 {
    if w.abs() < SMALL {
        SERIES.iter().rev().fold(0.0, |sum, c| sum * w + c)
    } else if w > 0.0 {
        tanh(sqrt(w)) / sqrt(w)
    } else {
        tan(sqrt(-w)) / sqrt(-w)
    }
}

/// The w of which q is the mean. 1/T is concave, and both of its tangents here lie above it, so that Newton's steps
/// come from below and never turn back.
fn tilt(q: f64) -> f64 {
    let wanted = 1.0 / q;
    let mut w = (3.0 * (wanted - 1.0)).max(2.0 * wanted - 0.25 * PI * PI);
    for _ in 0..60 {
        let t = mean(w);
        let step = (wanted - 1.0 / t) * 2.0 * t * t / Cumulants::at(w).second;
        w += step;
        if step.abs() <= 1e-15 * (1.0 + w.abs()) {
            break;
        }
    }
    w
}

fn log_cosh(w: f64) -> f64 {
    if w < 0.0 {
        return log(cos(sqrt(-w)));
    }
    let v = sqrt(w);
    v + log1p(exp(-2.0 * v)) - LN_2
}

/// The second to fourth cumulants of J under a tilt.
#[derive(Debug, Clone, Copy)]
struct Cumulants {
    second: f64,
    third: f64,
    fourth: f64,
}

impl Cumulants {
    /// −2T', 4T'' and −8T''': by series, or by 2wT' = 1 − T − wT² and what follows from it.
    fn at(w: f64) -> Cumulants {
        if w.abs() < SMALL {
            let derivative = |order: usize| {
                let term = |(k, c): (usize, &f64)| {
                    (0..order).map(|i| k as f64 - i as f64).product::<f64>() * c
                };
                let terms = SERIES.iter().enumerate().skip(order).rev();
                terms.fold(0.0, |sum, at| sum * w + term(at))
            };
            return Cumulants {
                second: -2.0 * derivative(1),
                third: 4.0 * derivative(2),
                fourth: -8.0 * derivative(3),
            };
        }
        let t = mean(w);
        let second = (t + w * t * t - 1.0) / w;
        let first = (t * t - 1.5 * second - w * t * second) / w;
        let next = (0.5 * w * second * second - 2.0 * t * second - (2.5 + w * t) * first) / w;
        Cumulants { second, third: -2.0 * first, fourth: 4.0 * next }
    }

    /// The derivative of y − ½ log V in y.
    fn slope_of_bend(&self, q: f64) -> f64 {
        1.0 - 0.5 * self.third * q / (self.second * self.second)
    }

    /// r.
    fn rest(&self) -> f64 {
        let (two, three) = (self.second * self.second, self.third * self.third);
        self.fourth / (8.0 * two) - 5.0 * three / (24.0 * two * self.second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::stream;

    /// Tilts of q and z over the whole table.
    fn tilts() -> impl Iterator<Item = f64> {
        (0..200).map(|i| STEEP * (f64::from(i) / 200.0).powi(2))
    }

    #[test]
    fn cumulants_agree_with_differences_and_between_formulas() {
        for w in [-2.2, -1.0, -0.2501, -0.2499, -0.1, 0.1, 0.2499, 0.2501, 1.0, 9.0, 100.0] {
            let Cumulants { second, third, fourth } = Cumulants::at(w);
            let step = 1e-4 * (0.3 + w.abs()).min(w + 2.46);
            let (up, down) = (Cumulants::at(w + step), Cumulants::at(w - step));
            // d/ds = −2 d/dw.
            let slope = |a: f64, b: f64| -(a - b) / step;
            assert!((slope(mean(w + step), mean(w - step)) / second - 1.0).abs() < 1e-6, "{w}");
            assert!((slope(up.second, down.second) / third - 1.0).abs() < 1e-6, "{w}");
            assert!((slope(up.third, down.third) / fourth - 1.0).abs() < 1e-5, "{w}");
        }
        // Those of J(0): 2/3, 16/15 and 272/105.
        let Cumulants { second, third, fourth } = Cumulants::at(0.0);
        assert!((second - 2.0 / 3.0).abs() < 1e-15 && (third - 16.0 / 15.0).abs() < 1e-15);
        assert!((fourth - 272.0 / 105.0).abs() < 1e-14);
    }

    #[test]
    fn tilts_are_found() {
        for i in 0..500 {
            let q = exp(-8.0 + f64::from(i) * 0.025);
            assert!((mean(tilt(q)) / q - 1.0).abs() < 1e-12, "{q}");
        }
    }

    /// The density by the saddlepoint with R against its alternating series, which is good where n is small.
    #[test]
    fn heights_are_those_of_the_series() {
        for n in [1_u32, 2, 3, 4, 6] {
            let size = f64::from(n);
            for i in 0..60 {
                let q = 0.05 * exp(0.07 * f64::from(i));
                let x = size * q;
                let term = |k: u32| {
                    // C(n + k − 1, k)·(2k + n)·e^(−(2k + n)²/2x)
                    let ways: f64 =
                        (0..k).map(|j| (size + f64::from(j)) / f64::from(j + 1)).product();
                    let at = f64::from(2 * k + n);
                    let sign = if k.is_multiple_of(2) { 1.0 } else { -1.0 };
                    sign * ways * at * (-0.5 * at * at / x).exp()
                };
                let sum: f64 = (0..60).map(term).sum();
                let series = size * LN_2 + sum.ln() - 0.5 * (2.0 * PI * x.powi(3)).ln();
                let lump = Lump { n: size, inverse: 1.0 / size, half_z2: 0.0 };
                // h is the density of y: f(x)·x, up to √(n/2π).
                let found =
                    Saddlepoint::new(q).height(&lump, q) + 0.5 * (size / (2.0 * PI)).ln() - x.ln();
                let lost = 1e-15 * term(0).abs().max(term(1).abs()) / sum;
                assert!((found - series).abs() < 1e-10 + 10.0 * lost, "{n}, {q}: {found} {series}");
            }
        }
    }

    // What makes the shortcuts exact.
    #[test]
    fn the_bounds_behind_the_shortcuts_hold() {
        let table = &*TABLE;
        let last = table.nodes.len() as f64 - 1.0;
        for n in [3_u32, 4, 5, 9, 20, 60, 200, 512] {
            let size = f64::from(n);
            let lump = |z: f64| Lump { n: size, inverse: 1.0 / size, half_z2: 0.5 * z * z };
            let among = (0..400).map(|i| (f64::from(i) + 0.37) / 400.0 * last);
            for place in among.chain([0.5, last - 0.5]) {
                let (q, height) = table.height(&lump(1.0), place).expect("within the table");
                let exact = Saddlepoint::new(q);
                let rest = exact.log_rest(size, q);
                let over = size * (size * rest - exact.cumulants.rest());
                assert!((-1e-9 * size * size..0.8 * LOOSE).contains(&over), "{n}, {q}: {over}");
                let off = exact.height(&lump(1.0), q) - rest + exact.cumulants.rest() / size;
                assert!((off - height).abs() < 0.5 * DOUBT, "{n}, {q}: {off} {height}");
            }
            for z in tilts() {
                let lump = lump(z);
                let bound = LumpBound::new(table, &lump, table.home(z)).expect("a bound");
                for i in 0..200 {
                    // The middle closely, then far out.
                    let t = (f64::from(i) - 99.5) / 100.0;
                    let reach = 4.0 * (bound.left_reach + bound.right_reach);
                    let place = 0.5 * (bound.left + bound.right) + reach * t * t.abs();
                    let line = if place < bound.left {
                        bound.level - (bound.left - place) / bound.left_reach
                    } else if place > bound.right {
                        bound.level - (place - bound.right) / bound.right_reach
                    } else {
                        bound.level
                    };
                    let q = exp(FIRST + place / STEPS);
                    let height = Saddlepoint::new(q).height(&lump, q);
                    assert!(height <= line + 1e-9, "{n}, {z}, {place}: {height} above {line}");
                }
            }
        }
    }

    /// Kolmogorov's distance between lumps and sums of single draws.
    #[test]
    fn lumps_are_distributed_as_sums_of_single_draws() {
        let single = super::super::PolyaGamma::new();
        let count = 40_000;
        for (k, (n, z)) in
            [(3, 0.0), (3, 1.0), (4, 6.0), (7, 0.4), (20, 2.0), (90, 0.0), (512, 1.0), (5, 19.9)]
                .into_iter()
                .enumerate()
        {
            let mut rng = stream(5, k as u64, 0, "polya-gamma test");
            let mut all: Vec<(f64, f64)> = Vec::new();
            for _ in 0..count {
                all.push((draw(n, z, &mut rng).expect("a draw"), 1.0));
                let sum: f64 = (0..n).map(|_| 4.0 * single.draw(2.0 * z, &mut rng)).sum();
                all.push((sum, -1.0));
            }
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (mut walk, mut most) = (0.0_f64, 0.0_f64);
            for (_, side) in all {
                walk += side;
                most = most.max(walk.abs());
            }
            // D·√(m/2) is above 2.2 with a chance of 1 in 8,000.
            let distance = most / f64::from(count) * sqrt(0.5 * f64::from(count));
            assert!(distance < 2.2, "{n}, {z}: {distance}");
        }
    }

    #[test]
    fn bounds_are_near() {
        // Proposals per draw.
        let mut rng = stream(6, 0, 0, "polya-gamma test");
        for (n, z) in [(3, 0.0), (30, 1.0), (512, 2.0), (512, 12.0)] {
            let table = &*TABLE;
            let size = n as f64;
            let lump = Lump { n: size, inverse: 1.0 / size, half_z2: 0.5 * z * z };
            let bound = LumpBound::new(table, &lump, table.home(z)).expect("a bound");
            let tried = 20_000;
            let taken = (0..tried)
                .filter(|_| {
                    let (place, bar) = bound.draw(&mut rng);
                    let found = table.height(&lump, place);
                    found.is_some_and(|(_, height)| exponential(&mut rng) >= bar - height)
                })
                .count();
            assert!(taken as f64 > 0.7 * f64::from(tried), "{n}, {z}: {taken}");
        }
    }
}
