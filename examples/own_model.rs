//! A model of one's own: is the noise of a straight line normal, or has it heavier tails?
//!
//! The Gaussian regression is one of ours. The other, a regression with Student-t noise, is written here: only
//! its log likelihood and gradient, for the rows of one shard. Both are compared over eight shards, by `exact`
//! and by `normal`.
//!
//!     cargo run --release -p consilience --example own_model

use consilience::arrow_array::{ArrayRef, Float64Array, RecordBatch};
use consilience::{Comparison, Error, Model, Plan, Prior, Shard, Silent, Study, Tables, Target};
use std::sync::Arc;

/// Degrees of freedom of the noise, held fixed.
const DF: f64 = 4.0;

/// log p(y|a, b, log s): y = a + b·x + s·t₄, on the rows of one shard.
pub struct StudentT {
    x: Vec<f64>,
    y: Vec<f64>,
}

impl StudentT {
    /// Of a shard's rows.
    pub fn of(shard: &Shard) -> Result<StudentT, Error> {
        Ok(StudentT { x: shard.numbers("x")?, y: shard.numbers("y")? })
    }

    /// Of these rows.
    pub fn new(x: Vec<f64>, y: Vec<f64>) -> StudentT {
        StudentT { x, y }
    }
}

impl Target for StudentT {
    fn dim(&self) -> usize {
        3
    }

    fn log_density_gradient(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let (a, b, log_s) = (theta[0], theta[1], theta[2]);
        let s = log_s.exp();
        // log Γ(5/2) − log Γ(2) − ½ log 4π: the density of t₄ is this, less 5/2 log(1 + r²/4).
        let constant =
            (0.75 * std::f64::consts::PI.sqrt()).ln() - 0.5 * (4.0 * std::f64::consts::PI).ln();
        let (mut value, mut slopes) = (0.0, [0.0; 3]);
        for (x, y) in self.x.iter().zip(&self.y) {
            let r = (y - a - b * x) / s;
            value += constant - log_s - 0.5 * (DF + 1.0) * (r * r / DF).ln_1p();
            let pull = (DF + 1.0) * r / (DF + r * r);
            slopes[0] += pull / s;
            slopes[1] += pull * x / s;
            slopes[2] += pull * r - 1.0;
        }
        gradient.copy_from_slice(&slopes);
        value
    }
}

/// Rows of a straight line with heavy-tailed noise, a table per shard.
pub fn data(shards: usize) -> Vec<Vec<RecordBatch>> {
    // Quantiles of t₄ noise, far from even: no random numbers are needed.
    let noise = |i: usize| {
        let p = ((i * 89) % 400) as f64 / 400.0 + 0.5 / 400.0;
        // The quantile function of t₄ is known in closed form.
        let alpha = 4.0 * p * (1.0 - p);
        let q = ((alpha.sqrt().acos() / 3.0).cos() / alpha.sqrt() - 1.0).max(0.0);
        2.0 * (p - 0.5).signum() * q.sqrt()
    };
    let rows: Vec<(f64, f64)> = (0..400)
        .map(|i| {
            let x = ((i * 37) % 400) as f64 / 100.0 - 2.0;
            (x, 1.0 + 0.5 * x + 0.8 * noise(i))
        })
        .collect();
    let table = |rows: &[(f64, f64)]| {
        let column = |of: fn(&(f64, f64)) -> f64| -> ArrayRef {
            Arc::new(rows.iter().map(of).collect::<Float64Array>())
        };
        let columns = [("x", column(|r| r.0)), ("y", column(|r| r.1))];
        vec![RecordBatch::try_from_iter(columns).expect("columns of one length")]
    };
    rows.chunks(rows.len() / shards).map(table).collect()
}

/// Priors of a, b and log s: those of the Gaussian regression too.
pub fn priors() -> [(&'static str, Prior); 3] {
    let normal = |sd| Prior::Normal { mean: 0.0, sd };
    [("a", normal(3.0)), ("b", normal(2.0)), ("log_s", normal(1.0))]
}

/// Compares the two over so many shards.
pub fn compare(shards: usize, combine: &str) -> Result<Comparison, Error> {
    let study = Study::from_toml(&format!(
        r#"
        [[model]]
        name = "normal noise"
        formula = "y ~ x"
        family = "gaussian"
        prior.parameters = {{ "(Intercept)" = "normal(0, 3)", x = "normal(0, 2)", log_sd = "normal(0, 1)" }}
        [evidence]
        combine = {combine:?}
        se_target = 0.005
        draws = 20_000
        "#
    ))?;
    let mut plan = Plan::of_tables(study, Tables::shards(data(shards))?, 2, &Silent)?;
    plan.add_model(Model::foreign("Student-t noise", &priors()), StudentT::of)?;
    plan.run(&Silent)
}

#[allow(dead_code)] // The tests use the functions above.
fn main() -> Result<(), Error> {
    for combine in ["exact", "normal"] {
        let result = compare(8, combine)?;
        println!("{combine}:");
        for model in &result.models {
            let (value, se) = (model.log_evidence.value, model.log_evidence.se.unwrap_or(0.0));
            println!(
                "  {:16} log evidence {value:10.4} ± {se:.4}, probability {:.4}",
                model.name, model.probability
            );
        }
    }
    Ok(())
}
