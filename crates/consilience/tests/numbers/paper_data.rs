//! The paper's simulated data: what they look like, and the studies in examples/ that go with them.

use crate::common::{root, truth};
use consilience::engine::Silent;
use consilience::plan::Plan;
use consilience::simulate::{BLOCK, Simulated, rjmcmc, toy, write};
use consilience::study::StudyFile;

/// All columns, as they were simulated.
fn columns(rows: usize, block: impl Fn(u64, usize) -> Vec<Vec<f32>>) -> Vec<Vec<f64>> {
    let mut all: Vec<Vec<f64>> = Vec::new();
    for b in 0..rows.div_ceil(BLOCK) {
        let block = block(b as u64, (rows - b * BLOCK).min(BLOCK));
        all.resize(block.len(), Vec::new());
        for (all, values) in all.iter_mut().zip(block) {
            all.extend(values.into_iter().map(f64::from));
        }
    }
    all
}

/// z-scores of means, variances and correlations of covariates with mean 0, variance 1 and correlation r.
fn alike(x: &[Vec<f64>], r: f64) -> Vec<f64> {
    let n = x[0].len() as f64;
    let mut scores = Vec::new();
    for (j, a) in x.iter().enumerate() {
        scores.push(a.iter().sum::<f64>() / n.sqrt());
        scores.push((a.iter().map(|v| v * v).sum::<f64>() - n) / (2.0 * n).sqrt());
        for b in &x[..j] {
            // A product of two has mean r and variance 1 + r².
            let products: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
            scores.push((products - n * r) / (n * (1.0 + r * r)).sqrt());
        }
    }
    scores
}

#[test]
fn the_toy_is_as_the_paper_has_it() {
    let n = 100_000;
    let data = columns(n, |b, rows| toy::block(1, b, rows));
    assert_eq!(data.len(), toy::names().len());
    let mut scores = alike(&data[1..], toy::CORRELATION);
    let beta = toy::coefficients(1);
    let rest: Vec<f64> = (0..n)
        .map(|i| {
            let effects: f64 = (0..15).map(|j| beta[j] * data[j + 1][i]).sum();
            data[0][i] - toy::INTERCEPT - effects
        })
        .collect();
    // Noise of variance 1 that no covariate explains.
    scores.extend(alike(std::slice::from_ref(&rest), 0.0));
    let root = (n as f64).sqrt();
    for x in &data[1..] {
        scores.push(rest.iter().zip(x).map(|(e, x)| e * x).sum::<f64>() / root);
    }
    for z in scores {
        assert!(z.abs() < 4.5, "z = {z}");
    }
    // Fewer rows are the first of more, and another seed is other rows.
    let few = columns(1000, |b, rows| toy::block(1, b, rows));
    assert!(few.iter().zip(&data).all(|(few, more)| few[..] == more[..1000]));
    assert_ne!(columns(1000, |b, rows| toy::block(2, b, rows)), few);
}

/// Over seeds 1…4,000.
#[test]
fn coefficients_of_the_toy_have_their_laws() {
    let seeds = 4000;
    let all: Vec<[f64; 15]> = (1..=seeds).map(toy::coefficients).collect();
    let root = (seeds as f64).sqrt();
    let power = |j: usize, k: i32| all.iter().map(|b| b[j].powi(k)).sum::<f64>() / seeds as f64;
    for j in 0..15 {
        // Mean, variance of it; second and fourth moment.
        let (mean, variance, second, fourth) = match j {
            // A fifth N(±1, 1), with fourth moment 1 + 6 + 3; the rest N(0, 1/16).
            0..10 => {
                let (v, f) = (0.2 * 2.0 + 0.8 / 16.0, 0.2 * 10.0 + 0.8 * 3.0 / 256.0);
                (0.0, v, v, f)
            }
            10..14 => normal_moments(0.1, 0.1),
            _ => normal_moments(0.25, 0.01),
        };
        let z = root * (power(j, 1) - mean) / f64::sqrt(variance);
        assert!(z.abs() < 4.5, "mean of coefficient {}: z = {z}", j + 1);
        let z = root * (power(j, 2) - second) / f64::sqrt(fourth - second * second);
        assert!(z.abs() < 4.5, "square of coefficient {}: z = {z}", j + 1);
    }
}

/// Mean, variance, second and fourth moment.
fn normal_moments(m: f64, s: f64) -> (f64, f64, f64, f64) {
    (m, s * s, m * m + s * s, m.powi(4) + 6.0 * m * m * s * s + 3.0 * s.powi(4))
}

#[test]
fn features_and_outcomes_of_the_jump_experiment() {
    assert_eq!(rjmcmc::theta(0, 4000), [-1.0, 1.0, 0.0, 0.0, 1.0]);
    assert_eq!(rjmcmc::theta(1999, 4000), rjmcmc::theta(0, 4000));
    assert_eq!(rjmcmc::theta(2000, 4000), [-1.0, 1.0, 0.01, 0.0, 1.0]);
    let n = 60_000;
    let data = columns(n, |b, rows| rjmcmc::block(1, b, rows, n as u64));
    let mut scores = alike(&data[1..], toy::CORRELATION);
    // y − p is noise of variance p(1 − p) that no feature explains, in both halves.
    for half in [0..n / 2, n / 2..n] {
        for j in 0..=5 {
            let (mut sum, mut variance) = (0.0, 0.0);
            for i in half.clone() {
                let theta = rjmcmc::theta(i as u64, n as u64);
                let eta: f64 = (0..5).map(|k| theta[k] * data[k + 1][i]).sum();
                let p = 1.0 / (1.0 + (-eta).exp());
                let x = if j == 0 { 1.0 } else { data[j][i] };
                sum += (data[0][i] - p) * x;
                variance += p * (1.0 - p) * x * x;
            }
            scores.push(sum / variance.sqrt());
        }
    }
    for z in scores {
        assert!(z.abs() < 4.5, "z = {z}");
    }
    assert!(data[0].iter().all(|y| [0.0, 1.0].contains(y)));
    // The features do not depend on how many rows there are.
    let few = columns(1000, |b, rows| rjmcmc::block(1, b, rows, 1000));
    assert!((1..=5).all(|j| few[j][..] == data[j][..1000]));
}

#[test]
fn files_are_the_same_for_the_same_seed() {
    for what in [Simulated::Toy, Simulated::Rjmcmc(500)] {
        let text = |seed: u64| {
            let mut out = Vec::new();
            let format = consilience::simulate::Format::Csv;
            write(&mut out, format, what, 500, seed, &mut |_| ()).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
        assert!(text(1).starts_with(&what.names().join(",")));
        assert_eq!(text(1).lines().count(), 501);
    }
}

/// The six models in the paper's order, and their exact evidences on the data that ship.
#[test]
fn the_toys_study_has_the_papers_models() {
    let study = StudyFile::read(root().join("examples/toy.toml")).unwrap();
    let result = Plan::new(study, 2, &Silent).unwrap().run(&Silent).unwrap();
    let without = [&[11, 15][..], &[14, 15], &[13, 15], &[12, 15], &[11, 15], &[]];
    assert_eq!(result.models.len(), 6);
    for (k, (model, without)) in result.models.iter().zip(without).enumerate() {
        assert_eq!(model.name, format!("model {}", k + 1));
        let terms = (1..=15).filter(|j| !without.contains(j)).map(|j| format!("x{j}"));
        let formula = format!("y ~ {}", terms.collect::<Vec<_>>().join(" + "));
        assert_eq!(model.formula, formula);
        let value = truth()["gauss"]["models"][&formula]["value"].as_f64().unwrap();
        assert!((model.log_evidence.value - value).abs() < 1e-5, "{}", model.name);
        assert!(model.parameters.iter().all(|p| p.prior == "normal(0, 1)"));
    }
    assert_eq!(result.models[5].parameters.len(), 17);
    assert_eq!(result.best.name, "model 6");
}

/// The 32 models of the jump experiment: exact Bayes factors of the paper's three (data/truth.json).
#[test]
fn the_jump_experiments_study_has_its_bayes_factors() {
    let study = StudyFile::read(root().join("examples/rjmcmc.toml")).unwrap();
    let plan = Plan::new(study, 2, &Silent).unwrap();
    let named = ["x1 + x2 + x3 + x5", "x1 + x4 + x5", "x1 + x2 + x5"].map(String::from);
    let result = plan.select_and_name(&named, &Silent).unwrap();
    let truth = &truth()["sim2"]["models"];
    let value = |key: &str| truth[key]["value"].as_f64().unwrap();
    for (k, key) in ["11101", "10011", "11001"].into_iter().enumerate() {
        let factor = result.named[k].log_bayes_factor;
        let expected = value(key) - value("11101");
        let (found, se) = (factor.value, factor.se.unwrap());
        println!("{key}: {found:.4} ± {se:.4}, exactly {expected:.4}");
        assert!((found - expected).abs() < 4.0 * se + 1e-3, "{key}: {found} ± {se}, {expected}");
    }
}
