//! Prior texts, and which prior a parameter gets.

use super::*;
use consilience::model::Prior;
use consilience::study::{ParameterName, PriorSpec, Role, resolve_priors, unmatched_study_priors};

#[test]
fn prior_texts_are_read_and_written() {
    let normal = |mean, sd| Prior::Normal { mean, sd };
    let student = |df, mean, scale| Prior::StudentT { df, mean, scale };
    for (text, expected, shown) in [
        ("normal(0, 1)", normal(0.0, 1.0), "normal(0, 1)"),
        ("  normal ( -1.5e0 ,2 )\n", normal(-1.5, 2.0), "normal(-1.5, 2)"),
        ("normal(1e300,1e-9)", normal(1e300, 1e-9), "normal(1e300, 1e-9)"),
        ("laplace(0,3)", Prior::Laplace { mean: 0.0, scale: 3.0 }, "laplace(0, 3)"),
        ("student_t(3, 0, 2.5)", student(3.0, 0.0, 2.5), "student_t(3, 0, 2.5)"),
        ("cauchy(1, 2)", student(1.0, 1.0, 2.0), "cauchy(1, 2)"),
        ("student_t(1, 1, 2)", student(1.0, 1.0, 2.0), "cauchy(1, 2)"),
        ("fixed(-0.5)", Prior::Fixed { value: -0.5 }, "fixed(-0.5)"),
    ] {
        let prior: Prior = text.parse().unwrap();
        assert_eq!((prior, prior.to_string().as_str()), (expected, shown));
        assert_eq!(shown.parse::<Prior>().unwrap(), expected);
        // The same with and without the data's units.
        let spec: PriorSpec = text.parse().unwrap();
        assert_eq!((spec, spec.to_string().as_str()), (expected.into(), shown));
        if expected.fixed().is_none() {
            let spec: PriorSpec = format!("{text} per  sd ").parse().unwrap();
            assert_eq!(spec, PriorSpec::per_sd(expected));
            assert_eq!(spec.to_string(), format!("{shown} per sd"));
        }
    }
}

#[test]
fn priors_that_tie_parameters_are_read_as_they_are_written() {
    for (text, shown) in [
        ("normal(0, 2) * sigma", "normal(0, 2) * sigma"),
        ("normal(0, 2)*sigma per sd", "normal(0, 2) * sigma per sd"),
        ("normal(0, 2) per sd * sigma", "normal(0, 2) * sigma per sd"),
        ("jzs", "jzs(medium)"),
        ("jzs(ultrawide)", "jzs(ultrawide)"),
        (" jzs(0.4) ", "jzs(0.4)"),
        ("g-prior(\"n\")", "g-prior(n)"),
        ("g-prior(250)", "g-prior(250)"),
        ("hyper-g", "hyper-g(3)"),
        ("hyper-g/n(4)", "hyper-g/n(4)"),
        ("robust", "robust"),
        ("flat", "flat"),
    ] {
        let spec: PriorSpec = text.parse().unwrap();
        assert_eq!(spec.to_string(), shown);
        assert_eq!(shown.parse::<PriorSpec>().unwrap(), spec);
    }
    for text in ["robust(1)", "jzs(0)", "jzs(1", "hyper-g(x)", "g-prior(n) * sigma", "jzs per sd"] {
        let error = text.parse::<PriorSpec>().unwrap_err();
        assert!(error.is_input() && error.to_string().contains("; write "), "{text}: {error}");
    }
}

#[test]
fn priors_are_rounded_for_people() {
    for (text, shown) in [
        ("normal(4201.754385964912, 2004.8848)", "normal(4201.75, 2004.88)"),
        ("student_t(3.1234567, -0.1, 1e-7)", "student_t(3.1234567, -0.1, 1e-7)"),
        ("laplace(0, 1234567.8)", "laplace(0, 1234570)"),
        ("fixed(0.123456789)", "fixed(0.123456789)"),
    ] {
        assert_eq!(text.parse::<Prior>().unwrap().rounded().to_string(), shown);
    }
}

#[test]
fn what_stands_behind_a_prior_is_per_sd_or_wrong() {
    for (text, needles) in [
        ("normal(0, 1) per", &["`per` behind the prior", "or normal(0, 1) per sd"][..]),
        ("normal(0, 1) x", &["`x` behind the prior", "write normal(0, 1)"]),
        ("laplace(0, 1)per sd!", &["`per sd!` behind"]),
        ("fixed(2) per sd", &["held fixed", "write fixed(2)"]),
        ("norml(0, 1) per sd", &["did you mean `normal`?"]),
        ("normal(0, -1) per sd", &["must be positive"]),
        ("normal per sd", &["there is no prior `normal per sd`", "`normal`"]),
        ("per sd", &["there is no prior"]),
    ] {
        let error = text.parse::<PriorSpec>().unwrap_err();
        assert!(error.is_input());
        for needle in needles {
            assert!(error.to_string().contains(needle), "{text}: {error} lacks {needle}");
        }
    }
}

#[test]
fn wrong_prior_texts_say_what_to_write() {
    for (text, needles) in [
        ("", &["there is no prior ``", "`student_t`"][..]),
        ("norml(0, 1)", &["`norml`; did you mean `normal`?", "`laplace`"]),
        ("half-normal(0, 1)", &["log_sd = \"normal(0, 1) per sd\""]),
        ("t(3, 0, 1)", &["there is no prior `t`", "`student_t`"]),
        ("normal", &["`normal` is not a prior", "normal(mean, sd)"]),
        ("normal(0, 1", &["normal(mean, sd)"]),
        ("normal(0, 1))", &["the sd", "`1)`"]),
        ("normal(0, 1) x", &["normal(mean, sd)"]),
        ("normal()", &["0 argument(s)", "normal(mean, sd) takes 2"]),
        ("student_t(0, 1)", &["2 argument(s)", "student_t(df, mean, scale) takes 3"]),
        ("fixed(1, 2)", &["2 argument(s)", "fixed(value) takes 1"]),
        ("normal(0, 1,)", &["3 argument(s)"]),
        ("normal(0, 0)", &["the sd of `normal(0, 0)` must be positive"]),
        ("normal(0, -1)", &["must be positive"]),
        ("laplace(0, -1)", &["the scale", "must be positive"]),
        ("student_t(0, 0, 1)", &["the df", "must be positive"]),
        ("normal(zero, 1)", &["the mean", "finite number, not `zero`"]),
        ("normal(inf, 1)", &["the mean", "finite"]),
        ("normal(0, nan)", &["the sd", "finite"]),
        ("fixed(1e999)", &["the value", "finite"]),
        ("cauchy(, 1)", &["the mean", "not ``"]),
    ] {
        let error = text.parse::<Prior>().unwrap_err();
        assert!(error.is_input());
        for needle in needles {
            assert!(error.to_string().contains(needle), "{text}: {error} lacks {needle}");
        }
    }
    // A hostile text is neither echoed whole nor compared at length.
    let long = "x".repeat(1 << 20).parse::<Prior>().unwrap_err().to_string();
    assert!(long.len() < 500, "{}", long.len());
}

/// Names are known in any case, and those of others by what they are here.
#[test]
fn priors_of_others_are_known() {
    let spec = |text: &str| text.parse::<PriorSpec>();
    for (typed, ours) in [
        ("JZS(Medium)", "jzs(medium)"),
        ("Hyper-G/N(3)", "hyper-g/n(3)"),
        ("Normal(0, 1) per sd", "normal(0, 1) per sd"),
        ("Student_T(3, 0, 1)", "student_t(3, 0, 1)"),
        ("Flat", "flat"),
    ] {
        assert_eq!(spec(typed).unwrap().to_string(), ours);
    }
    for (typed, advice) in [
        ("hyper-g-n(3)", "write hyper-g/n(3)"),
        ("ZS-null", "write jzs(1)"),
        ("zellner-siow", "write jzs(1)"),
        ("uip", "write g-prior(n)"),
        ("unit information", "write g-prior(n)"),
        ("half_cauchy(0,1)", "log_sd = \"normal(0, 1) per sd\""),
        ("half-normal", "log_sd = \"normal(0, 1) per sd\""),
        ("uniform(0, 1)", "write normal(mean, sd)"),
        ("zebra(1)", "there is no prior `zebra` (known"),
    ] {
        let error = spec(typed).unwrap_err().to_string();
        assert!(error.contains(advice), "{typed}: {error}");
        for known in ["normal", "jzs", "g-prior", "hyper-g", "hyper-g/n", "robust", "flat"] {
            assert!(error.contains(&format!("`{known}`")), "{typed}: {error} lacks {known}");
        }
    }
    for typed in ["jzs(1e300)", "jzs(1e-300)"] {
        let error = spec(typed).unwrap_err().to_string();
        assert!(error.contains("a scale beyond 1e-9 and 1e9"), "{error}");
    }
}

fn parameter(name: &str, term: &str, role: Role) -> ParameterName {
    ParameterName::new(name, term, role)
}

fn carriers() -> Vec<ParameterName> {
    vec![
        parameter("(intercept)", "(intercept)", Role::Intercept),
        parameter("delay", "delay", Role::Coefficient),
        parameter("carrierAA", "carrier", Role::Coefficient),
        parameter("carrierUA", "carrier", Role::Coefficient),
        parameter("log_sd", "log_sd", Role::LogSd),
    ]
}

/// The priors' standard deviations, under this `[prior]` and this `[model.prior]`.
fn resolved(study: &str, model: &str) -> Vec<f64> {
    let study = parse(&format!("{DATA}{study}\n{MODEL}{model}\n")).unwrap();
    let priors = resolve_priors(&study, &study.models[0], &carriers()).unwrap();
    let sd = |spec: &PriorSpec| spec.prior.scale().unwrap();
    priors.iter().map(sd).collect()
}

#[test]
fn the_nearer_prior_wins() {
    assert_eq!(resolved("", ""), [2.5, 2.5, 2.5, 2.5, 1.0]);
    // One line for every parameter of which nothing is said.
    let default = "[prior]\ndefault = 'normal(0, 13)'\nintercept = 'normal(0, 3)'\n";
    assert_eq!(resolved(default, ""), [3.0, 13.0, 13.0, 13.0, 13.0]);
    let own = "[model.prior]\ndefault = 'normal(0, 14)'\nlog_sd = 'normal(0, 6)'\n";
    assert_eq!(resolved(default, own), [3.0, 14.0, 14.0, 14.0, 6.0]);
    let study_general = "[prior]\ncoefficients = 'normal(0, 2)'\nintercept = 'normal(0, 3)'\nlog_sd = 'normal(0, 4)'\nlog_dispersion = 'normal(0, 99)'\n";
    assert_eq!(resolved(study_general, ""), [3.0, 2.0, 2.0, 2.0, 4.0]);
    let model_general = "[model.prior]\ncoefficients = 'normal(0, 5)'\nlog_sd = 'normal(0, 6)'\n";
    assert_eq!(resolved(study_general, model_general), [3.0, 5.0, 5.0, 5.0, 6.0]);
    // A term, even if only the study speaks of it, is nearer than the model's general prior.
    let study_term = format!("{study_general}[prior.parameters]\ncarrier = 'normal(0, 7)'\n");
    assert_eq!(resolved(&study_term, model_general), [3.0, 5.0, 7.0, 7.0, 6.0]);
    let model_term = format!("{model_general}[model.prior.parameters]\ncarrier = 'normal(0, 8)'\n");
    assert_eq!(resolved(&study_term, &model_term), [3.0, 5.0, 8.0, 8.0, 6.0]);
    // And a name, even if only the study speaks of it, is nearer than the model's term.
    let study_name = format!("{study_term}carrierUA = 'normal(0, 9)'\n");
    assert_eq!(resolved(&study_name, &model_term), [3.0, 5.0, 8.0, 9.0, 6.0]);
    let model_name = format!(
        "{model_term}carrierUA = 'normal(0, 10)'\n'(intercept)' = 'normal(0, 11)'\nlog_sd = 'normal(0, 12)'\n"
    );
    assert_eq!(resolved(&study_name, &model_name), [11.0, 5.0, 8.0, 10.0, 12.0]);
}

#[test]
fn roles_have_their_own_general_priors() {
    let table =
        parse(&format!("{DATA}[prior]\nlog_dispersion = 'fixed(4)'\n{MODEL}")).unwrap().prior;
    assert_eq!(table.general(Role::LogDispersion), Some(Prior::Fixed { value: 4.0 }.into()));
    assert_eq!(table.general(Role::LogSd), None);
}

#[test]
fn names_that_match_nothing_are_errors() {
    let text = format!(
        "{DATA}[prior.parameters]\ncarrierAA = 'fixed(0)'\ndely = 'fixed(0)'\n{MODEL}\
         [model.prior.parameters]\ncarrier = 'fixed(0)'\ncarierUA = 'fixed(0)'\naaa = 'fixed(0)'\n"
    );
    let StudyFile { study, lines, .. } = file(&text).unwrap();
    let error = resolve_priors(&study, &study.models[0], &carriers()).unwrap_err();
    let error = lines.locate(error).to_string();
    // The one that looks like a slip, not the first by name.
    assert!(error.starts_with("folder/study.toml, line 11: `model.prior.parameters`"), "{error}");
    assert!(error.contains("`carierUA`, but model `y ~ x`"), "{error}");
    assert!(error.contains("did you mean `carrierUA`?"), "{error}");
    assert!(error.contains("`carrier`, "), "{error}");

    let parameters = [carriers(), vec![parameter("z", "z", Role::Coefficient)]];
    let error = unmatched_study_priors(&study, parameters.iter().flatten()).unwrap_err();
    let error = lines.locate(error).to_string();
    assert!(error.starts_with("folder/study.toml, line 5: `prior.parameters`"), "{error}");
    assert!(error.contains("`dely`") && error.contains("did you mean `delay`?"), "{error}");
    // It is enough that one model has the name.
    let more = [carriers(), vec![parameter("dely", "dely", Role::Coefficient)]];
    unmatched_study_priors(&study, more.iter().flatten()).unwrap();
}

#[test]
fn an_intercept_prior_needs_an_intercept_in_the_model_that_gives_it() {
    let without = &carriers()[1..];
    let own = file(&format!("{DATA}{MODEL}[model.prior]\nintercept = 'normal(0, 1)'\n")).unwrap();
    let error = resolve_priors(&own.study, &own.study.models[0], without).unwrap_err();
    let error = own.lines.locate(error).to_string();
    assert!(error.contains("line 3: `model.prior.intercept`"), "{error}");
    assert!(error.contains("has no intercept"), "{error}");
    let all = parse(&format!("{DATA}[prior]\nintercept = 'normal(0, 1)'\n{MODEL}")).unwrap();
    assert_eq!(resolve_priors(&all, &all.models[0], without).unwrap().len(), 4);
}
