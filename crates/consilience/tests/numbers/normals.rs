//! `normal` with and without its correction: they differ by the bias of moments from draws, and by nothing else.

use crate::common::Case;
use consilience::combine::{Evidence, combine};
use consilience::engine::{Session, Silent};
use consilience::fit::Summary;
use consilience::math::{Cholesky, Matrix, dot};
use consilience::study::{Combine, StudyFile};
use consilience::{Answered, Answers, Engine, Plan, Question, Result};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An engine that counts what it is asked.
struct Counting<'a>(&'a dyn Engine, AtomicUsize);

impl Engine for Counting<'_> {
    fn shards(&self) -> usize {
        self.0.shards()
    }

    fn ask(&self, questions: &[Question], answered: &Answered) -> Result<Vec<Answers>> {
        self.1.fetch_add(questions.len(), Ordering::Relaxed);
        self.0.ask(questions, answered)
    }
}

/// The evidence of a study's model by both combinations. Shards are asked once for both.
fn both(study: &Case) -> [Evidence; 2] {
    let study = StudyFile::parse(&study.text(), Path::new("study.toml")).unwrap();
    let plan = Plan::new(study, 2, &Silent).unwrap();
    let counting = Counting(plan.engine(), AtomicUsize::new(0));
    let session = Session::new(&counting, &Silent).remembering();
    let found = [Combine::Normal, Combine::NormalUncorrected].map(|kind| {
        let mut setting = plan.settings[0].clone();
        setting.options.combine = kind;
        combine(&session, &[setting]).unwrap().remove(0)
    });
    assert_eq!(session.traffic().rounds, 1, "what is remembered is no round");
    assert_eq!(counting.1.into_inner(), 1, "the second asks nothing new");
    found
}

/// The formula of METHOD.md §2, by plain products of matrices.
fn bias(summaries: &[Summary]) -> f64 {
    let invert = |m: &Matrix| Cholesky::new(m).unwrap().inverse();
    let trace = |m: &Matrix| m.diagonal().iter().sum::<f64>();
    let d = summaries[0].mean.len();
    let precisions: Vec<Matrix> = summaries.iter().map(|s| invert(&s.covariance)).collect();
    let (mut all, mut pull) = (Matrix::zeros(d, d), vec![0.0; d]);
    for (precision, summary) in precisions.iter().zip(summaries) {
        all.add_scaled(1.0, precision);
        pull.iter_mut().zip(precision.times(&summary.mean)).for_each(|(sum, own)| *sum += own);
    }
    let covariance = invert(&all);
    let mean = covariance.times(&pull);
    let mut bias = 0.0;
    for (precision, summary) in precisions.iter().zip(summaries) {
        let Some(effective) = summary.effective else { continue };
        let p = covariance.product(precision);
        let (t, t2) = (trace(&p), trace(&p.product(&p)));
        let delta: Vec<f64> = summary.mean.iter().zip(&mean).map(|(a, b)| a - b).collect();
        let pulled = precision.times(&delta);
        let (q, spread) = (dot(&delta, &pulled), covariance.quadratic(&pulled));
        let d = d as f64;
        bias += (d * (d + 1.0) - 2.0 * (d + 1.0) * t + t * t + t2 - 2.0 * (d + 1.0 - t) * q
            + 2.0 * spread
            - 2.0 * (d - t))
            / (4.0 * effective);
    }
    bias
}

#[test]
fn analytic_moments_need_no_correction() {
    let cases = [
        ("gauss.parquet", "y ~ x1 + x2 + x3", "gaussian", "quadrature"),
        ("sim2.parquet", "y ~ x1 + x2", "logistic", "laplace"),
    ];
    for (data, formula, family, local) in cases {
        let mut study = Case::new(data, 4);
        study.evidence = format!("local = {local:?}");
        study.model(formula, family);
        let [corrected, plain] = both(&study);
        assert_eq!(corrected.log_z, plain.log_z, "{local}");
        assert_eq!(corrected.overlap, plain.overlap, "{local}");
    }
}

#[test]
fn without_correction_the_bias_is_left() {
    for (local, shards) in [("importance", 1), ("importance", 5), ("nuts+warp3", 8)] {
        let mut study = Case::new("sim2.parquet", shards);
        study.evidence = format!("local = {local:?}\ndraws = 500\nwarmup = 200");
        study.model("y ~ x1 + x2 + x3 + x4 + x5", "logistic");
        let [corrected, plain] = both(&study);
        let expected = bias(corrected.summaries.as_ref().unwrap());
        let found = plain.log_z.value - corrected.log_z.value;
        println!("{local} on {shards} shards: {found:.6} nats, by the formula {expected:.6}");
        assert!((found - expected).abs() < 1e-7 * (1.0 + expected.abs()), "{found}, {expected}");
        assert_eq!(found.abs() > 0.01, shards > 1);
        assert_eq!(plain.log_z.se, corrected.log_z.se);
        assert_eq!(plain.shape_error, corrected.shape_error);
        assert_eq!(plain.summaries, corrected.summaries);
    }
}
