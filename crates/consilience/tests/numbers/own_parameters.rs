//! Families with parameters of their own, all of them free beside the intercept: evidences against integrals over three
//! parameters, on one shard and on seven.

use crate::common::{Case, run};
use consilience::math::log_sum_exp;
use consilience::math::special::softplus;
use libm::lgamma;

/// A study whose model has three parameters under N(0, 1) each, and its log likelihood.
struct Problem {
    family: &'static str,
    formula: &'static str,
    log_likelihood: fn(&[Row], [f64; 3]) -> f64,
}

/// A row, with an outcome for every family; `event` says whether `y` is known, as a time.
struct Row {
    x: f64,
    y: f64,
    event: f64,
    share: f64,
    count: f64,
    grade: f64,
}

fn rows() -> Vec<Row> {
    (0..14)
        .map(|i| {
            let x = f64::from(i) / 5.0 - 1.3;
            let noise = (7.3 * f64::from(i) + 1.0).sin() + 0.6 * (2.1 * f64::from(i)).cos();
            Row {
                x,
                y: (0.3 * x + 0.9 * noise).exp(),
                event: f64::from([1, 0, 1, 1, 0][i as usize % 5]),
                share: 1.0 / (1.0 + (-0.4 * x - 1.1 * noise).exp()),
                count: if i % 3 == 0 { 0.0 } else { (0.6 * x + noise).exp().round() },
                grade: (1.0 + 0.5 * x + noise).clamp(0.0, 2.0).round(),
            }
        })
        .collect()
}

const PROBLEMS: [Problem; 6] = [
    Problem {
        family: "student-t",
        formula: "y ~ 1",
        log_likelihood: |rows, [level, log_sd, log_df]| {
            let (sd, df) = (log_sd.exp(), log_df.exp());
            let top = lgamma((df + 1.0) / 2.0)
                - lgamma(df / 2.0)
                - 0.5 * (df * std::f64::consts::PI).ln()
                - log_sd;
            let term = |row: &Row| {
                let r = (row.y - level) / sd;
                top - (df + 1.0) / 2.0 * (r * r / df).ln_1p()
            };
            rows.iter().map(term).sum()
        },
    },
    Problem {
        family: "gamma",
        formula: "y ~ x",
        log_likelihood: |rows, [level, slope, log_shape]| {
            let shape = log_shape.exp();
            let top = shape * log_shape - lgamma(shape);
            let term = |row: &Row| {
                let eta = level + slope * row.x;
                top - shape * eta + (shape - 1.0) * row.y.ln() - shape * row.y * (-eta).exp()
            };
            rows.iter().map(term).sum()
        },
    },
    Problem {
        family: "weibull",
        formula: "Surv(y, event) ~ x",
        log_likelihood: |rows, [level, slope, log_shape]| {
            let shape = log_shape.exp();
            let term = |row: &Row| {
                let log = shape * (row.y.ln() - level - slope * row.x);
                row.event * (log_shape - row.y.ln() + log) - log.exp()
            };
            rows.iter().map(term).sum()
        },
    },
    Problem {
        family: "beta",
        formula: "share ~ x",
        log_likelihood: |rows, [level, slope, log_precision]| {
            let precision = log_precision.exp();
            let top = lgamma(precision);
            let term = |row: &Row| {
                let mean = 1.0 / (1.0 + (-level - slope * row.x).exp());
                let (p, q) = (precision * mean, precision * (1.0 - mean));
                top - lgamma(p) - lgamma(q)
                    + (p - 1.0) * row.share.ln()
                    + (q - 1.0) * (-row.share).ln_1p()
            };
            rows.iter().map(term).sum()
        },
    },
    Problem {
        family: "cumulative-logit",
        formula: "grade ~ x",
        log_likelihood: |rows, [slope, cut, log_gap]| {
            let gap = log_gap.exp();
            let term = |row: &Row| {
                let (low, high) = (cut - slope * row.x, cut + gap - slope * row.x);
                match row.grade {
                    0.0 => -softplus(-low),
                    // F(high) − F(low) = (e^gap − 1) e^low F(−low) F(−high), without a difference of near numbers.
                    1.0 => gap.exp_m1().ln() + low - softplus(low) - softplus(high),
                    _ => -softplus(high),
                }
            };
            rows.iter().map(term).sum()
        },
    },
    Problem {
        family: "zero-inflated-poisson",
        formula: "count ~ x",
        log_likelihood: |rows, [level, slope, logit]| {
            let (log_share, log_rest) = (-softplus(-logit), -softplus(logit));
            let term = |row: &Row| {
                let eta = level + slope * row.x;
                let poisson = log_rest + row.count * eta - eta.exp();
                match row.count {
                    0.0 => log_sum_exp(&[log_share, poisson]),
                    y => poisson - lgamma(y + 1.0),
                }
            };
            rows.iter().map(term).sum()
        },
    },
];

/// log ∫ of likelihood times prior by the trapezoidal rule, which is spectrally accurate here: no posterior is narrower
/// than the step.
fn integral(problem: &Problem, rows: &[Row]) -> f64 {
    const STEP: f64 = 0.15;
    let at = |k: i32| STEP * f64::from(k);
    let prior = |x: f64| -0.5 * x * x - 0.5 * (2.0 * std::f64::consts::PI).ln();
    let mut logs = Vec::new();
    for i in -38..=38 {
        for j in -38..=38 {
            for k in -38..=38 {
                let theta = [at(i), at(j), at(k)];
                let priors: f64 = theta.map(prior).iter().sum();
                // Far from all of them there is nothing.
                if priors > -25.0 {
                    logs.push(priors + (problem.log_likelihood)(rows, theta));
                }
            }
        }
    }
    log_sum_exp(&logs) + 3.0 * STEP.ln()
}

#[test]
fn evidences_with_free_own_parameters_are_the_integrals() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.csv");
    let rows = rows();
    let mut text = "x,y,event,share,count,grade\n".to_string();
    for Row { x, y, event, share, count, grade } in &rows {
        text += &format!("{x},{y},{event},{share},{count},{grade}\n");
    }
    std::fs::write(&path, text).unwrap();
    for problem in &PROBLEMS {
        let truth = integral(problem, &rows);
        for shards in [1, 7] {
            let mut study = Case::new(path.to_str().unwrap(), shards);
            study.model(problem.formula, problem.family);
            let result = run(&study.text());
            let what = format!("{}, {shards} shards", problem.family);
            assert!(result.is_reliable(), "{what}: {:?}", result.models[0].warnings);
            assert_eq!(result.models[0].parameters.len(), 3, "{what}");
            let found = result.models[0].log_evidence;
            let se = found.se.unwrap();
            println!("{what}: {:.5} ± {se:.5}, {truth:.5}", found.value);
            assert!(
                (found.value - truth).abs() < 4.0 * se + 1e-5 && se <= 0.02,
                "{what}: {found:?} is not {truth}"
            );
        }
    }
}
