//! Gibbs sampling and Chib's estimate: against exact and published values, quadrature and importance
//! sampling; merged rows, offsets, weights and shares; error bars that mean what they say.

use crate::common::{Case, truth};
use consilience::Target;
use consilience::data::Design;
use consilience::engine::Silent;
use consilience::estimate::{Chib, Mode, importance, newton};
use consilience::kernel::Kernel;
use consilience::math::{LOG_2PI, Matrix, Proposal, log_sum_exp, stream};
use consilience::model::{Family, Likelihood, Prior, Subposterior};
use consilience::plan::Plan;
use consilience::sample::{GibbsDraws, gibbs};
use consilience::study::StudyFile;
use rand::RngExt;
use std::path::Path;
use std::sync::Arc;

const PIMA: &str = "type ~ scale(npreg) + scale(glu) + scale(bp) + scale(skin) + scale(bmi) + scale(ped) + scale(age)";

/// A model on a data set of the repository, in one shard.
fn whole(data: &str, formula: &str, family: &str) -> Subposterior {
    let mut case = Case::new(data, 1);
    case.model(formula, family);
    let study = StudyFile::parse(&case.text(), Path::new("study.toml")).unwrap();
    let plan = Plan::new(study, 2, &Silent).unwrap();
    let model = &plan.settings[0].model;
    let likelihood = Likelihood::of(model, plan.engine().shard(0).data(), &|_| true).unwrap();
    Subposterior::new(Arc::new(likelihood), model.free_priors(), 1.0, model.start())
}

fn mode(target: &Subposterior) -> Mode {
    newton::find_mode(target, 1e-9, 200).unwrap().mode
}

fn sample(target: &Subposterior, draws: usize, warmup: usize, seed: u64) -> (GibbsDraws, Chib) {
    let mut rng = stream(seed, 0, 0, "gibbs test");
    let found = gibbs(target, Some(&mode(target).theta), draws, warmup, 0, &mut rng).unwrap();
    let chib = Chib::new(target, &found.reference, found.log_ordinates.clone()).unwrap();
    (found, chib)
}

/// A made-up design of two columns with an offset and weights, some of them 0; rows repeat.
fn small(rows: usize, seed: u64) -> Design {
    let mut rng = stream(seed, 0, 0, "gibbs design");
    let mut columns = vec![vec![1.0; rows], Vec::new()];
    let (mut response, mut offset, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..rows {
        columns[1].push((i % 3) as f64 - 1.0);
        offset.push(if i % 2 == 0 { 0.8 } else { -0.5 });
        response.push(f64::from(rng.random::<f64>() < 0.6));
        weights.push(f64::from(i as u32 % 4));
    }
    Design { columns, response, second: None, offset: Some(offset), weights: Some(weights) }
}

fn target(family: Family, design: &Design, fixed: &[Option<f64>], share: f64) -> Subposterior {
    let likelihood = Arc::new(Likelihood::new(family, design.clone(), fixed, None, Kernel::Auto));
    let d = likelihood.dim();
    let prior = Prior::Normal { mean: 0.4, sd: 0.9 };
    Subposterior::new(likelihood, vec![prior; d], share, vec![0.0; d])
}

/// Mean of a column of draws, with the standard error that 30 batch means show.
fn batch_mean(values: &[f64]) -> (f64, f64) {
    let batches: Vec<f64> = values
        .chunks_exact(values.len() / 30)
        .map(|batch| batch.iter().sum::<f64>() / batch.len() as f64)
        .collect();
    let n = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / n;
    let variance = batches.iter().map(|b| (b - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

fn column(thetas: &Matrix, f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    (0..thetas.rows()).map(|k| f(thetas.row(k))).collect()
}

#[test]
fn evidences_agree_with_the_reference_values() {
    let pima = |name: &str| truth()["pima_tr"]["models"][format!("{name}, normal(0,1)")].clone();
    let full = "y ~ x1 + x2 + x3 + x4 + x5";
    for (target, case, draws) in [
        (whole("pima_tr.csv", PIMA, "logistic"), pima("logistic"), 20_000),
        (whole("pima_tr.csv", PIMA, "probit"), pima("probit"), 20_000),
        (
            whole("sim2.parquet", full, "logistic"),
            truth()["sim2"]["models"]["11111"].clone(),
            6_000,
        ),
    ] {
        let (value, se_truth) = (case["value"].as_f64().unwrap(), case["se"].as_f64().unwrap());
        let (_, chib) = sample(&target, draws, 500, 1);
        let (found, se) = (chib.log_z.value, chib.log_z.se.unwrap());
        let z = (found - value) / se.hypot(se_truth);
        println!("{found:.4} ± {se:.4}, truth {value:.4}: z = {z:.2}, ess {:.0}", chib.ess);
        assert!(z.abs() < 4.0, "{found} ± {se} is not {value} ± {se_truth}");
        assert!(se < 0.03 && chib.is_reliable(), "{se}, {}", chib.ess);
    }
}

#[test]
fn error_bars_are_calibrated() {
    let target = whole("pima_tr.csv", PIMA, "logistic");
    let case = &truth()["pima_tr"]["models"]["logistic, normal(0,1)"];
    let (value, se_truth) = (case["value"].as_f64().unwrap(), case["se"].as_f64().unwrap());
    let z: Vec<f64> = (0..60)
        .map(|seed| {
            let log_z = sample(&target, 3_000, 200, 100 + seed).1.log_z;
            (log_z.value - value) / log_z.se.unwrap().hypot(se_truth)
        })
        .collect();
    let n = z.len() as f64;
    let mean = z.iter().sum::<f64>() / n;
    let sd = (z.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    println!("mean {mean:.2}, sd {sd:.2}");
    assert!((0.75..1.3).contains(&sd), "sd {sd}");
    assert!(mean.abs() < 4.0 / n.sqrt(), "mean {mean}");
}

#[test]
fn moments_agree_with_importance_sampling() {
    for family in ["logistic", "probit"] {
        let target = whole("pima_tr.csv", PIMA, family);
        let mut rng = stream(7, 0, 0, "importance");
        let mode = mode(&target);
        let around = Proposal::from_precision(mode.theta, &mode.factor, 0.1, 5.0);
        let other = importance::weigh(&target, &around, 100_000, &mut rng).unwrap();
        let other = other.summarise();
        let (found, _) = sample(&target, 30_000, 500, 2);
        let thetas = &found.chain.thetas;
        for i in 0..target.dim() {
            let (mean, se) = batch_mean(&column(thetas, |t| t[i]));
            let noise = (other.covariance[(i, i)] / other.ess).sqrt();
            let z = (mean - other.mean[i]) / se.hypot(noise);
            assert!(z.abs() < 4.0, "{family}: mean {i} off by {z}");
            for j in 0..=i {
                let product = |t: &[f64]| (t[i] - other.mean[i]) * (t[j] - other.mean[j]);
                let (found, se) = batch_mean(&column(thetas, product));
                // For a normal, the variance of a product is σᵢ²σⱼ² + σᵢⱼ².
                let (a, b) = (other.covariance[(i, i)], other.covariance[(j, j)]);
                let spread = a * b + other.covariance[(i, j)].powi(2);
                let noise = (spread / other.ess).sqrt();
                let z = (found - other.covariance[(i, j)]) / se.hypot(noise);
                assert!(z.abs() < 4.5, "{family}: covariance {i}, {j} off by {z}");
            }
        }
        for (k, &value) in found.chain.log_density.iter().enumerate().step_by(1000) {
            assert_eq!(value, target.log_density(thetas.row(k)));
        }
    }
}

/// One coefficient, the other fixed (and so an offset), offsets, weights, a share of the prior with
/// its own mean: evidence and moments by quadrature.
#[test]
fn one_parameter_agrees_with_quadrature() {
    for family in [Family::Logistic, Family::Probit] {
        for (rows, share) in [(9, 1.0), (60, 0.2), (400, 0.5)] {
            let target = target(family, &small(rows, 3), &[Some(0.7), None], share);
            let step = 1e-3;
            let grid: Vec<f64> = (-8000..=8000).map(|i| f64::from(i) * step).collect();
            let values: Vec<f64> = grid.iter().map(|&t| target.log_density(&[t])).collect();
            let log_z = log_sum_exp(&values) + step.ln();
            let moment = |f: &dyn Fn(f64) -> f64| {
                let terms = grid.iter().zip(&values).map(|(&t, v)| f(t) * (v - log_z).exp());
                terms.sum::<f64>() * step
            };
            let (found, chib) = sample(&target, 20_000, 100, 4);
            let z = (chib.log_z.value - log_z) / chib.log_z.se.unwrap();
            println!("{family}, {rows}: {:?}, z = {z:.2}", chib.log_z);
            assert!(z.abs() < 4.0, "{family}, {rows} rows: {:?} is not {log_z}", chib.log_z);
            let mean = moment(&|t| t);
            for f in [&(|t: f64| t) as &dyn Fn(f64) -> f64, &|t| (t - mean).powi(2)] {
                let (seen, se) = batch_mean(&column(&found.chain.thetas, |t| f(t[0])));
                let z = (seen - moment(f)) / se;
                assert!(z.abs() < 4.0, "{family}, {rows} rows: moment off by {z}");
            }
        }
    }
}

/// Offsets that differ by 10⁻¹³ keep equal rows apart and change nothing else.
#[test]
fn merged_rows_are_the_same_as_rows_kept_apart() {
    for family in [Family::Logistic, Family::Probit] {
        let design = small(120, 5);
        let mut apart = Design {
            columns: vec![Vec::new(); 2],
            response: Vec::new(),
            second: None,
            offset: Some(Vec::new()),
            weights: None,
        };
        for i in 0..120 {
            for _ in 0..design.weights.as_ref().unwrap()[i] as usize {
                let k = apart.response.len() as f64;
                apart.response.push(design.response[i]);
                let offset = design.offset.as_ref().unwrap()[i] + 1e-13 * k;
                apart.offset.as_mut().unwrap().push(offset);
                for (to, from) in apart.columns.iter_mut().zip(&design.columns) {
                    to.push(from[i]);
                }
            }
        }
        let merged = target(family, &design, &[None; 2], 0.6);
        let apart = target(family, &apart, &[None; 2], 0.6);
        assert_eq!(merged.likelihood().regression().unwrap().distinct, 6);
        assert_eq!(apart.likelihood().regression().unwrap().distinct, 180);
        let (a, chib_a) = sample(&merged, 30_000, 200, 6);
        let (b, chib_b) = sample(&apart, 30_000, 200, 7);
        let gap = chib_a.log_z - chib_b.log_z;
        assert!(gap.value.abs() < 4.0 * gap.se.unwrap(), "{family}: {gap:?}");
        // How fast the chains mix is a property of the sampler, and must not differ either.
        assert!((chib_a.ess / chib_b.ess - 1.0).abs() < 0.2, "{} {}", chib_a.ess, chib_b.ess);
        for power in [1, 2] {
            for j in 0..2 {
                let f = |t: &[f64]| t[j].powi(power);
                let (x, se_x) = batch_mean(&column(&a.chain.thetas, f));
                let (y, se_y) = batch_mean(&column(&b.chain.thetas, f));
                let z = (x - y) / se_x.hypot(se_y);
                assert!(z.abs() < 4.0, "{family}: moment {power} of θ{j} off by {z}");
            }
        }
    }
}

/// Without data, and without parameters, everything is known exactly.
#[test]
fn empty_cases_are_exact() {
    for family in [Family::Logistic, Family::Probit] {
        let none = target(family, &small(0, 1), &[None; 2], 0.3);
        let (found, chib) = sample(&none, 50, 20, 1);
        let alpha = 2.0 * Prior::Normal { mean: 0.4, sd: 0.9 }.log_alpha(0.3).unwrap();
        assert!((chib.log_z.value - alpha).abs() < 1e-12 && chib.log_z.se.unwrap() < 1e-12);
        let at_mean = -0.5 * LOG_2PI - 0.5 * (0.81_f64 / 0.3).ln();
        assert!((found.log_ordinates[0] - 2.0 * at_mean).abs() < 1e-12);

        let fixed = target(family, &small(30, 1), &[Some(0.2), Some(-1.0)], 0.3);
        let (_, chib) = sample(&fixed, 50, 20, 1);
        assert_eq!(chib.log_z.value, fixed.log_density(&[]));
        assert_eq!(chib.log_z.se, Some(0.0));
    }
}

/// One seed, one chain; a start far away is forgotten; too few draws are told from enough.
#[test]
fn chains_repeat_and_forget_their_start() {
    let target = target(Family::Probit, &small(60, 2), &[None; 2], 1.0);
    let run = |start: Option<&[f64]>, draws, warmup| {
        let found =
            gibbs(&target, start, draws, warmup, 0, &mut stream(9, 0, 0, "repeat")).unwrap();
        let chib = Chib::new(&target, &found.reference, found.log_ordinates.clone()).unwrap();
        (found, chib)
    };
    let ((a, chib_a), (b, _)) = (run(None, 5_000, 50), run(None, 5_000, 50));
    assert_eq!(a.chain.thetas, b.chain.thetas);
    assert_eq!(a.log_ordinates, b.log_ordinates);
    let (_, far) = run(Some(&[80.0, -90.0]), 5_000, 2_000);
    let gap = far.log_z - chib_a.log_z;
    assert!(gap.value.abs() < 4.0 * gap.se.unwrap(), "{gap:?}");
    assert!(far.is_reliable() && far.warnings("").is_empty());
    let (without, few) = run(Some(&[0.1, 0.2]), 30, 0);
    assert_eq!(without.reference, [0.1, 0.2]);
    assert!(!few.is_reliable());
    assert_eq!(few.warnings("use more draws")[0].code, "low-ess");
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    let refuse = |target: &Subposterior, start: Option<&[f64]>| {
        let error = gibbs(target, start, 10, 5, 0, &mut stream(1, 0, 0, "refuse")).unwrap_err();
        assert!(error.is_input());
        error.to_string()
    };
    for family in [Family::Gaussian, Family::Poisson, Family::NegativeBinomial] {
        let message = refuse(&target(family, &small(30, 1), &[None; 2], 1.0), None);
        assert!(message.contains("\"logistic\" and \"probit\""), "{message}");
        assert!(message.contains(family.name()), "{message}");
    }
    let likelihood = Likelihood::new(Family::Probit, small(30, 1), &[None; 2], None, Kernel::Auto);
    let priors =
        vec![Prior::Normal { mean: 0.0, sd: 1.0 }, Prior::Laplace { mean: 0.0, scale: 2.0 }];
    let kinked = Subposterior::new(Arc::new(likelihood), priors, 1.0, vec![0.0; 2]);
    let message = refuse(&kinked, None);
    assert!(message.contains("parameter 2 is laplace(0, 2)"), "{message}");

    let good = target(Family::Logistic, &small(30, 1), &[None; 2], 1.0);
    assert!(refuse(&good, Some(&[0.0])).contains("1 coordinates"));
    let mut odd = small(30, 1);
    odd.weights.as_mut().unwrap()[5] = 1.5;
    assert!(refuse(&target(Family::Probit, &odd, &[None; 2], 1.0), None).contains("whole"));
    let overflow =
        gibbs(&good, Some(&[f64::MAX, f64::MAX]), 1, 1, 0, &mut stream(1, 0, 0, "overflow"));
    assert!(overflow.unwrap_err().to_string().contains("overflowed"));
    assert!(Chib::new(&good, &[0.0; 2], vec![0.0]).is_err());
    assert!(Chib::new(&good, &[0.0; 2], vec![0.0, f64::NAN]).is_err());
}
