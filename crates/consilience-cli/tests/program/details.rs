//! What single shards computed, on request.

use crate::runs::finish;
use crate::{Folder, NULL, STUDY, data};
use consilience::math::{Cholesky, Matrix};
use serde_json::Value;

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().unwrap_or_else(|| panic!("{value} is no list"));
    list.iter().map(|v| v.as_f64().expect("a number")).collect()
}

/// Means and covariances of the shards' posteriors of a model.
fn moments(model: &Value) -> Vec<(Vec<f64>, Matrix)> {
    let shards = model["shards"].as_array().expect("shards");
    shards
        .iter()
        .map(|shard| {
            let (details, rows) = (&shard["details"], &shard["details"]["covariance"]);
            let mean = numbers(&details["mean"]);
            let rows = rows.as_array().expect("rows").iter().flat_map(numbers).collect();
            let covariance = Matrix::from_rows(mean.len(), mean.len(), rows);
            (mean, covariance)
        })
        .collect()
}

/// The product of the shards' normals is the posterior that `normal` reports.
#[test]
fn details_are_what_the_combination_is_made_of() {
    let folder = Folder::with(&format!("{STUDY}{NULL}"), &data());
    for local in ["importance", "laplace"] {
        let flags = ["--combine", "normal", "--local", local, "--shard-details"];
        let run = folder.run(&[&["compare", "s.toml", "--json"], &flags[..]].concat());
        let document: Value = serde_json::from_str(&run.out).expect("JSON");
        for model in document["models"].as_array().unwrap() {
            let parameters = model["parameters"].as_array().unwrap();
            let d = parameters.len();
            let (mut precision, mut pull) = (Matrix::zeros(d, d), vec![0.0; d]);
            for (mean, covariance) in moments(model) {
                let own = Cholesky::new(&covariance).expect("positive definite").inverse();
                precision.add_scaled(1.0, &own);
                pull.iter_mut().zip(own.times(&mean)).for_each(|(sum, own)| *sum += own);
            }
            let all = Cholesky::new(&precision).expect("positive definite");
            for (j, mean) in all.solve(&pull).into_iter().enumerate() {
                let reported = parameters[j]["mean"].as_f64().unwrap();
                assert!((mean - reported).abs() < 1e-9, "{local}: {mean}, not {reported}");
                let sd = all.inverse()[(j, j)].sqrt();
                assert!((sd - parameters[j]["sd"].as_f64().unwrap()).abs() < 1e-9);
            }
            for shard in model["shards"].as_array().unwrap() {
                assert_eq!(shard["details"]["effective"].is_number(), local == "importance");
            }
        }
        let seconds = numbers(&document["shard_seconds"]);
        assert!(seconds.len() == 4 && seconds.iter().all(|s| *s > 0.0), "{seconds:?}");
    }
}

/// A run directory has the same details at any time, and no clock.
#[test]
fn runs_have_the_same_details() {
    let folder = Folder::with(STUDY, &data());
    let flags = ["--combine", "normal"];
    assert_eq!(
        folder.run(&[&["split", "s.toml", "--run", "r"], &flags[..]].concat()).code,
        Some(0)
    );
    let of = |text: &str| -> Value { serde_json::from_str(text).expect("JSON") };
    let plain = of(&finish(&folder, &["--json"]));
    assert!(plain["models"][0]["shards"][0]["details"].is_null());
    let asked = of(&folder.run(&["combine", "r", "--json", "--shard-details"]).out);
    let here =
        folder.run(&[&["compare", "s.toml", "--json", "--shard-details"], &flags[..]].concat());
    assert_eq!(asked["models"], of(&here.out)["models"]);
    assert!(!asked["models"][0]["shards"][3]["details"].is_null());
    assert!(asked["shard_seconds"].is_null());
    // Shards that fit nothing have nothing to tell.
    let exact = folder.json(0, &["--shard-details"]);
    assert!(exact["models"][0]["shards"][0]["details"].is_null());
}
