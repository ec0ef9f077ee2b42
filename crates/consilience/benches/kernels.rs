//! How fast the hot loops are, on every path that this CPU has and on one core, beside plain loops:
//! `cargo bench --workspace --bench kernels`, with `-- 22` for 22 columns alone and `-- shared` for rows that models
//! share. Prints tables; asserts nothing.
//!
//! A plain loop is what one would write first: row after row, point after point, with the standard
//! library's exp and log1p or with libm's (and our log Φ for the probit). The rows fit into a core's cache.

use consilience::kernel::{
    BLOCK_ROWS, Case as RowKind, Class, EffectFamily, EffectPoint, EffectRows, Kernel, Margins,
    NodeRule, Path, Rows, Store, WantedSlopes,
};
use consilience::math::hermite::gauss_hermite;
use consilience::math::special::log_normal_cdf;
use consilience::math::{dot, stream};
use consilience::model::Family;
use rand::RngExt;
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

const ROWS: usize = 4_000;
const POINTS: usize = 64;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    for p in [8, 22, 100].into_iter().filter(|p| is_wanted(&p.to_string())) {
        println!("{ROWS} rows, {p} columns");
        for family in [Family::Logistic, Family::Probit, Family::Poisson, Family::NegativeBinomial]
        {
            measure(&Case::new(family, p));
        }
        measure_kinds(p);
        measure_classes(p);
        measure_groups(p);
    }
    if is_wanted("shared") {
        println!("every other of 24 columns, logistic, on the best path");
        for rows in [BLOCK_ROWS, 10 * BLOCK_ROWS, 100 * BLOCK_ROWS, 1000 * BLOCK_ROWS] {
            shared(rows);
        }
    }
}

/// Rows of which a model has every other column: as its own, and as a view of panels that have all. The more
/// rows, the further away from the core they are when their turn comes again.
fn shared(rows: usize) {
    let mut rng = stream(1, 0, 0, "shared");
    let mut uniform = move || 2.0 * rng.random::<f64>() - 1.0;
    let columns: Vec<Vec<f64>> = (0..24).map(|_| (0..rows).map(|_| uniform()).collect()).collect();
    let y: Vec<f64> = (0..rows).map(|_| f64::from(uniform() > 0.0)).collect();
    let (zeros, ones) = (vec![0.0; rows], vec![1.0; rows]);
    let active: Vec<u32> = (0..24).step_by(2).collect();
    let few: Vec<Vec<f64>> = active.iter().map(|&j| columns[j as usize].clone()).collect();
    let own = Rows::new(Family::Logistic, &few, &zeros, &ones, &y, Kernel::Auto);
    let margins = Arc::new(Margins::new(Family::Logistic, &zeros, &ones, &y, false));
    let store = Arc::new(Store::new(&margins, 0, &columns, (0..24).collect()));
    let panels = 0..margins.panels();
    let view = Rows::view(&margins, panels, &[store], &active, Kernel::Auto).expect("columns");
    let thetas: Vec<Vec<f64>> =
        (0..POINTS).map(|_| (0..12).map(|_| uniform() / 4.0).collect()).collect();
    let points: Vec<(&[f64], f64)> = thetas.iter().map(|t| (t.as_slice(), 0.0)).collect();
    for (name, panels) in [("own", &own), ("shared", &view)] {
        let mut out = vec![0.0; POINTS];
        let least = |points: usize, run: &mut dyn FnMut() -> f64| {
            let time = |run: &mut dyn FnMut() -> f64| {
                let start = Instant::now();
                black_box(run());
                start.elapsed().as_secs_f64()
            };
            let best = (0..10).map(|_| time(run)).fold(f64::INFINITY, f64::min);
            best * 1e9 / (rows * points) as f64
        };
        let value = least(POINTS, &mut || {
            panels.values(&points, &mut out);
            out[0]
        });
        let hessian = least(1, &mut || panels.expand(&thetas[0], 0.0).0.value);
        println!(
            "  {rows:>7} rows, {name:<6}  value {value:6.3} ns a row and point   Hessian {hessian:6.3} ns a row"
        );
    }
}

/// Rows and points.
struct Case {
    family: Family,
    columns: Vec<Vec<f64>>,
    y: Vec<f64>,
    thetas: Vec<Vec<f64>>,
}

impl Case {
    fn new(family: Family, p: usize) -> Case {
        let mut rng = stream(1, 0, 0, "kernels");
        let mut uniform = move || 2.0 * rng.random::<f64>() - 1.0;
        let columns: Vec<Vec<f64>> = (0..p)
            .map(|j| (0..ROWS).map(|_| if j == 0 { 1.0 } else { uniform() }).collect())
            .collect();
        let thetas: Vec<Vec<f64>> =
            (0..POINTS).map(|_| (0..p).map(|_| uniform() / (p as f64).sqrt()).collect()).collect();
        let most = if family.is_count() { 6.0 } else { 2.0 };
        let y = (0..ROWS).map(|_| ((uniform() + 1.0) * 0.5 * most).floor()).collect();
        Case { family, columns, y, thetas }
    }
}

/// The log dispersion of a negative binomial.
const A: f64 = 0.3;

/// Whose exp and log1p a plain loop takes.
trait Functions {
    fn exp(x: f64) -> f64;
    fn ln_1p(x: f64) -> f64;
}

/// The system's, which choose their instructions by CPU.
struct System;
/// Those with the same bits everywhere, which the library uses elsewhere.
struct Libm;

impl Functions for System {
    fn exp(x: f64) -> f64 {
        x.exp()
    }

    fn ln_1p(x: f64) -> f64 {
        x.ln_1p()
    }
}

impl Functions for Libm {
    fn exp(x: f64) -> f64 {
        libm::exp(x)
    }

    fn ln_1p(x: f64) -> f64 {
        libm::log1p(x)
    }
}

/// One row's log-likelihood.
fn plain_row<F: Functions>(family: Family, eta: f64, y: f64) -> f64 {
    let softplus = |x: f64| x.max(0.0) + F::ln_1p(F::exp(-x.abs()));
    match family {
        Family::Logistic => y * eta - softplus(eta),
        Family::Poisson => y * eta - F::exp(eta),
        Family::NegativeBinomial => y * eta - (y + F::exp(A)) * softplus(eta - A),
        _ => log_normal_cdf((2.0 * y - 1.0) * eta).0,
    }
}

/// The same with its first two derivatives in η.
fn plain_derivatives(family: Family, eta: f64, y: f64) -> (f64, f64, f64) {
    let value = plain_row::<System>(family, eta, y);
    let chance = |x: f64| 1.0 / (1.0 + (-x).exp());
    match family {
        Family::Logistic => (value, y - chance(eta), -chance(eta) * (1.0 - chance(eta))),
        Family::Poisson => (value, y - eta.exp(), -eta.exp()),
        Family::NegativeBinomial => {
            let (p, n) = (chance(eta - A), y + A.exp());
            (value, y - n * p, -n * p * (1.0 - p))
        }
        _ => {
            let s = 2.0 * y - 1.0;
            let (_, slope, bend) = log_normal_cdf(s * eta);
            (value, s * slope, bend)
        }
    }
}

fn measure(case: &Case) {
    let Case { family, columns, y, thetas } = case;
    let p = columns.len();
    let by_row: Vec<Vec<f64>> = (0..ROWS).map(|i| columns.iter().map(|c| c[i]).collect()).collect();
    let few = &thetas[..2];
    let naive_value = nanoseconds(few.len(), || {
        few.iter().map(|t| plain_value::<System>(*family, &by_row, y, t)).sum::<f64>()
    });
    let by_libm = nanoseconds(few.len(), || {
        few.iter().map(|t| plain_value::<Libm>(*family, &by_row, y, t)).sum::<f64>()
    });
    let naive_gradient = nanoseconds(1, || plain_gradient(*family, &by_row, y, &thetas[0]));
    let naive_hessian = nanoseconds(1, || plain_hessian(*family, &by_row, y, &thetas[0]));
    println!(
        "  {:<18} {:<9} value {naive_value:8.3} ns a row and point   gradient {naive_gradient:8.3} ns a row   Hessian {naive_hessian:8.3} ns a row",
        family.to_string(),
        "plain"
    );
    println!("  {:<18} {:<9} value {by_libm:8.3} with libm's exp and log1p", "", "");
    let ones = vec![1.0; ROWS];
    let rows = Rows::new(*family, columns, &vec![0.0; ROWS], &ones, y, Kernel::Auto);
    let points: Vec<(&[f64], f64)> = thetas.iter().map(|t| (t.as_slice(), A)).collect();
    for path in Path::all() {
        let rows = rows.clone().with_path(path);
        let mut out = vec![0.0; POINTS];
        let value = nanoseconds(POINTS, || {
            rows.values(&points, &mut out);
            out[0]
        });
        let mut slope = vec![0.0; p];
        let gradient = nanoseconds(1, || rows.gradient(&thetas[0], A, &mut slope).0);
        let hessian = nanoseconds(1, || rows.expand(&thetas[0], A).0.value);
        println!(
            "  {:<18} {:<9} value {value:8.3} ({:5.1} times, {:5.1})        gradient {gradient:8.3} ({:5.1} times)    Hessian {hessian:8.3} ({:5.1} times)",
            "",
            path.name(),
            naive_value / value,
            by_libm / value,
            naive_gradient / gradient,
            naive_hessian / hessian
        );
    }
}

/// Rows of every kind that the newer families have, by the best path, beside logistic rows.
fn measure_kinds(p: usize) {
    let Case { columns, thetas, .. } = Case::new(Family::Logistic, p);
    let (zeros, ones) = (vec![0.0; ROWS], vec![1.0; ROWS]);
    let y: Vec<f64> = columns[p - 1].iter().map(|x| 0.3 * x - 0.5).collect();
    let z: Vec<f64> = columns[p - 1].iter().map(|x| 0.3 * x - 0.1).collect();
    let points: Vec<(&[f64], [f64; 2])> =
        thetas.iter().map(|t| (t.as_slice(), [0.7, -0.3])).collect();
    for (name, kind) in [
        ("student-t", RowKind::StudentT),
        ("gamma", RowKind::Gamma),
        ("beta", RowKind::Beta),
        ("zero of a zip", RowKind::ZeroInflated),
        ("weibull, known", RowKind::WeibullAt),
        ("weibull, exceeded", RowKind::WeibullAbove),
        ("weibull, not reached", RowKind::WeibullBelow),
        ("weibull, between", RowKind::WeibullBetween),
        ("log-normal, known", RowKind::NormalAt),
        ("log-normal, exceeded", RowKind::NormalAbove),
        ("log-normal, between", RowKind::NormalBetween),
        ("ordinal logit, end", RowKind::LogitBelow),
        ("ordinal logit, inner", RowKind::LogitBetween),
        ("ordinal probit, end", RowKind::ProbitBelow),
        ("ordinal probit, inner", RowKind::ProbitBetween),
    ] {
        let family = Family::StudentT;
        let rows = Rows::of_case(family, kind, &columns, &zeros, &ones, (&y, &z), Kernel::Auto);
        for path in Path::all() {
            let rows = rows.clone().with_path(path);
            let mut out = vec![0.0; POINTS];
            let value = nanoseconds(POINTS, || {
                rows.case_values(&points, &mut out);
                out[0]
            });
            let gradient = nanoseconds(1, || rows.case_sums(&thetas[0], [0.7, -0.3], false).value);
            let hessian = nanoseconds(1, || rows.case_sums(&thetas[0], [0.7, -0.3], true).value);
            print_line(name, path.name(), [value, gradient, hessian]);
        }
    }
}

fn print_line(name: &str, path: &str, [value, gradient, hessian]: [f64; 3]) {
    println!(
        "  {name:<22} {path:<9} value {value:8.3} ns a row and point   gradient {gradient:8.3} ns a row   Hessian {hessian:8.3} ns a row"
    );
}

/// Rows of classes without an order: the rows of one of so many.
fn measure_classes(p: usize) {
    let Case { columns, thetas, .. } = Case::new(Family::Logistic, p);
    for count in [2, 3, 5] {
        let all = Rows::of_class(&columns, &vec![1.0; ROWS], Kernel::Auto);
        let class = Class { number: 1, count };
        let thetas: Vec<Vec<f64>> = thetas.iter().map(|t| t.repeat(count - 1)).collect();
        let points: Vec<&[f64]> = thetas.iter().map(Vec::as_slice).collect();
        for path in Path::all() {
            let rows = all.clone().with_path(path);
            let mut out = vec![0.0; POINTS];
            let value = nanoseconds(POINTS, || {
                rows.class_values(class, &points, &mut out);
                out[0]
            });
            let sums =
                |hessian| nanoseconds(1, || rows.class_sums(class, points[0], hessian).value);
            let times = [value, sums(false), sums(true)];
            print_line(&format!("{count} classes"), path.name(), times);
        }
    }
}

/// Rows in groups of 20 that have an effect of their own, or two, with as many nodes as there are by default.
fn measure_groups(p: usize) {
    let Case { columns, y, .. } = Case::new(Family::Logistic, p);
    for (name, effects, nodes) in [("groups, an effect", 1, 25), ("groups, two effects", 2, 15)] {
        let line: Vec<(f64, f64)> = gauss_hermite(nodes);
        let one = |x: f64, w: f64| w.ln() + 0.5 * x * x;
        let mut all = Vec::new();
        for &(x, w) in &line {
            match effects {
                1 => all.push(([x, 0.0], one(x, w))),
                _ => all.extend(line.iter().map(|&(v, u)| ([x, v], one(x, w) + one(v, u)))),
            }
        }
        let rule = NodeRule::new(&all, effects);
        for (kernel, path) in [(Kernel::Portable, "portable"), (Kernel::Auto, "best")] {
            let family = EffectFamily::of(Family::Logistic).expect("logistic rows have one");
            let mut rows = EffectRows::new(family, p, kernel);
            let second = |i: usize| if effects > 1 { columns[0][i] } else { 0.0 };
            for i in 0..ROWS {
                rows.push(1.0, y[i], [1.0, second(i)], columns.iter().map(|c| c[i]));
            }
            let factor = [0.7, if effects > 1 { 0.2 } else { 0.0 }, second(0).abs().min(0.4)];
            let groups: Vec<Range<usize>> = (0..ROWS / 20).map(|g| 20 * g..20 * g + 20).collect();
            let run = |derive: Option<bool>| {
                nanoseconds(1, || {
                    let mut sum = 0.0;
                    for rows_of in &groups {
                        let eta = &columns[1][rows_of.clone()];
                        let at = EffectPoint { rows: rows_of, eta, own: 0.0, factor };
                        let placed = rows.place(&rule, at).expect("a number");
                        let Some(hessian) = derive else {
                            sum += placed.value;
                            continue;
                        };
                        let moves = [0, 1, 0, 1].map(|k| placed.v[k].clone());
                        let effects = 2 * effects - 1;
                        let wanted = WantedSlopes { own: false, effects, hessian };
                        sum += rows.derive(at, &placed, &moves, wanted).value;
                    }
                    sum
                })
            };
            print_line(name, path, [run(None), run(Some(false)), run(Some(true))]);
        }
    }
}

fn plain_value<F: Functions>(family: Family, rows: &[Vec<f64>], y: &[f64], theta: &[f64]) -> f64 {
    let mut sum = 0.0;
    for (x, y) in rows.iter().zip(y) {
        let eta: f64 = x.iter().zip(theta).map(|(x, b)| x * b).sum();
        sum += plain_row::<F>(family, eta, *y);
    }
    sum
}

fn plain_gradient(family: Family, rows: &[Vec<f64>], y: &[f64], theta: &[f64]) -> f64 {
    let mut sum = 0.0;
    let mut gradient = vec![0.0; theta.len()];
    for (x, y) in rows.iter().zip(y) {
        let (value, slope, _) = plain_derivatives(family, dot(x, theta), *y);
        sum += value;
        gradient.iter_mut().zip(x).for_each(|(g, x)| *g += x * slope);
    }
    sum + black_box(gradient)[0]
}

fn plain_hessian(family: Family, rows: &[Vec<f64>], y: &[f64], theta: &[f64]) -> f64 {
    let mut sum = 0.0;
    let p = theta.len();
    let (mut gradient, mut hessian) = (vec![0.0; p], vec![0.0; p * p]);
    for (x, y) in rows.iter().zip(y) {
        let (value, slope, bend) = plain_derivatives(family, dot(x, theta), *y);
        sum += value;
        gradient.iter_mut().zip(x).for_each(|(g, x)| *g += x * slope);
        for (i, row) in hessian.chunks_exact_mut(p).enumerate() {
            let weighted = bend * x[i];
            row[..=i].iter_mut().zip(x).for_each(|(h, x)| *h += weighted * x);
        }
    }
    sum + black_box(gradient)[0] + black_box(hessian)[0]
}

/// Nanoseconds per row and point, the best of thirty.
fn nanoseconds(points: usize, mut run: impl FnMut() -> f64) -> f64 {
    let best = (0..30)
        .map(|_| {
            let start = Instant::now();
            black_box(run());
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min);
    best * 1e9 / (ROWS * points) as f64
}
