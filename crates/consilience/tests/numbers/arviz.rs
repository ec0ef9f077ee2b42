//! Diagnostics of chains against ArviZ. The expected numbers come from `scripts/arviz_reference.py`.

use consilience::estimate::chains::{ess, integrated_autocorrelation};
use consilience::math::Matrix;
use consilience::sample::{Chain, Sample};
use serde::Deserialize;
use std::path::PathBuf;

#[derive(Deserialize)]
struct File {
    sets: Vec<Expected>,
}

#[derive(Deserialize)]
struct Expected {
    name: String,
    draws: Vec<Vec<f64>>,
    energy: Vec<Vec<f64>>,
    r_hat: f64,
    ess_mean: f64,
    ess_bulk: f64,
    ess_tail: f64,
    ess_square: f64,
    mcse_mean: f64,
    mcse_sd: f64,
    e_bfmi: f64,
}

fn sets() -> Vec<Expected> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/arviz.json");
    let text = std::fs::read_to_string(path).expect("the file is part of the repository");
    serde_json::from_str::<File>(&text).expect("the script's file").sets
}

/// A sample of the draws as they are, negated and on another scale.
fn sample(set: &Expected) -> Sample {
    let chain = |(x, energy): (&Vec<f64>, &Vec<f64>)| Chain {
        thetas: Matrix::from_rows(x.len(), 3, x.iter().flat_map(|v| [*v, -v, 8.0 * v]).collect()),
        log_density: x.clone(),
        energy: energy.clone(),
        divergences: 2,
    };
    Sample { chains: set.draws.iter().zip(&set.energy).map(chain).collect() }
}

fn near(value: Option<f64>, expected: f64, what: &str, set: &Expected) {
    let value = value.unwrap_or_else(|| panic!("{what} of `{}` is missing", set.name));
    let error = (value / expected - 1.0).abs();
    // A billion standard deviations from 0 the mean's own rounding shows, in ArviZ as here.
    let tolerance = if set.name == "large offset" { 1e-7 } else { 1e-11 };
    assert!(error < tolerance, "{what} of `{}`: {value} is not {expected}", set.name);
}

#[test]
fn parameters_have_arviz_diagnostics() {
    for set in sets() {
        let found = sample(&set).diagnose();
        assert_eq!(found.parameters.len(), 3);
        for (j, parameter) in found.parameters.iter().enumerate() {
            let scale = [1.0, 1.0, 8.0][j];
            near(parameter.r_hat, set.r_hat, "R̂", &set);
            near(parameter.ess_bulk, set.ess_bulk, "bulk ESS", &set);
            // Where values are equal the 5 % of −θ are not the 95 % of θ.
            if j != 1 || set.name != "ties" {
                near(parameter.ess_tail, set.ess_tail, "tail ESS", &set);
            }
            near(parameter.ess_square, set.ess_square, "ESS of squares", &set);
            near(parameter.mcse_mean, scale * set.mcse_mean, "error of the mean", &set);
            near(parameter.mcse_sd, scale * set.mcse_sd, "error of the sd", &set);
        }
        near(found.r_hat, set.r_hat, "largest R̂", &set);
        near(found.ess_bulk, set.ess_bulk, "least bulk ESS", &set);
        near(found.ess_square, set.ess_square.min(set.ess_mean), "least ESS of squares", &set);
        near(found.e_bfmi, set.e_bfmi, "E-BFMI", &set);
        assert_eq!(found.divergences, 2 * set.draws.len());
    }
}

#[test]
fn means_have_arviz_effective_draws() {
    for set in sets() {
        let chains: Vec<&[f64]> = set.draws.iter().map(Vec::as_slice).collect();
        near(ess(&chains), set.ess_mean, "ESS", &set);
        near(sample(&set).ess_of(|theta| theta[2] - theta[0]), set.ess_mean, "ESS", &set);
        // An odd number's middle draw is left out.
        let draws = chains.len() * (chains[0].len() / 2 * 2);
        let time = integrated_autocorrelation(&chains);
        near(time, draws as f64 / set.ess_mean, "autocorrelation time", &set);
    }
}
