//! Studies for tables of all kinds.

use consilience::data::table::{Column, MISSING};
use consilience::data::{Formula, Origin, Table};
use consilience::study::{Study, template};
use std::sync::Arc;

fn number(values: &[f64]) -> Column {
    Column::Number(values.to_vec())
}

/// Rows of `?` are missing.
fn text(values: &[&str]) -> Column {
    let mut levels: Vec<String> = Vec::new();
    let mut code = |value: &str| {
        if value == "?" {
            return MISSING;
        }
        let known = levels.iter().position(|level| level == value).unwrap_or_else(|| {
            levels.push(value.to_string());
            levels.len() - 1
        });
        known as u32
    };
    let codes = values.iter().map(|value| code(value)).collect();
    Column::Text { codes, levels: Arc::new(levels) }
}

fn table(columns: Vec<(&str, Column)>) -> Table {
    let rows = columns[0].1.len() as u32;
    let origin = Origin {
        files: Arc::new(vec![("d.csv".into(), true)]),
        rows: (0..rows).map(|row| (0, row + 2)).collect(),
    };
    Table::new(columns.into_iter().map(|(name, column)| (name.into(), column)).collect(), origin)
}

/// The study as text, and as it is read.
fn made(columns: Vec<(&str, Column)>, outcome: Option<&str>) -> (String, Study) {
    let text = template(&table(columns), "d.csv", outcome).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let study = Study::from_toml(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    for model in &study.models {
        Formula::parse(&model.formula).unwrap_or_else(|e| panic!("{e}\n{text}"));
    }
    (text, study)
}

/// The first model's formula and family.
fn first(columns: Vec<(&str, Column)>, outcome: Option<&str>) -> String {
    let (_, study) = made(columns, outcome);
    format!("{}, {}", study.models[0].formula, study.models[0].family)
}

const X: [f64; 4] = [0.5, 1.5, 0.5, 2.0];

#[test]
fn the_outcome_decides_on_the_family() {
    for (y, expected) in [
        (number(&[0.0, 1.0, 1.0, 0.0]), "y ~ scale(x), logistic"),
        (number(&[2.0, 1.0, 1.0, 2.0]), "I(y == 2) ~ scale(x), logistic"),
        (number(&[-1.5, -2.0, -2.0, -2.0]), "I(y == -1.5) ~ scale(x), logistic"),
        (text(&["no", "yes", "no", "no"]), "y ~ scale(x), logistic"),
        (text(&["1", "0", "0", "1"]), "y ~ scale(x), logistic"),
        (text(&["1", "none", "1", "1"]), "factor(y) ~ scale(x), logistic"),
        (Column::Logical(vec![0, 1, 1, MISSING]), "y ~ scale(x), logistic"),
        (number(&[0.0, 3.0, 1.0, 0.0]), "y ~ scale(x), poisson"),
        (number(&[0.0, 101.0, 1.0, 0.0]), "y ~ scale(x), gaussian"),
        (number(&[1.0, 3.0, 2.0, 1.0]), "y ~ scale(x), gaussian"),
        (number(&[-0.5, 1.0, 0.2, 1.2]), "y ~ scale(x), gaussian"),
        (number(&[1e6, 2e6, 3.5e6, 1e6]), "y ~ scale(x), gaussian"),
    ] {
        assert_eq!(first(vec![("x", number(&X)), ("y", y)], None), expected);
    }
}

#[test]
fn outcomes_are_guessed_and_the_study_says_so() {
    let two = || number(&[1.0, 1.0, 5.0, 5.0]);
    let guessed = |columns| {
        let (text, study) = made(columns, None);
        assert!(text.contains("was GUESSED"), "{text}");
        study.models.last().unwrap().formula.clone()
    };
    assert_eq!(guessed(vec![("Target", two()), ("z", two())]), "I(Target == 5) ~ 1");
    assert_eq!(guessed(vec![("label", two()), ("Y", two())]), "I(Y == 5) ~ 1");
    assert_eq!(guessed(vec![("a", two()), ("b", two()), ("x", number(&X))]), "I(b == 5) ~ 1");
    assert_eq!(guessed(vec![("t", text(&["p", "q", "p", "r"])), ("x", number(&X))]), "x ~ 1");
    // An id is taken only where there is nothing else.
    let id = || number(&[7.0, 8.0, 9.0, 6.0]);
    assert_eq!(guessed(vec![("x", number(&X)), ("id", id())]), "x ~ 1");
    let (text, _) = made(vec![("x", number(&X)), ("z", two())], Some("x"));
    assert!(text.contains("# The outcome is `x`.") && !text.contains("GUESSED"), "{text}");
}

#[test]
fn columns_are_left_out_with_a_reason() {
    let n = 40;
    let many: Vec<String> = (0..n).map(|i| format!("w{}", i % 35)).collect();
    let ids: Vec<String> = (0..n).map(|i| format!("p{i}")).collect();
    let words = |all: &[String]| text(&all.iter().map(String::as_str).collect::<Vec<_>>());
    let numbers = |f: &dyn Fn(usize) -> f64| Column::Number((0..n).map(f).collect());
    let mixed: Vec<String> = (0..n).map(|i| ["1", "2", "3", "x"][i % 4].to_string()).collect();
    let mostly: Vec<String> =
        (0..n).map(|i| if i == 7 { "none".into() } else { format!("{}", i % 36) }).collect();
    let (text, study) = made(
        vec![
            ("y", numbers(&|i| (i % 2) as f64)),
            ("a column", numbers(&|i| (i % 7) as f64)),
            ("if", numbers(&|i| (i % 3 == 0) as u8 as f64)),
            ("back\\slash", numbers(&|i| (i % 5) as f64)),
            ("the \"q\"", numbers(&|i| (i % 5) as f64 / 2.0)),
            ("mixed", words(&mixed)),
            ("mostly", words(&mostly)),
            ("same", numbers(&|_| 3.0)),
            ("empty", numbers(&|_| f64::NAN)),
            ("many", words(&many)),
            ("patient", words(&ids)),
            ("row", numbers(&|i| 1000.0 - i as f64)),
            ("tick`", numbers(&|i| (i % 5) as f64)),
            ("new\nline", numbers(&|i| (i % 5) as f64)),
            ("huge", numbers(&|i| 1e200 * (i % 5) as f64)),
            ("ok", Column::Logical((0..n as u32).map(|i| i % 2).collect())),
        ],
        None,
    );
    assert_eq!(
        study.models[0].formula.split_whitespace().collect::<Vec<_>>().join(" "),
        "y ~ scale(`a column`) + `if` + scale(`back\\\\slash`) + scale(`the \"q\"`) + factor(mixed) + ok"
    );
    for reason in [
        "#   `mostly`: it has words among its numbers, such as \"none\"; mend them.",
        "#   `same`: it is the same in all rows.",
        "#   `empty`: it has no values.",
        "#   `many`: it is text with 35 different values; group them.",
        "#   `patient`: it looks like an id: no value comes twice.",
        "#   `row`: it looks like an id: no value comes twice.",
        "#   `tick``: its name has a backtick or a control character in it; rename it.",
        "#   `new\\nline`: its name has a backtick",
        "#   `huge`: its numbers are too large",
    ] {
        assert!(text.contains(reason), "{reason} is not in:\n{text}");
    }
}

#[test]
fn what_may_be_missing_or_misread_is_said() {
    let x: Vec<f64> = (0..40).map(|i| if i % 10 == 0 { -99.0 } else { f64::from(i % 7) }).collect();
    let y: Vec<f64> = (0..40).map(|i| f64::from(i % 2)).collect();
    let (text, study) = made(vec![("x", number(&x)), ("y", number(&y))], Some("y"));
    let parts = ["CHECK: `x` is -99 in 4 rows", "\n# na = [\"-99\"]\n"];
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    assert!(study.data.na.is_empty());
    // A study of them as a factor would be refused, or be none of sense.
    let w: Vec<String> = (0..40).map(|i| format!("{}kg", i % 22)).collect();
    let w: Vec<&str> = w.iter().map(String::as_str).collect();
    let (text, _) = made(vec![("w", self::text(&w)), ("y", number(&y))], Some("y"));
    assert!(text.contains("`w`: it is text that seems to be numbers with a unit"), "{text}");
    let w: Vec<String> = (0..40).map(|i| format!("n{}", i % 22)).collect();
    let w: Vec<&str> = w.iter().map(String::as_str).collect();
    let (text, _) = made(vec![("w", self::text(&w)), ("y", number(&y))], Some("y"));
    assert!(text.contains("`w`: it is text with 22 different values"), "{text}");
}

#[test]
fn missing_values_leave_rows_enough() {
    let nan = f64::NAN;
    let twice = |values: [f64; 8]| number(&values.repeat(2));
    let (text, study) = made(
        vec![
            ("y", twice([0.0, 1.0, 0.0, 1.0, 0.0, 1.0, nan, 1.0])),
            // Constant where the others are complete.
            ("c", twice([1.5, 1.5, 1.5, 1.5, 1.5, 7.5, 7.5, 1.5])),
            ("x", twice([1.5, 1.2, 1.5, 2.0, 0.1, nan, 0.5, 3.5])),
            ("few", twice([1.5, 1.2, nan, nan, nan, 1.5, nan, nan])),
            // With this one no success would be left.
            ("late", twice([1.5, nan, 2.5, nan, 1.5, nan, 1.5, nan])),
        ],
        None,
    );
    assert_eq!(study.models[0].formula, "y ~ scale(x)");
    assert!(text.contains("`c`: it is the same in all rows (of those that are complete)."));
    assert!(text.contains("`few`: it is missing in 8 rows."), "{text}");
    assert!(text.contains("`late`: it is missing in 8 rows."), "{text}");
    assert!(text.contains("Here that is 4 of 16."), "{text}");
}

#[test]
fn shards_follow_the_rows_and_models_stay_small() {
    let y = |n: usize| Column::Number((0..n).map(|i| (i % 2) as f64).collect());
    let shards = |n| made(vec![("y", y(n))], None).1.split.shards.unwrap();
    assert_eq!([3, 3999, 4000, 200_000].map(shards), [1, 1, 2, 50]);
    let (text, study) = made(vec![("y", y(4))], None);
    assert_eq!(study.models.len(), 1);
    assert!(text.contains("there is one model only"), "{text}");

    let names: Vec<String> = (0..60).map(|i| format!("a rather long name {i}")).collect();
    let with_rows = |times: usize| {
        let mut columns = vec![("y", y(4 * times))];
        columns.extend(names.iter().map(|name| (name.as_str(), number(&X.repeat(times)))));
        made(columns, None)
    };
    let terms = |study: &Study| study.models[0].formula.matches("scale(").count();
    assert_eq!([1, 5, 20].map(|times| terms(&with_rows(times).1)), [3, 6, 26]);
    let (text, study) = with_rows(50);
    assert_eq!(terms(&study), 50);
    let reason =
        "`a rather long name 50`: with it there are more than 50 coefficients, many for 200";
    assert!(text.contains(reason), "{text}");
}

#[test]
fn what_cannot_be_an_outcome_is_refused() {
    let wrong = |columns, outcome: Option<&str>, parts: &[&str]| {
        let error = template(&table(columns), "d.csv", outcome).unwrap_err();
        assert!(error.is_input());
        for part in parts {
            assert!(error.to_string().contains(part), "{part} is not in: {error}");
        }
    };
    let three = || text(&["b", "c", "a", "a"]);
    wrong(
        vec![("class", three())],
        None,
        &[
            "`class` cannot",
            "3 different values (\"a\", \"b\", \"c\")",
            "I(class == \"a\")",
            "--outcome",
        ],
    );
    wrong(vec![("t", three())], None, &["no column can be the outcome", "--outcome"]);
    wrong(vec![("x", number(&X))], Some("z"), &["there is no column `z`", "`x`"]);
    wrong(vec![("y", number(&[3.0; 3]))], None, &["`y`", "the same in all rows"]);
    wrong(vec![("y", number(&[f64::NAN; 3]))], None, &["`y`", "no values"]);
    wrong(vec![("`", number(&X))], Some("`"), &["rename it"]);
    wrong(vec![("y", number(&[1e200, 2.0, 0.0]))], None, &["other units"]);
}

#[test]
fn paths_are_escaped() {
    let table = table(vec![("y", number(&[0.0, 1.0]))]);
    for path in ["a \"b\"\\c\\u.csv", "tab\there\u{7f}", "größe [1]*.csv", "''"] {
        let text = template(&table, path, None).unwrap();
        assert_eq!(Study::from_toml(&text).unwrap().data.path, [path]);
    }
}
