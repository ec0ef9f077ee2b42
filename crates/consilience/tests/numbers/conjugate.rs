//! Gaussian models with known σ and normal priors: the decomposition over shards is exact there, and
//! the evidence has a closed form.

use crate::common::{Case, run};
use consilience::math::{Cholesky, LOG_2PI, Matrix, dot, stream};
use rand::RngExt;
use std::fmt::Write;

const ROWS: usize = 203;

/// y = 1 + 2x − z/2 + group effect + noise, written as CSV; also the columns.
fn data(folder: &std::path::Path, groups: usize) -> (String, Vec<f64>, Vec<Vec<f64>>) {
    let mut rng = stream(1, 0, 0, "conjugate test");
    let mut uniform = || rng.random::<f64>() - 0.5;
    let (mut text, mut y) = ("y,x,z,group\n".to_string(), Vec::new());
    let mut columns = vec![Vec::new(); 5];
    for i in 0..ROWS {
        let (x, z, group) = (3.0 * uniform(), 100.0 + 10.0 * uniform(), i % groups);
        let outcome = 1.0 + 2.0 * x - 0.5 * z + [0.0, 1.0, -1.0][group] + 4.0 * uniform();
        writeln!(text, "{outcome},{x},{z},{}", ["a", "b", "c"][group]).unwrap();
        y.push(outcome);
        let row = [1.0, x, z, f64::from(group == 1), f64::from(group == 2)];
        columns.iter_mut().zip(row).for_each(|(c, v)| c.push(v));
    }
    let path = folder.join("conjugate.csv");
    std::fs::write(&path, text).unwrap();
    (path.to_str().unwrap().to_string(), y, columns)
}

/// log N(y; Xm, σ²I + XVX') with a prior mean and standard deviation per column.
fn closed_form(y: &[f64], columns: &[Vec<f64>], prior: &[(f64, f64)], sigma: f64) -> f64 {
    let n = y.len();
    let mut covariance = Matrix::identity(n);
    covariance.scale(sigma * sigma);
    let mut residual = y.to_vec();
    for (column, (mean, sd)) in columns.iter().zip(prior) {
        covariance.add_outer(sd * sd, column);
        residual.iter_mut().zip(column).for_each(|(r, x)| *r -= mean * x);
    }
    let factor = Cholesky::new(&covariance).unwrap();
    let z = factor.solve_lower(&residual);
    -0.5 * (n as f64 * LOG_2PI + factor.log_det() + dot(&z, &z))
}

#[test]
fn the_decomposition_is_exact_for_any_split() {
    // With every third row of group c; and without, so that on many shards columns are collinear.
    for groups in [3, 2] {
        exact_for_any_split(groups);
    }
}

fn exact_for_any_split(groups: usize) {
    let folder = tempfile::tempdir().unwrap();
    let (path, y, columns) = data(folder.path(), groups);
    let (log_sd, sigma) = (0.25, 0.25f64.exp());
    let prior = [(0.5, 2.0), (-1.0, 0.7), (0.0, 0.3), (0.0, 1.5), (0.0, 1.5)];
    let exact = closed_form(&y, &columns, &prior, sigma);
    for by in ["random", "outcome", "cluster", "column:group"] {
        for share in ["equal", "rows"] {
            for shards in [1, 2, 7, 50] {
                if by == "column:group" && shards > 1 {
                    continue;
                }
                let mut study = Case::new(&path, shards);
                study.split = format!("by = {by:?}\nshare = {share:?}\nseed = 3\n");
                if by != "column:group" {
                    study.split += &format!("shards = {shards}");
                }
                study.prior = format!(
                    "intercept = \"normal(0.5, 2)\"\nlog_sd = \"fixed({log_sd})\"\n\
                     [prior.parameters]\nx = \"normal(-1, 0.7)\"\nz = \"normal(0, 0.3)\"\ngroup = \"normal(0, 1.5)\""
                );
                study.evidence = "local = \"laplace\"\ncombine = \"normal\"".into();
                study.model("y ~ x + z + group", "gaussian");
                let result = run(&study.text());
                let model = &result.models[0];
                let found = model.log_evidence.value;
                assert!(
                    (found - exact).abs() < 1e-8,
                    "{by}, {share}, {shards} shards: {found} is not {exact}"
                );
                let parts = model.parts.shards.unwrap().value + model.parts.overlap.unwrap().value;
                assert!((found - parts).abs() < 1e-9);
                let sd = model.parameters.last().map(|p| (p.name.as_str(), p.mean, p.sd));
                assert_eq!(sd, Some(("log_sd", log_sd, 0.0)));
            }
        }
    }
}

/// p̃(y_s) = Z_s/α_s: with the normalised subpriors in place of the powers, each shard's evidence
/// has its own closed form, with the prior's variance divided by w_s.
#[test]
fn alpha_turns_shard_evidences_into_those_under_normalised_subpriors() {
    let folder = tempfile::tempdir().unwrap();
    let (path, y, columns) = data(folder.path(), 3);
    let mut study = Case::new(&path, 1);
    study.split = "by = \"column:group\"\nshare = \"rows\"".into();
    study.prior = "log_sd = \"fixed(0)\"".into();
    study.evidence = "local = \"laplace\"\ncombine = \"normal\"".into();
    study.model("y ~ x + z", "gaussian");
    let result = run(&study.text());
    let model = &result.models[0];
    let mut sum = 0.0;
    for (s, shard) in model.shards.iter().enumerate() {
        let rows: Vec<usize> = (0..ROWS).filter(|i| i % 3 == s).collect();
        let pick = |v: &[f64]| rows.iter().map(|&r| v[r]).collect::<Vec<f64>>();
        let x: Vec<Vec<f64>> = columns[..3].iter().map(|c| pick(c)).collect();
        let sd = shard.share.sqrt().recip();
        sum += closed_form(&pick(&y), &x, &[(0.0, sd); 3], 1.0);
    }
    let normalised = model.parts.shards.unwrap().value - model.parts.log_alpha.unwrap();
    assert!((normalised - sum).abs() < 1e-7, "{normalised} is not {sum}");
}
