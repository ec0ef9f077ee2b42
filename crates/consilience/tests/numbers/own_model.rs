//! The worked example of a model of one's own, against integrals.

#[path = "../../../../examples/own_model.rs"]
mod example;

use consilience::arrow_array::cast::AsArray;
use consilience::arrow_array::types::Float64Type;
use consilience::{
    Comparison, Error, Expansion, Foreign, Model, Plan, Prior, Shard, Silent, Target,
};
use example::{StudentT, compare, data, priors};
use std::sync::Arc;

/// All rows in one place.
fn rows() -> (Vec<f64>, Vec<f64>) {
    let tables = data(1);
    let column = |name: &str| {
        let column = tables[0][0].column_by_name(name).unwrap();
        column.as_primitive::<Float64Type>().values().to_vec()
    };
    (column("x"), column("y"))
}

/// log ∫∫∫ e^f over a box that holds all of it, by the trapezoidal rule, which is exact to many digits for
/// smooth functions that vanish at the box's sides.
fn integral(f: impl Fn(&[f64]) -> f64, centre: [f64; 3], reach: [f64; 3]) -> f64 {
    const STEPS: i32 = 24;
    let at = |j: usize, k: i32| centre[j] + reach[j] * f64::from(k) / f64::from(STEPS);
    let mut values = Vec::new();
    for i in -STEPS..=STEPS {
        for j in -STEPS..=STEPS {
            for k in -STEPS..=STEPS {
                values.push(f(&[at(0, i), at(1, j), at(2, k)]));
            }
        }
    }
    let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = values.iter().map(|v| (v - top).exp()).sum();
    top + sum.ln() + reach.iter().map(|r| (r / f64::from(STEPS)).ln()).sum::<f64>()
}

fn log_prior(theta: &[f64]) -> f64 {
    priors().iter().zip(theta).map(|((_, prior), &x)| prior.log_density(x)).sum()
}

/// The evidences of both models.
fn truth() -> [f64; 2] {
    let (x, y) = rows();
    let gaussian = |theta: &[f64]| {
        let s = theta[2].exp();
        let term = |(x, y): (&f64, &f64)| {
            let r = (y - theta[0] - theta[1] * x) / s;
            -0.5 * r * r - theta[2] - 0.5 * (2.0 * std::f64::consts::PI).ln()
        };
        x.iter().zip(&y).map(term).sum::<f64>() + log_prior(theta)
    };
    let own = StudentT::new(x.clone(), y.clone());
    let student = |theta: &[f64]| own.log_density(theta) + log_prior(theta);
    // About ten standard deviations to each side.
    [
        integral(gaussian, [1.0, 0.5, 0.1], [0.7, 0.6, 0.5]),
        integral(student, [1.0, 0.5, -0.22], [0.5, 0.45, 0.55]),
    ]
}

fn z(result: &Comparison, model: usize, truth: f64) -> f64 {
    let found = result.models[model].log_evidence;
    (found.value - truth) / found.se.unwrap_or(0.0).max(1e-6)
}

#[test]
fn both_models_have_the_evidences_of_their_integrals() {
    let [gaussian, student] = truth();
    let exact = compare(8, "exact").unwrap();
    assert_eq!(exact.best.name, "Student-t noise");
    assert!((exact.models[0].log_evidence.value - gaussian).abs() < 1e-6);
    assert!(z(&exact, 1, student).abs() < 4.0, "{:?}, not {student}", exact.models[1].log_evidence);
    assert!(exact.models[1].log_evidence.se.unwrap() <= 0.005);
    // Over one shard, too.
    let one = compare(1, "exact").unwrap();
    assert!(z(&one, 1, student).abs() < 4.0);
    // Shards of 50 rows are not normal, and `normal` says by how much that may count.
    let normal = compare(8, "normal").unwrap();
    for (model, truth) in normal.models.iter().zip([gaussian, student]) {
        let (found, se) = (model.log_evidence.value, model.log_evidence.se.unwrap());
        assert!((found - truth).abs() < 4.0 * se, "{}: {found} ± {se}, not {truth}", model.name);
    }
    assert!(normal.models[1].log_evidence.se.unwrap() < 1.0);
}

/// What is not given is made of gradients: values, many points, Hessians.
#[test]
fn a_gradient_is_enough() {
    let (x, y) = rows();
    let target = StudentT::new(x.clone(), y.clone());
    let theta = [0.9, 0.6, -0.1];
    let at: Expansion = target.expand(&theta);
    assert_eq!(at.value, target.log_density(&theta));
    assert_eq!(target.start(), [0.0; 3]);
    // The second derivative in a by hand: Σ −(ν + 1)(ν − r²)/(s²(ν + r²)²).
    let s = theta[2].exp();
    let term = |(x, y): (&f64, &f64)| {
        let r2 = ((y - theta[0] - theta[1] * x) / s).powi(2);
        -5.0 * (4.0 - r2) / (s * s * (4.0 + r2).powi(2))
    };
    let exact: f64 = x.iter().zip(&y).map(term).sum();
    assert!((at.hessian[(0, 0)] / exact - 1.0).abs() < 1e-8, "{} {exact}", at.hessian[(0, 0)]);
    assert_eq!(at.hessian[(0, 1)], at.hessian[(1, 0)]);
}

/// A likelihood that goes wrong.
struct Broken(f64);

impl Target for Broken {
    fn dim(&self) -> usize {
        1
    }

    fn log_density_gradient(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        gradient[0] = -theta[0];
        self.0
    }
}

#[test]
fn mistakes_are_named() {
    let model = || Model::foreign("own", &[("a", Prior::Normal { mean: 0.0, sd: 1.0 })]);
    let plan = |shards: Vec<Shard>, model: Model| {
        let engine = consilience::Threads::new(shards, 1)?;
        Plan::of_models(engine, vec![model], Default::default())?.run(&Silent)
    };
    let taught = |value: f64| {
        let mut shard = Shard::without_rows(1);
        shard.learn("own", Foreign::new(Arc::new(Broken(value)), 5.0).unwrap());
        shard
    };
    for value in [f64::NAN, f64::INFINITY] {
        let error = plan(vec![taught(0.0), taught(value)], model()).unwrap_err().to_string();
        let named = ["shard 1", "model `own`", "the likelihood is"].iter();
        assert!(named.clone().all(|part| error.contains(part)), "{error}");
    }
    let unknown = plan(vec![Shard::without_rows(0)], model()).unwrap_err();
    assert!(unknown.is_input() && unknown.to_string().contains("Shard::learn"), "{unknown}");
    let two = Model::foreign("own", &[("a", Prior::Fixed { value: 1.0 })]);
    let error = plan(vec![taught(0.0)], two).unwrap_err().to_string();
    assert!(error.contains("1 parameters, and the model has 0"), "{error}");
    assert!(matches!(plan(vec![], model()), Err(Error::Input { .. })));
    assert!(Foreign::new(Arc::new(Broken(0.0)), f64::NAN).is_err());
}
