//! Studies that state their schema: the same bits, no round about columns, and rows that are checked.

use crate::common::{Case, root, run_study};
use crate::sites::{Mail, entries};
use crate::{Worker, study};
use consilience::compare::Comparison;
use consilience::data::Codebook;
use consilience::engine::Silent;
use consilience::plan::{Plan, Room};
use consilience::run::{Run, Stop};
use consilience::study::{Lines, StudyFile};
use std::path::Path;

fn codebook(study: &StudyFile) -> Codebook {
    Plan::codebook(study.clone(), 2, &Room::default(), &Silent).unwrap()
}

/// The study with this behind it, read from text.
fn with(plain: &StudyFile, schema: &str) -> StudyFile {
    let text = format!("{}\n{schema}", plain.study.to_toml());
    let stated = StudyFile::parse(&text, &plain.folder.join("stated.toml")).unwrap();
    // Defaults are written out there, which is noted of keys that do nothing.
    StudyFile { lines: Lines::default(), ..stated }
}

fn with_its_own(plain: &StudyFile) -> StudyFile {
    let book = codebook(plain);
    let stated = with(plain, &book.to_toml());
    assert_eq!(stated.study.schema, book, "{}", book.to_toml());
    stated
}

/// Runs a study with and without its codebook, on threads and in a run directory. So many rounds are spared.
fn spares(plain: StudyFile, rounds: u64) {
    let stated = with_its_own(&plain);
    let (without, with) = (run_study(plain.clone(), 2), run_study(stated.clone(), 1));
    assert_eq!(with.traffic.rounds + rounds, without.traffic.rounds);
    let Comparison { traffic, rounds, bytes_moved, .. } = without;
    assert_eq!(Comparison { traffic, rounds, bytes_moved, ..with.clone() }, without);
    let text = |c: &Comparison| serde_json::to_string(&c.models).unwrap();
    assert_eq!(text(&with), text(&without));

    let folder = tempfile::tempdir().unwrap();
    let run = Run::split(stated.clone(), &folder.path().join("stated")).unwrap();
    assert_eq!(run.coordinate(&Worker, &Silent).unwrap(), with);
    let asks = run.status().unwrap().rounds.into_iter().flat_map(|round| round.asks);
    assert!(asks.into_iter().all(|kind| kind != "describe"));
    let refused = run.codebook(&Stop, &Silent).unwrap_err().to_string();
    assert!(refused.contains("has a [schema] of its own"), "{refused}");

    // Written anew it is the same: from the data, and from the answers of a run.
    assert_eq!(codebook(&stated), stated.study.schema);
    let run = Run::split(plain, &folder.path().join("plain")).unwrap();
    assert!(run.codebook(&Stop, &Silent).is_err());
    run.coordinate(&Worker, &Silent).unwrap();
    assert_eq!(run.codebook(&Stop, &Silent).unwrap(), stated.study.schema);
}

#[test]
fn flights_spare_a_round() {
    spares(StudyFile::read(root().join("examples/flights.toml")).unwrap(), 1);
}

#[test]
fn classes_scales_polynomials_and_interactions_spare_two() {
    let mut case = Case::new("pima_tr.csv", 5);
    case.default = String::new();
    case.model("factor(type) ~ scale(glu) + poly(bmi, 2)", "logistic");
    case.model(
        "factor(type) ~ factor(npreg > 3) * scale(log(age)) + scale(exp(scale(ped)))",
        "probit",
    );
    spares(study(&case.text()), 2);
}

#[test]
fn gaussian_outcomes_that_are_scaled_spare_two() {
    let mut case = Case::new("gauss.parquet", 7);
    case.default = String::new();
    case.model("scale(y) ~ poly(x1, 3) + scale(x2):x3", "gaussian");
    case.model("scale(y) ~ x2 + I(x3 > 0)", "gaussian");
    spares(study(&case.text()), 2);
}

/// Counts with weights, true and false, words and a name that needs backticks.
fn rows(count: usize) -> String {
    let mut text = String::from("y,w,flag,g,my col,t\n");
    for i in 0..count {
        let (y, w) = ((i * 7) % 5, 1 + i % 3);
        let (flag, g) = (i % 4 < 2, ["a", "b", "c"][(i * i + i / 7) % 3]);
        let (x, t) = ((i * 37 % 101) as f64 / 17.0, 0.5 + (i * 13 % 29) as f64);
        text += &format!("{y},{w},{flag},{g},{x},{t}\n");
    }
    text
}

fn counts(folder: &Path) -> StudyFile {
    let path = folder.join("counts.csv");
    std::fs::write(&path, rows(120)).unwrap();
    study(&format!(
        "[data]\npath = {path:?}\nweights = \"w\"\n[split]\nshards = 3\n[[model]]\nname = \"counts\"\nformula = \"y ~ flag + g + `my col` + offset(scale(t))\"\nfamily = \"poisson\"\n"
    ))
}

#[test]
fn counts_with_weights_and_odd_names_spare_a_round() {
    let folder = tempfile::tempdir().unwrap();
    let study = counts(folder.path());
    let book = codebook(&study).to_toml();
    for line in
        ["flag = { levels = [\"FALSE\", \"TRUE\"] }", "\"`my col`\" = { type = \"number\" }"]
    {
        assert!(book.contains(line), "{book}");
    }
    spares(study, 1);
}

#[test]
fn rows_that_are_not_as_stated_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let plain = counts(folder.path());
    let book = codebook(&plain).to_toml();
    for (from, to, place, words) in [
        (
            "levels = [\"a\", \"b\", \"c\"]",
            "levels = [\"a\", \"b\"]",
            "column `g`",
            "the level \"c\" is unknown; the study's are \"a\", \"b\"",
        ),
        (
            "g = { levels = [\"a\", \"b\", \"c\"] }",
            "g = { type = \"number\" }",
            "column `g`",
            "a number is needed here, but the value is \"",
        ),
        (
            "\"`my col`\" = { type = \"number\" }",
            "\"`my col`\" = { levels = [\"0\", \"1\"] }",
            "column `my col`",
            "is unknown; the study's are \"0\", \"1\"",
        ),
    ] {
        assert!(book.contains(from), "{book}");
        let wrong = with(&plain, &book.replace(from, to));
        let on_threads = Plan::new(wrong.clone(), 2, &Silent).unwrap_err().to_string();
        let run = Run::split(wrong, &folder.path().join(words.len().to_string()));
        let in_files = run.unwrap().coordinate(&Worker, &Silent).unwrap_err().to_string();
        for error in [on_threads, in_files] {
            for part in [
                "counts.csv, line ",
                &place.replace("my col", "`my col`"),
                words,
                "write it anew with `consilience schema`",
            ] {
                assert!(
                    error.contains(part) || error.contains(&part.replace("``", "`")),
                    "{error}\nlacks {part}"
                );
            }
        }
    }
    // A column that is not there is missed before any row is looked at.
    let stated = with(&plain, &book);
    std::fs::write(folder.path().join("counts.csv"), "y,w,flag,g,t\n1,1,true,a,2\n").unwrap();
    let error = Plan::new(stated, 2, &Silent).unwrap_err().to_string();
    assert!(error.contains("there is no column `my col`"), "{error}");
}

#[test]
fn the_codebook_defines_levels_and_scales() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counts.csv");
    std::fs::write(&path, rows(120)).unwrap();
    let of = |formula: &str, schema: &str| {
        let text = format!(
            "[data]\npath = {path:?}\n[split]\nshards = 3\n[prior]\ndefault = \"normal(0, 1)\"\n[[model]]\nname = \"m\"\nformula = \"{formula}\"\nfamily = \"gaussian\"\n{schema}"
        );
        run_study(study(&text), 2)
    };
    let y = "y = { type = \"number\", mean = 2, sd = 1.4, observations = 120 }\n";
    // Another centre and scale than the data's are no error.
    let scaled = of("y ~ scale(t)", &format!("[schema]\n{y}t = {{ mean = 3, sd = 2 }}"));
    let written = of("y ~ I((t - 3)/2)", &format!("[schema]\n{y}"));
    assert_eq!(scaled.models[0].log_evidence, written.models[0].log_evidence);
    // Statistics ride on the survey, and there is nothing else to ask.
    assert_eq!((scaled.traffic.rounds, written.warnings.len()), (1, 0));
    // But where they are far off, that is said.
    assert_eq!(codes(&scaled), ["schema-far-off"]);
    // The first level is the reference, and one that no row has changes nothing.
    let names = |c: &Comparison| -> Vec<String> {
        c.models[0].parameters.iter().map(|p| p.name.clone()).collect()
    };
    let turned = of("y ~ g", &format!("[schema]\n{y}g = {{ levels = [\"c\", \"a\", \"b\"] }}"));
    assert_eq!(names(&turned)[1..3], ["ga", "gb"]);
    let more =
        of("y ~ g", &format!("[schema]\n{y}g = {{ levels = [\"c\", \"a\", \"b\", \"z\"] }}"));
    assert_eq!(names(&more)[1..4], ["ga", "gb", "gz"]);
    let apart = more.models[0].log_evidence.value - turned.models[0].log_evidence.value;
    assert!(apart.abs() < 1e-9, "{apart:e}");
}

fn codes(found: &Comparison) -> Vec<&str> {
    found.warnings.iter().map(|w| w.code.as_str()).collect()
}

/// What is stated is believed, and compared with what shards say in any case.
#[test]
fn what_is_far_from_the_data_is_said() {
    let of = |formula: &str, family: &str, prior: &str, schema: &str| {
        let mut case = Case::new("pima_tr.csv", 4);
        case.default = prior.into();
        case.model(formula, family);
        let study = study(&format!("{}\n[schema]\n{schema}", case.text()));
        Plan::new(study, 2, &Silent).and_then(|plan| plan.run(&Silent))
    };
    let outcome = |n: u32| {
        format!(
            "type = {{ levels = [\"No\", \"Yes\"], mean = 0.34, sd = 0.475, observations = {n} }}\n"
        )
    };
    let near = format!("{}glu = {{ mean = 120, sd = 40 }}", outcome(200));
    assert!(codes(&of("type ~ scale(glu)", "logistic", "", &near).unwrap()).is_empty());
    for (glu, said) in [
        ("mean = 0, sd = 1", "of `glu` the mean 0 and the sd 1 (the data have 124 and 31.67)"),
        (
            "mean = 100, sd = 31",
            "of `glu` the mean 100 and the sd 31 (the data have 124 and 31.67)",
        ),
        (
            "mean = 124, sd = 65",
            "of `glu` the mean 124 and the sd 65 (the data have 124 and 31.67)",
        ),
    ] {
        let schema = format!("{}glu = {{ {glu} }}", outcome(20));
        for formula in ["type ~ scale(glu)", "type ~ glu + scale(glu):bp"] {
            let found = of(formula, "logistic", "", &schema).unwrap();
            let told: Vec<&str> =
                codes(&found).into_iter().filter(|c| *c != "schema-incomplete").collect();
            assert_eq!(told, ["schema-far-off", "schema-observations"], "{formula}: {glu}");
            let messages: Vec<&str> = found.warnings.iter().map(|w| w.message.as_str()).collect();
            for part in [said, "20 observations of `type` (the data have 200)"] {
                assert!(messages.iter().any(|m| m.contains(part)), "{messages:?} lack {part}");
            }
        }
    }
    // Of a Gaussian model the outcome too, by its statistics.
    let bmi = |mean: f64| {
        format!("bmi = {{ type = \"number\", mean = {mean}, sd = 6, observations = 200 }}\n")
    };
    let glu = "glu = { mean = 124, sd = 32 }";
    let gaussian = |mean| of("bmi ~ scale(glu)", "gaussian", "", &(bmi(mean) + glu)).unwrap();
    assert!(codes(&gaussian(32.0)).is_empty());
    assert_eq!(codes(&gaussian(5.0)), ["schema-far-off"]);
    // What comes of such a scale names its reason.
    let own = "default = \"normal(0, 1)\"";
    for (formula, family, prior, sd) in [
        ("type ~ scale(glu)", "logistic", "", "1e160"),
        ("type ~ scale(glu)", "logistic", own, "1e-160"),
        ("npreg ~ scale(glu)", "cumulative-logit", own, "1e-100"),
    ] {
        let schema = format!("glu = {{ mean = 0, sd = {sd} }}");
        let error = of(formula, family, prior, &schema).unwrap_err().to_string();
        assert!(error.contains("the study's [schema]"), "{family}: {error}");
        assert!(error.contains("write it anew with `consilience schema`"), "{family}: {error}");
    }
}

#[test]
fn what_is_not_stated_is_asked_and_said() {
    let folder = tempfile::tempdir().unwrap();
    let plain = counts(folder.path());
    let book = codebook(&plain);
    let without = run_study(plain.clone(), 2);
    for left_out in ["y", "g", "t"] {
        let mut part = book.clone();
        part.0.remove(left_out).unwrap();
        let run = run_study(with(&plain, &part.to_toml()), 2);
        let [note] = &run.warnings[..] else { panic!("one note: {:?}", run.warnings) };
        assert_eq!(note.code, "schema-incomplete");
        assert!(note.message.contains(&format!("about `{left_out}`;")), "{}", note.message);
        assert_eq!(run.traffic.rounds, without.traffic.rounds);
        assert_eq!(run.models, without.models);
    }
    // A slip is a name that no formula needs, and one that is missing.
    let slip = book.to_toml().replace("\nflag =", "\nflagg =");
    let run = run_study(with(&plain, &slip), 2);
    let codes: Vec<&str> = run.warnings.iter().map(|w| w.code.as_str()).collect();
    assert_eq!(codes, ["schema-unused", "schema-incomplete"]);
    assert!(
        run.warnings[0].message.contains("`flagg`, which no formula needs; did you mean `flag`?")
    );
}

#[test]
fn sites_are_not_asked_about_columns() {
    let folder = tempfile::tempdir().unwrap();
    let tail = "[[model]]\nformula = \"y ~ flag + g + scale(t)\"\nfamily = \"poisson\"\n";
    let data = |s: usize| folder.path().join(format!("site-{s}.csv"));
    let all = rows(300);
    let (head, body) = all.split_once('\n').unwrap();
    let lines: Vec<&str> = body.lines().collect();
    for s in 0..3 {
        std::fs::write(data(s), format!("{head}\n{}\n", lines[s * 100..][..100].join("\n")))
            .unwrap();
    }
    let here = format!(
        "[data]\npath = {:?}\n[split]\nby = \"file\"\n{tail}",
        folder.path().join("site-*.csv")
    );
    let plain = study(&here);
    let book = codebook(&plain).to_toml();
    let apart = study(&format!("[data]\npath = \"data.csv\"\n{tail}{book}"));
    let run = Run::for_sites(apart, &entries(3), &folder.path().join("run"), [1; 32]).unwrap();
    let mail = Mail { folder: folder.path(), data: &data };
    let mailed = run.coordinate(&mail, &Silent).unwrap();
    let threads = run_study(plain, 2);
    assert_eq!(mailed.models, threads.models);
    assert_eq!(mailed.traffic.rounds + 1, threads.traffic.rounds);
    assert_eq!(run.status().unwrap().rounds[0].asks, ["survey", "locate"]);

    // A level of one site alone is said there, and the site answers nothing.
    let other =
        study(&format!("[data]\npath = \"data.csv\"\n{tail}{}", book.replace(", \"c\"]", "]")));
    let run = Run::for_sites(other, &entries(3), &folder.path().join("other"), [1; 32]).unwrap();
    let error = run.coordinate(&mail, &Silent).unwrap_err().to_string();
    for part in ["site-0.csv, line ", "the level \"c\" is unknown", "write it anew"] {
        assert!(error.contains(part), "{error}");
    }
}
