//! A study's hash is of what it says, not of how that is written.

use super::*;
use consilience::run::study_hash;

fn hash(text: &str) -> String {
    study_hash(&parse(text).unwrap_or_else(|error| panic!("{error}\n{text}")))
}

const STUDY: &str = r#"
[data]
path = "d.csv"
weights = "n"
[split]
shards = 4
seed = 3
[prior]
intercept = "normal(0, 5)"
[prior.parameters]
x = "normal(0, 2)"
z = "laplace(0, 1)"
[[model]]
name = "both"
formula = "y ~ x + z"
family = "gaussian"
[model.prior.parameters]
x = "normal(0, 3)"
z = "cauchy(0, 1)"
[[model]]
formula = "y ~ x"
family = "gaussian"
"#;

#[test]
fn comments_order_and_blanks_do_not_matter() {
    let comment_everywhere = STUDY.replace('\n', "  # why\n");
    let comments_above = STUDY.replace("\n[", "\n# A word on this.\n\n[");
    let blank_lines = STUDY.replace('\n', "\n\n");
    let spacing = STUDY.replace(" = ", "=").replace("normal(0, 5)", "normal( 0,5 )");
    let windows = STUDY.replace('\n', "\r\n");
    let reordered = r#"
[[model]]
family = "gaussian"
formula = "y ~ x + z"
name = "both"
prior.parameters = { z = "student_t(1, 0, 1)", x = "normal(0, 3)" }
[[model]]
family = "gaussian"
formula = "y ~ x"
[prior.parameters]
z = "laplace(0, 1)"
x = "normal(0, 2)"
[split]
seed = 3
shards = 4
by = "random"
[prior]
intercept = "normal(0, 5)"
[data]
weights = "n"
path = ["d.csv"]
"#;
    let written = parse(STUDY).unwrap().to_toml();
    for text in [
        &comment_everywhere,
        &comments_above,
        &blank_lines,
        &spacing,
        &windows,
        &reordered.to_string(),
        &written,
    ] {
        assert_eq!(hash(text), hash(STUDY), "{text}");
    }
    // Nor does the file's name or place.
    let elsewhere = StudyFile::parse(STUDY, "/other/place.toml".as_ref()).unwrap();
    assert_eq!(study_hash(&elsewhere.study), hash(STUDY));
}

#[test]
fn every_word_does() {
    let changes = [
        ("d.csv", "e.csv"),
        ("\"n\"", "\"m\""),
        ("shards = 4", "shards = 5"),
        ("seed = 3", "seed = 4"),
        ("normal(0, 5)", "normal(0, 6)"),
        ("normal(0, 2)", "normal(0, 2) per sd"),
        ("name = \"both\"", "name = \"two\""),
        ("y ~ x + z", "y ~ z + x"),
        ("cauchy(0, 1)", "cauchy(0, 2)"),
    ];
    for (from, to) in changes {
        assert_ne!(hash(&STUDY.replace(from, to)), hash(STUDY), "{from} → {to}");
    }
    // The order of the models is that of the results.
    let (head, models) = STUDY.split_once("[[model]]").unwrap();
    let (first, second) = models.split_once("[[model]]").unwrap();
    let swapped = format!("{head}[[model]]{second}[[model]]{first}");
    assert_ne!(hash(&swapped), hash(STUDY));
}
