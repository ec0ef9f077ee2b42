//! The hot loops against compensated sums of plain terms: every family, every path of this machine,
//! dense and sparse columns, counts, offsets and far predictors.

use consilience::kernel::{Kernel, Path, Rows};
use consilience::math::{Compensated, Matrix, stream};
use consilience::model::Family;
use rand::RngExt;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

const FAMILIES: [Family; 4] =
    [Family::Logistic, Family::Probit, Family::Poisson, Family::NegativeBinomial];

/// Rows with points of which the predictors reach as far as `scale`.
struct Case {
    family: Family,
    columns: Vec<Vec<f64>>,
    offset: Vec<f64>,
    count: Vec<f64>,
    total: Vec<f64>,
    thetas: Vec<Vec<f64>>,
    a: f64,
}

/// What is special about a case.
#[derive(Debug, Clone, Copy)]
struct Kind {
    rows: usize,
    scale: f64,
    sparse: bool,
    counts: bool,
    offsets: bool,
    /// Outcomes on the side of the first point's predictor: a likelihood near 1.
    matched: bool,
}

impl Case {
    fn new(family: Family, kind: Kind) -> Case {
        let mut rng = stream(5, kind.rows as u64, 0, "kernels");
        let mut uniform = move || 2.0 * rng.random::<f64>() - 1.0;
        let (n, p) = (kind.rows, 7);
        let mut columns: Vec<Vec<f64>> =
            (0..p).map(|_| (0..n).map(|_| uniform()).collect()).collect();
        if kind.sparse {
            // A factor's dummies, rows of a level together, as merging leaves them; the last never.
            for (j, column) in columns.iter_mut().enumerate().skip(1) {
                let level = |i: usize| 1 + i * (p - 2) / n;
                (0..n).for_each(|i| column[i] = f64::from(u8::from(level(i) == j)));
            }
        }
        let offset = (0..n).map(|_| if kind.offsets { uniform() } else { 0.0 }).collect();
        let mut point = || {
            let theta: Vec<f64> = (0..p).map(|_| uniform()).collect();
            let reach: f64 = theta.iter().map(|b| b.abs()).sum();
            theta.iter().map(|b| 0.98 * kind.scale * b / reach).collect()
        };
        let thetas = (0..11).map(|_| point()).collect();
        let mut case = Case {
            family,
            columns,
            offset,
            count: vec![1.0; n],
            total: vec![0.0; n],
            thetas,
            a: 0.4,
        };
        for i in 0..n {
            let side = case.predictor(i, 0).0 > 0.0;
            let success = if kind.matched { side } else { uniform() > 0.0 };
            let counted = kind.counts && i % 3 > 0;
            case.count[i] = if counted { (3.0 * (1.0 + uniform())).ceil() / 2.0 } else { 1.0 };
            case.total[i] = match (family.is_count(), success) {
                (true, _) => (4.0 * (1.0 + uniform())).floor(),
                (false, false) => 0.0,
                (false, true) if counted && !kind.matched => case.count[i] * 0.25,
                (false, true) => case.count[i],
            };
        }
        case
    }

    fn rows(&self, path: Path) -> Rows {
        let Case { family, columns, offset, count, total, .. } = self;
        Rows::new(*family, columns, offset, count, total, Kernel::Auto).with_path(path)
    }

    /// η of row i at a point as the sum of two doubles, by exact products and compensated sums.
    fn predictor(&self, i: usize, point: usize) -> (f64, f64) {
        let (mut high, mut low) = (self.offset[i], 0.0);
        for (column, &b) in self.columns.iter().zip(&self.thetas[point]) {
            let product = column[i] * b;
            low += column[i].mul_add(b, -product);
            let sum = high + product;
            let back = sum - high;
            low += (high - (sum - back)) + (product - back);
            high = sum;
        }
        let sum = high + low;
        (sum, low - (sum - high))
    }

    /// Σ over rows of f(η, count, total), the rounding of η repaired to first order.
    fn sum(&self, point: usize, f: impl Fn(f64, f64, f64) -> (f64, f64)) -> f64 {
        let mut sum = Compensated::default();
        for i in 0..self.count.len() {
            let (eta, rest) = self.predictor(i, point);
            let (value, slope) = f(eta, self.count[i], self.total[i]);
            sum.add(value);
            sum.add(slope * rest);
        }
        sum.value()
    }

    /// The log-likelihood as `Rows` has it.
    fn value(&self, point: usize) -> f64 {
        self.sum(point, |eta, c, t| {
            let d = self.derivatives(eta, c, t);
            (d[0], d[1])
        })
    }

    /// A row's log-likelihood, with its first and second derivatives in η.
    fn derivatives(&self, eta: f64, c: f64, t: f64) -> [f64; 3] {
        let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
        let chance =
            |x: f64| if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) };
        let two_sided = |w: f64, yes: f64, no: f64| {
            let value = -yes * softplus(-w) - no * softplus(w);
            let (p, q) = (chance(w), chance(-w));
            [value, yes * q - no * p, -(yes + no) * p * q]
        };
        match self.family {
            Family::Logistic => two_sided(eta, t, c - t),
            Family::Poisson => [t * eta - c * eta.exp(), t - c * eta.exp(), -c * eta.exp()],
            Family::NegativeBinomial => {
                let [value, slope, bend] = two_sided(eta - self.a, t, c * self.a.exp());
                [value + t * self.a, slope, bend]
            }
            _ => {
                let (yes, no) = (log_phi(eta), log_phi(-eta));
                let each = |k: usize, sign: f64| {
                    let part = |n: f64, l: f64| if n > 0.0 { n * l } else { 0.0 };
                    part(t, yes[k]) + sign * part(c - t, no[k])
                };
                [each(0, 1.0), each(1, -1.0), each(2, 1.0)]
            }
        }
    }
}

/// log Φ(z) with two derivatives; below −8 by Laplace's continued fraction of Mills' ratio.
fn log_phi(z: f64) -> [f64; 3] {
    if z < -8.0 {
        let fraction = (1..=200).rev().fold(0.0, |rest, k| f64::from(k) / (-z + rest));
        let hazard = -z + fraction;
        return [-0.5 * z * z - 0.5 * (2.0 * PI).ln() - hazard.ln(), hazard, -hazard * fraction];
    }
    let value = if z < 0.0 {
        (0.5 * libm::erfc(-z * FRAC_1_SQRT_2)).ln()
    } else {
        (-0.5 * libm::erfc(z * FRAC_1_SQRT_2)).ln_1p()
    };
    let hazard = (-0.5 * z * z - 0.5 * (2.0 * PI).ln() - value).exp();
    [value, hazard, -hazard * (z + hazard)]
}

fn kinds() -> Vec<Kind> {
    let usual = Kind {
        rows: 2_003,
        scale: 1.0,
        sparse: false,
        counts: false,
        offsets: false,
        matched: false,
    };
    let mut kinds = Vec::new();
    for scale in [1.0, 40.0, 700.0] {
        for (sparse, counts, offsets) in
            [(false, false, false), (true, false, true), (false, true, true), (true, true, false)]
        {
            kinds.push(Kind { scale, sparse, counts, offsets, ..usual });
        }
    }
    kinds.push(Kind { rows: 1, ..usual });
    kinds.push(Kind { rows: 8, counts: true, ..usual });
    // All outcomes are as foreseen: a log-likelihood of about e^−|η|.
    kinds.push(Kind { scale: 20.0, matched: true, ..usual });
    kinds.push(Kind { scale: 20.0, matched: true, counts: true, offsets: true, ..usual });
    kinds
}

#[test]
fn values_are_right_to_1e_13_on_every_path() {
    for family in FAMILIES {
        for kind in kinds() {
            let case = Case::new(family, kind);
            let points: Vec<(&[f64], f64)> =
                case.thetas.iter().map(|t| (t.as_slice(), case.a)).collect();
            for path in Path::all() {
                let mut out = vec![0.0; points.len()];
                case.rows(path).values(&points, &mut out);
                for (k, value) in out.into_iter().enumerate() {
                    let exact = case.value(k);
                    // e^η of a rounded η is off by its rounding.
                    let rounding = if family == Family::Poisson { 4e-16 * kind.scale } else { 0.0 };
                    let off = (value / exact - 1.0).abs();
                    assert!(
                        off <= 1e-13 + rounding || value == exact,
                        "{family} on {}, {kind:?}: {value} is not {exact}: off by {off:e}",
                        path.name()
                    );
                }
            }
        }
    }
}

#[test]
fn derivatives_are_right_on_every_path() {
    for family in FAMILIES {
        for kind in kinds() {
            let case = Case::new(family, kind);
            let p = case.columns.len();
            // Σ |terms| is what rounding is relative to: derivatives cancel at will.
            let check = |value: f64, what: &str, f: &dyn Fn(usize, [f64; 3]) -> f64, path: Path| {
                let (mut sum, mut size) = (Compensated::default(), 0.0);
                for i in 0..case.count.len() {
                    let eta = case.predictor(i, 0).0;
                    let term = f(i, case.derivatives(eta, case.count[i], case.total[i]));
                    sum.add(term);
                    size += term.abs() * (1.0 + eta.abs());
                }
                let off = (value - sum.value()).abs();
                assert!(
                    off <= 1e-13 * size + 1e-290,
                    "{family} on {}, {kind:?}, {what}: {value} is not {}",
                    path.name(),
                    sum.value()
                );
            };
            for path in Path::all() {
                let rows = case.rows(path);
                let mut gradient = vec![f64::NAN; p];
                let (value, _) = rows.gradient(&case.thetas[0], case.a, &mut gradient);
                let (at, _) = rows.expand(&case.thetas[0], case.a);
                check(value, "value", &|_, d| d[0], path);
                assert_eq!(value, at.value);
                assert_eq!(gradient, at.gradient);
                for (i, slope) in gradient.into_iter().enumerate() {
                    check(slope, "gradient", &|k, d| d[1] * case.columns[i][k], path);
                    for j in 0..=i {
                        let product = |k: usize| case.columns[i][k] * case.columns[j][k];
                        check(at.hessian[(i, j)], "Hessian", &|k, d| d[2] * product(k), path);
                        assert_eq!(at.hessian[(i, j)], at.hessian[(j, i)]);
                    }
                }
            }
        }
    }
}

/// The portable path's promise, which only another machine can break: these are its bits on all.
#[test]
fn the_portable_path_has_these_bits_everywhere() {
    let expected: [u64; 4] = [
        0x9a31_8101_4760_6aad,
        0x845b_673a_70d4_fb01,
        0xda6c_d47f_ec0a_c914,
        0x81be_9c63_4cf3_baac,
    ];
    for (family, expected) in FAMILIES.into_iter().zip(expected) {
        let case = Case::new(family, kinds()[2]);
        let rows = Rows::new(
            family,
            &case.columns,
            &case.offset,
            &case.count,
            &case.total,
            Kernel::Portable,
        );
        let (at, _) = rows.expand(&case.thetas[1], case.a);
        let numbers = at.gradient.iter().chain(at.hessian.row(2)).chain([&at.value]);
        let hash = numbers.fold(0_u64, |hash, x| hash.rotate_left(9) ^ x.to_bits());
        assert_eq!(hash, expected, "{family}: {hash:#x}");
    }
}

#[test]
fn a_points_value_does_not_depend_on_its_company() {
    for family in FAMILIES {
        let case = Case::new(family, kinds()[2]);
        let points: Vec<(&[f64], f64)> =
            case.thetas.iter().map(|t| (t.as_slice(), case.a)).collect();
        for path in Path::all() {
            let rows = case.rows(path);
            let mut together = vec![0.0; points.len()];
            rows.values(&points, &mut together);
            for (point, value) in points.iter().zip(together) {
                let mut alone = [0.0];
                rows.values(&[*point], &mut alone);
                assert_eq!(alone[0], value);
            }
        }
    }
}

#[test]
fn products_with_x_are_right_on_every_path() {
    for kind in kinds() {
        let case = Case::new(Family::Logistic, kind);
        for path in Path::all() {
            let rows = case.rows(path);
            let (n, padded) = (kind.rows, rows.counts().len());
            let mut eta = vec![0.0; padded];
            rows.predict(&case.thetas[0], &mut eta);
            for (i, eta) in eta.iter().enumerate().take(n) {
                let exact = case.predictor(i, 0).0;
                assert!((eta - exact).abs() <= 1e-14 * kind.scale * 4.0);
            }
            let mut v: Vec<f64> = (0..padded).map(|i| (i as f64).sin()).collect();
            v[n..].fill(0.0);
            let (product, gram) = (rows.transposed_times(&v), rows.gram_weighted(&v));
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-12;
            for (i, column) in case.columns.iter().enumerate() {
                let exact: f64 = column.iter().zip(&v).map(|(x, v)| x * v).sum();
                assert!(near(product[i], exact));
                for (j, other) in case.columns.iter().enumerate() {
                    let terms = column.iter().zip(other).zip(&v);
                    assert!(near(gram[(i, j)], terms.map(|((a, b), v)| a * b * v).sum()));
                }
            }
            let counted: &Matrix = &rows.gram();
            assert_eq!(*counted, rows.gram_weighted(rows.counts()));
        }
    }
}

#[test]
fn what_is_no_number_stays_so_and_infinite_misfit_is_no_fit() {
    for family in FAMILIES {
        for path in Path::all() {
            let columns = [vec![1e300; 9], vec![-1e300; 9]];
            let (ones, zeros) = ([1.0; 9], [0.0; 9]);
            let rows = Rows::new(family, &columns, &zeros, &ones, &ones, Kernel::Auto);
            let rows = rows.with_path(path);
            let mut out = [0.0; 2];
            // What is no number, and a predictor of −∞ where all outcomes are 1.
            rows.values(&[(&[f64::NAN, 1.0], 0.0), (&[-1e300, 0.0], 0.0)], &mut out);
            assert!(out[0].is_nan(), "{family} on {}: {}", path.name(), out[0]);
            assert!(out[1].is_nan() || out[1] < -1e200, "{family} on {}: {}", path.name(), out[1]);
        }
    }
}

/// Ordinary counts by the laws of large ones: the same up to terms without β.
#[test]
fn the_laws_of_large_counts_are_those_of_small_ones() {
    for family in [Family::Poisson, Family::NegativeBinomial] {
        for kind in kinds().into_iter().filter(|k| k.scale < 100.0) {
            let case = Case::new(family, kind);
            let Case { columns, offset, count, total, thetas, a, .. } = &case;
            let points: Vec<(&[f64], f64)> = thetas.iter().map(|t| (t.as_slice(), *a)).collect();
            for path in Path::all() {
                let rows = case.rows(path);
                let large =
                    Rows::of_large_counts(family, columns, offset, count, total, Kernel::Auto);
                let large = large.with_path(path);
                let mut out = [vec![0.0; points.len()], vec![0.0; points.len()]];
                rows.values(&points, &mut out[0]);
                large.values(&points, &mut out[1]);
                let apart = |k: usize| out[0][k] - out[1][k];
                for k in 0..points.len() {
                    let size = out[0][0].abs() + out[0][k].abs();
                    assert!((apart(k) - apart(0)).abs() <= 1e-12 * size, "{family}, {kind:?}");
                    let at = [&rows, &large].map(|rows| rows.expand(points[k].0, *a));
                    let near = |x: f64, y: f64| {
                        let size =
                            at[0].0.hessian.data().iter().fold(1.0, |m: f64, v| m.max(v.abs()));
                        assert!((x - y).abs() <= 1e-11 * size, "{family}, {kind:?}: {x}, {y}");
                    };
                    for i in 0..columns.len() {
                        near(at[0].0.gradient[i], at[1].0.gradient[i]);
                        for j in 0..columns.len() {
                            near(at[0].0.hessian[(i, j)], at[1].0.hessian[(i, j)]);
                        }
                        if family == Family::NegativeBinomial {
                            near(at[0].1.cross[i], at[1].1.cross[i]);
                        }
                    }
                }
            }
        }
    }
}
