//! What is said about several models together: how sure it is, averages, other priors.

use crate::common::{Case, run};
use crate::known_sd::{Data, log_evidence};
use consilience::compare::Comparison;
use consilience::engine::Silent;
use consilience::plan::{Extras, Plan};
use consilience::study::StudyFile;
use std::path::Path;

fn pima(evidence: &str) -> Case {
    let mut case = Case::new("pima_tr.csv", 4);
    case.evidence = evidence.into();
    case.model("type ~ scale(glu) + scale(bmi)", "logistic");
    case.model("type ~ scale(glu) + scale(ped)", "logistic");
    case.model("type ~ scale(age)", "logistic");
    case
}

fn plan(text: &str) -> Plan {
    Plan::new(StudyFile::parse(text, Path::new("study.toml")).unwrap(), 2, &Silent).unwrap()
}

/// The 95% intervals of probabilities hold the exact ones that often.
#[test]
fn intervals_of_probabilities_cover_the_exact_ones() {
    let folder = tempfile::tempdir().unwrap();
    let data = Data::new(folder.path(), 40, 2);
    let columns: [&[usize]; 3] = [&[0, 1], &[0, 2], &[0, 1, 2]];
    let exact = columns.map(|c| log_evidence(&data.rows(c, |_| true), &vec![1.0; c.len()], 1.0));
    let top = exact.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = exact.iter().map(|z| (z - top).exp()).sum();
    let (mut held, mut asked) = ([0; 3], 0);
    for seed in 1..=100 {
        let mut case = Case::new(&data.path, 2);
        case.prior = "log_sd = \"fixed(0)\"".into();
        case.evidence = format!("statistics = false\ndraws = 200\nse_target = 1\nseed = {seed}");
        for formula in ["y ~ x", "y ~ z", "y ~ x + z"] {
            case.model(formula, "gaussian");
        }
        asked += 1;
        for (i, model) in run(&case.text()).models.iter().enumerate() {
            let [low, high] = model.probability_interval.unwrap();
            assert!(low <= model.probability && model.probability <= high);
            let probability = (exact[i] - top).exp() / total;
            held[i] += usize::from(low <= probability && probability <= high);
        }
    }
    println!("{held:?} of {asked}");
    // 95 of 100 are expected; the normal law for small samples of weights is worth a few.
    assert!(held.iter().all(|h| *h >= 86), "{held:?} of {asked}");
}

/// Every scale of priors is the study with those priors, bit for bit.
#[test]
fn a_sweep_over_priors_is_many_studies() {
    let folder = tempfile::tempdir().unwrap();
    let data = Data::new(folder.path(), 80, 3);
    let logistic = |sd: f64, t: f64, b: f64| {
        let mut case = pima("");
        case.prior = format!(
            "intercept = \"normal(0, 3)\"\ncoefficients = \"normal(0, {sd})\"\n[prior.parameters]\n\"scale(bmi)\" = \"student_t(4, 0, {t})\"\n\"scale(ped)\" = \"laplace(0.5, {b})\"\n\"scale(age)\" = \"fixed(0.5)\""
        );
        case.text()
    };
    let gaussian = |sd: f64| {
        let mut case = Case::new(&data.path, 3);
        case.prior = format!("coefficients = \"normal(0, {sd})\"");
        case.model("y ~ x + z", "gaussian").model("y ~ x", "gaussian");
        case.text()
    };
    let normal = |sd: f64| gaussian(sd) + "[evidence]\ncombine = \"normal\"\ndraws = 500\n";
    let normal = |sd: f64| normal(sd).replacen("[evidence]\n\n", "", 1);
    let studies: [&dyn Fn(f64) -> String; 3] =
        [&|f| logistic(f, 2.0 * f, 0.5 * f), &gaussian, &normal];
    for study in studies {
        let mut plan = plan(&study(1.0));
        plan.deliver(&scaled(&[4.0, 0.25, 4.0])).unwrap();
        let result = plan.run(&Silent).unwrap();
        let sweep = result.prior_sensitivity.as_ref().unwrap();
        assert_eq!(sweep.iter().map(|at| at.scale).collect::<Vec<_>>(), [0.25, 1.0, 4.0]);
        for at in sweep {
            let alone = run(&study(at.scale));
            for (a, b) in at.models.iter().zip(&alone.models) {
                assert_eq!(a.log_evidence, b.log_evidence, "× {}", at.scale);
                assert_eq!(a.log_bayes_factor, b.log_bayes_factor);
                assert!((a.probability - b.probability).abs() < 1e-12);
            }
            assert_eq!(at.best, alone.best.name);
            assert_eq!(at.reordered, is_reordered(&result, &alone));
        }
        // The models share rounds over all priors.
        assert!(result.rounds <= 2 * run(&study(1.0)).rounds);
    }
}

fn scaled(factors: &[f64]) -> Extras {
    Extras { prior_scales: factors.to_vec(), ..Extras::default() }
}

/// Whether two models have changed places, before and after by more than two standard errors.
fn is_reordered(before: &Comparison, after: &Comparison) -> bool {
    let sign = |result: &Comparison, i: usize, j: usize| {
        let [a, b] = [i, j].map(|k| result.models[k].log_evidence);
        let gap = a.value - b.value;
        let error = a.se.unwrap_or(0.0).hypot(b.se.unwrap_or(0.0));
        if gap.abs() > 2.0 * error { gap.signum() } else { 0.0 }
    };
    let models = before.models.len();
    (0..models).any(|i| (0..i).any(|j| sign(before, i, j) * sign(after, i, j) < 0.0))
}

#[test]
fn scales_that_are_none_are_refused() {
    let mut plan = plan(&pima("").text());
    for wrong in [0.0, -2.0, f64::NAN, f64::INFINITY] {
        let error = plan.deliver(&scaled(&[2.0, wrong])).unwrap_err();
        assert!(error.is_input() && error.to_string().contains("positive"), "{error}");
    }
    for wrong in [1e-320, 1e300] {
        let error = plan.deliver(&scaled(&[wrong])).unwrap_err();
        assert!(error.is_input() && error.to_string().contains("cannot be made"), "{error}");
    }
}

/// Averages are the mixture's moments, here computed from its first two moments about 0.
#[test]
fn averages_are_moments_of_the_mixture() {
    let mut case = pima("");
    case.models += "[[model]]\nname = \"held\"\nformula = \"type ~ scale(glu) + scale(bmi)\"\nfamily = \"logistic\"\n[model.prior.parameters]\n\"scale(glu)\" = \"fixed(0.7)\"\n\"scale(bmi)\" = \"fixed(0)\"\n";
    let result = run(&case.text());
    assert_eq!(result.averages.reason, None);
    let names: Vec<&str> = result.averages.parameters.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["(Intercept)", "scale(glu)", "scale(bmi)", "scale(ped)", "scale(age)"]);
    for average in &result.averages.parameters {
        let (mut inside, mut first, mut second) = (0.0, 0.0, 0.0);
        for model in &result.models {
            let found = model.parameters.iter().find(|p| p.name == average.name);
            let Some(p) = found.filter(|p| p.prior != "fixed(0)") else { continue };
            inside += model.probability;
            first += model.probability * p.mean;
            second += model.probability * (p.sd * p.sd + p.mean * p.mean);
        }
        let near =
            |a: f64, b: f64| assert!((a - b).abs() < 1e-9 * (1.0 + b.abs()), "{a} is not {b}");
        near(average.inclusion_probability, inside);
        near(average.mean, first);
        near(average.sd, (second - first * first).sqrt());
        near(average.included_mean.unwrap(), first / inside);
        near(average.included_sd.unwrap(), (second / inside - (first / inside).powi(2)).sqrt());
    }
}

#[test]
fn coefficients_are_averaged_over_one_link_only() {
    let mixed = |first: &str, second: &str| {
        let mut case = Case::new("pima_tr.csv", 2);
        let y = if first == "logistic" { "type" } else { "npreg" };
        case.model(&format!("{y} ~ scale(age)"), first);
        case.model(&format!("{y} ~ scale(glu)"), second);
        run(&case.text()).averages
    };
    let averages = mixed("logistic", "probit");
    assert!(averages.parameters.is_empty());
    let reason = averages.reason.unwrap();
    assert!(reason.contains("logit link") && reason.contains("probit link"), "{reason}");
    // Both on the log scale; a dispersion that one model does not have is not 0 there.
    let averages = mixed("poisson", "negative-binomial");
    assert_eq!(averages.reason, None);
    assert!(averages.parameters.iter().all(|a| a.name != "log_dispersion"));
    let own = mixed("negative-binomial", "negative-binomial").parameters;
    assert_eq!(own.iter().filter(|a| a.name == "log_dispersion").count(), 1);
}

/// Two names for one model: the data cannot tell them apart, and that is said.
#[test]
fn twins_are_too_close() {
    let mut case = Case::new("pima_tr.csv", 2);
    for name in ["one", "other"] {
        case.models += &format!(
            "[[model]]\nname = {name:?}\nformula = \"type ~ scale(glu)\"\nfamily = \"logistic\"\n"
        );
    }
    let result = run(&case.text());
    let certainty = result.best.certainty.unwrap();
    assert!((0.5..0.999).contains(&certainty), "{certainty}");
    let warning = result.warnings.iter().find(|w| w.code == "too-close");
    assert_eq!(warning.is_some(), certainty < 0.975);
    for model in &result.models {
        let [low, high] = model.probability_interval.unwrap();
        assert!(low < 0.5 + 0.02 && high > 0.5 - 0.02, "{low} to {high}");
    }
    // Without error bars nothing is said about errors.
    let laplace = run(&(case.text() + "[evidence]\ncombine = \"normal\"\nlocal = \"laplace\"\n")
        .replacen("[evidence]\n\n", "", 1));
    assert_eq!(laplace.best.certainty, None);
    assert!(laplace.models.iter().all(|m| m.probability_interval.is_none()));
}

/// Draws, shards left out and other priors have the same bits on any number of threads.
#[test]
fn extras_do_not_depend_on_threads() {
    let of = |threads: usize| {
        let study = StudyFile::parse(&pima("").text(), Path::new("study.toml")).unwrap();
        let mut plan = Plan::new(study, threads, &Silent).unwrap();
        let extras = Extras { posterior: true, leave_one_out: true, ..scaled(&[0.5]) };
        plan.deliver(&extras).unwrap();
        plan.run(&Silent).unwrap()
    };
    let one = of(1);
    assert!(one.leave_one_out.is_some() && one.models[0].posterior.is_some());
    for threads in [2, 5] {
        let other = of(threads);
        assert_eq!(serde_json::to_string(&one).unwrap(), serde_json::to_string(&other).unwrap());
        assert_eq!(one, other);
    }
}
