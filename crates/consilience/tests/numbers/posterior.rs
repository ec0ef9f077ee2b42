//! Draws of the parameters given all the data, against closed forms.

use crate::common::{Case, spread};
use crate::known_sd::{Data, posterior};
use consilience::compare::Comparison;
use consilience::engine::Silent;
use consilience::math::Matrix;
use consilience::plan::{Extras, Plan};
use consilience::sample::Sample;
use consilience::sample::draws::read_draws;
use consilience::study::StudyFile;
use std::path::Path;

const SIGMA: f64 = 1.25;
const SD: [f64; 3] = [2.0, 0.7, 0.7];

fn case(data: &Data, evidence: &str) -> String {
    let mut case = Case::new(&data.path, 1);
    case.split = "by = \"column:part\"".into();
    case.prior = format!(
        "intercept = \"normal(0, 2)\"\ncoefficients = \"normal(0, 0.7)\"\nlog_sd = \"fixed({})\"",
        SIGMA.ln()
    );
    case.evidence = evidence.into();
    case.model("y ~ x + z", "gaussian");
    case.text()
}

/// Runs with posterior draws, and reads back what was written.
fn run(text: &str, folder: &Path) -> (Comparison, Sample) {
    let study = StudyFile::parse(text, Path::new("study.toml")).unwrap();
    let mut plan = Plan::new(study, 2, &Silent).unwrap();
    let draws = text.contains("nuts").then(|| folder.to_path_buf());
    plan.deliver(&Extras { posterior: true, draws, ..Extras::default() }).unwrap();
    let result = plan.run(&Silent).unwrap();
    let files = result.write_posterior(folder).unwrap();
    let names = ["(Intercept)", "x", "z", "log_sd"].map(String::from);
    let sample = read_draws(&files[0], &names).unwrap();
    assert_eq!(files.len(), 1);
    assert_eq!(Some(&sample), result.models[0].posterior.as_ref());
    (result, sample)
}

/// Mean and variance of each free parameter over all draws.
fn moments(sample: &Sample) -> Vec<(f64, f64)> {
    let column = |j: usize| {
        let draws: Vec<f64> = sample
            .chains
            .iter()
            .flat_map(|c| (0..c.thetas.rows()).map(move |k| c.thetas[(k, j)]))
            .collect();
        let (mean, sd) = spread(&draws);
        (mean, sd * sd)
    };
    (0..3).map(column).collect()
}

fn truth(data: &Data) -> (Vec<f64>, Matrix) {
    posterior(&data.rows(&[0, 1, 2], |_| true), &SD, SIGMA)
}

#[test]
fn resampled_draws_have_the_posterior_s_moments() {
    let folder = tempfile::tempdir().unwrap();
    let data = Data::new(folder.path(), 120, 6);
    let (mean, covariance) = truth(&data);
    // Both ways to the draws: the shards weigh them, or statistics do at the centre.
    for statistics in [false, true] {
        let (mut means, mut variances, mut quantiles) = (Vec::new(), Vec::new(), Vec::new());
        for seed in 1..=30 {
            let evidence = format!("seed = {seed}\nstatistics = {statistics}\nse_target = 1");
            let (result, sample) = run(&case(&data, &evidence), folder.path());
            let draws = sample.chains[0].thetas.rows() as f64;
            // The weights are nearly equal: a mixture with a tenth of a t around the exact normal.
            let ess =
                result.models[0].combination.as_ref().unwrap().draws.ess.unwrap_or(0.93 * draws);
            for (j, (m, v)) in moments(&sample).into_iter().enumerate() {
                let exact = covariance[(j, j)];
                means.push((m - mean[j]) / (exact / ess).sqrt());
                // Draws that the shards weigh mirror each other: of squares, a pair is one draw.
                let of_squares = if statistics { ess } else { 0.5 * ess };
                variances.push((v / exact - 1.0) / (2.0 / of_squares).sqrt());
                let parameter = &result.models[0].parameters[j];
                let low = (parameter.low - mean[j]) / exact.sqrt();
                // A quantile's error: √(p(1 − p)/N)/φ.
                quantiles.push((low + 1.959964) / (0.025 * 0.975 / ess).sqrt() * 0.058445);
                // Resampling adds next to nothing to what the weighted draws say.
                if !statistics {
                    assert!((m - parameter.mean).abs() < 0.02 * exact.sqrt());
                }
            }
            // What is fixed is a constant column.
            assert!((0..draws as usize).all(|k| sample.chains[0].thetas[(k, 3)] == SIGMA.ln()));
        }
        for (what, zs) in [("means", means), ("variances", variances), ("quantiles", quantiles)] {
            let (mean, sd) = spread(&zs);
            println!("statistics = {statistics}, {what}: mean z {mean:.2}, sd {sd:.2}");
            assert!(zs.iter().all(|z| z.abs() < 4.0), "{what}: {zs:?}");
            assert!(mean.abs() < 4.0 / (zs.len() as f64).sqrt(), "{what}: mean z {mean}");
            // The means of pairs that mirror each other are far better than those of as many draws.
            let least = if what == "means" && !statistics { 0.0 } else { 0.7 };
            assert!((least..1.3).contains(&sd), "{what}: sd of z {sd}");
        }
    }
}

/// From chains on the shards. (That consensus Monte Carlo is exact for normal subposteriors with known
/// precisions is tested beside it.) Precisions estimated from the same draws are what is left to err.
#[test]
fn consensus_draws_of_chains_have_the_posterior_s_spread() {
    let folder = tempfile::tempdir().unwrap();
    let data = Data::new(folder.path(), 120, 4);
    let (_, covariance) = truth(&data);
    let mut zs = Vec::new();
    for seed in 1..=12 {
        let evidence = format!(
            "combine = \"normal\"\nlocal = \"nuts+warp3\"\nseed = {seed}\ndraws = 1000\nchains = 2\nwarmup = 500"
        );
        let (result, sample) = run(&case(&data, &evidence), folder.path());
        assert_eq!(sample.chains.len(), 2);
        let shards = result.models[0].shards.iter();
        let squares = shards.map(|s| s.diagnostics.chains.as_ref().unwrap().ess_square.unwrap());
        let ess = squares.fold(f64::INFINITY, f64::min);
        for (j, (m, v)) in moments(&sample).into_iter().enumerate() {
            // The draws' mean is the consensus of the draws' means: an identity.
            let reported = &result.models[0].parameters[j];
            assert!((m - reported.mean).abs() < 1e-9, "{m} is not {}", reported.mean);
            assert!(reported.low < reported.median && reported.median < reported.high);
            zs.push((v / covariance[(j, j)] - 1.0) / (2.0 / ess).sqrt());
        }
    }
    let (mean, sd) = spread(&zs);
    println!("consensus variances: mean z {mean:.2}, sd {sd:.2}");
    assert!(zs.iter().all(|z| z.abs() < 4.0), "{zs:?}");
    assert!(mean.abs() < 4.0 / (zs.len() as f64).sqrt(), "mean z {mean}");
    assert!((0.5..1.4).contains(&sd), "sd of z {sd}");
}

#[test]
fn where_there_are_no_draws_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let data = Data::new(folder.path(), 60, 3);
    let plan = |evidence: &str| {
        let study = StudyFile::parse(&case(&data, evidence), Path::new("study.toml")).unwrap();
        Plan::new(study, 1, &Silent).unwrap()
    };
    let posterior = Extras { posterior: true, ..Extras::default() };
    let error = plan("combine = \"normal\"").deliver(&posterior).unwrap_err().to_string();
    assert!(error.contains("--keep-draws"), "{error}");
    // Automatic methods run no chain where importance sampling does.
    let mut auto = plan("combine = \"normal\"\nlocal = \"auto\"");
    let draws = Extras { draws: Some(folder.path().into()), ..Extras::default() };
    auto.deliver(&draws).unwrap();
    let error = auto.deliver(&Extras { posterior: true, ..draws }).unwrap_err().to_string();
    assert!(error.contains("--local nuts+warp3"), "{error}");
    // Without the wish for draws there are none.
    let result = plan("").run(&Silent).unwrap();
    assert!(result.models[0].posterior.is_none());
    assert!(result.write_posterior(folder.path()).unwrap().is_empty());
}
