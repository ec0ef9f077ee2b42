//! `[schema]`: read, written, refused.

use super::*;
use consilience::data::ColumnType;
use consilience::run::study_hash;

const SCHEMA: &str = r#"[schema]
y = { type = "number", mean = 0.1, sd = 1e-3, observations = 12 }
g = { levels = ["b", "a\n\"quoted\"", ""] }
"my.column" = { mean = -3, sd = 2.5000000000000004 }
"poly(x, 2)" = { range = [-1, 0.30000000000000004], coefficients = [[1, 2], [1e300, 5e-324, -0.0]] }
"factor(k > 2)" = { levels = ["FALSE", "TRUE"] }
"#;

fn with(schema: &str) -> String {
    format!("{DATA}{MODEL}{schema}")
}

#[test]
fn it_is_the_same_however_it_is_written() {
    let study = parse(&with(SCHEMA)).unwrap();
    let entry = |name: &str| &study.schema.0[name];
    assert_eq!(entry("y").kind, Some(ColumnType::Number));
    assert_eq!(entry("g").levels.as_ref().unwrap()[1], "a\n\"quoted\"");
    assert_eq!(entry("my.column").sd, Some(2.5000000000000004));
    // As tables, in another order.
    let tables = r#"
[schema.g]
levels = ["b", "a\n\"quoted\"", ""]
[schema."my.column"]
sd = 2.5000000000000004
mean = -3.0
[schema."factor(k > 2)"]
levels = [
  "FALSE",  # the reference
  "TRUE",
]
[schema."poly(x, 2)"]
coefficients = [[1.0, 2.0], [1e300, 5e-324, -0.0]]
range = [-1.0, 0.30000000000000004]
[schema.y]
type = "number"
mean = 0.1
sd = 0.001
observations = 12.0
"#;
    let json = serde_json::to_string(&study).unwrap();
    let again: Study = serde_json::from_str(&json).unwrap();
    for other in [
        parse(&with(tables)).unwrap(),
        parse(&study.to_toml()).unwrap(),
        parse(&with(&study.schema.to_toml())).unwrap(),
        again,
    ] {
        assert_eq!(other, study);
        assert_eq!(study_hash(&other), study_hash(&study));
        assert_eq!(serde_json::to_string(&other).unwrap(), json);
    }
}

#[test]
fn the_hash_is_of_it() {
    let hash = |schema: &str| study_hash(&parse(&with(schema)).unwrap());
    // A study without it has the hash that it had.
    assert_eq!(hash(""), hash("[schema]\n"));
    for (from, to) in [("0.1", "0.2"), ("\"b\", ", "\"c\", "), ("12", "13"), ("-0.0", "0.5")] {
        assert_ne!(hash(&SCHEMA.replace(from, to)), hash(SCHEMA), "{from} → {to}");
    }
    assert_ne!(hash(SCHEMA), hash(""));
}

#[test]
fn long_lists_are_written_in_lines() {
    let levels: Vec<String> = (0..500).map(|i| format!("\"level {i}\"")).collect();
    let text = format!("[schema]\ng = {{ levels = [{}] }}\n", levels.join(","));
    let schema = parse(&with(&text)).unwrap().schema;
    let written = schema.to_toml();
    assert!(written.lines().count() > 50 && written.lines().all(|line| line.len() < 110));
    assert_eq!(parse(&with(&written)).unwrap().schema, schema);
}

#[test]
fn what_cannot_be_is_refused_on_its_line() {
    // The data are on lines 1 and 2, the model on 3 to 5, [schema] on 6.
    for (entry, words) in [
        (
            "x = { levls = ['a', 'b'] }",
            &["[schema.x] has no `levls`; did you mean `levels`?", "`observations`"][..],
        ),
        ("x = { draws = 3 }", &["[schema.x] has no `draws`; it belongs under [evidence]"]),
        ("x = 3", &["`schema.x` must be a table such as { type = \"number\" }", "not an integer"]),
        ("x = 'number'", &["`schema.x` must be a table", "not a text"]),
        ("x = {}", &["`schema.x` must give type = \"number\", `levels`, or `mean` and `sd`"]),
        (
            "x = { type = 'numbr' }",
            &["`schema.x.type`: there is no `numbr`; did you mean `number`?"],
        ),
        ("x = { type = 'factor' }", &["`schema.x.type`: there is no `factor`"]),
        ("x = { levels = 'a' }", &["`schema.x.levels` must be a list of texts", "not a text"]),
        ("x = { levels = ['a', 2] }", &["`schema.x.levels[1]` must be a text, not an integer"]),
        (
            "x = { levels = ['a'] }",
            &["`schema.x.levels` must be 2 to 10000 texts, and there are 1"],
        ),
        ("x = { levels = ['a', 'b', 'a'] }", &["`schema.x.levels` has \"a\" a second time"]),
        (
            "x = { levels = ['a', 'b'], type = 'number' }",
            &["`schema.x` gives `levels`", "leave `type` out"],
        ),
        ("x = { levels = ['a', 'b', 'c'], mean = 0.5, sd = 1 }", &["more than two levels"]),
        (
            "x = { levels = ['a', 'b'], mean = 1.5, sd = 1 }",
            &["`schema.x.mean` is the share of the last level", "1.5"],
        ),
        ("x = { mean = 1 }", &["`schema.x` must give `mean` and `sd` together"]),
        ("x = { type = 'number', observations = 4 }", &["`observations` with both"]),
        ("x = { mean = 0, sd = nan }", &["`schema.x.sd` must be a finite number, not NaN"]),
        ("x = { mean = inf, sd = 1 }", &["`schema.x.mean` must be a finite number, not inf"]),
        ("x = { mean = 0, sd = -1 }", &["`schema.x.sd` must not be negative, but is -1"]),
        ("x = { mean = 0, sd = '1' }", &["`schema.x.sd` must be a number, not a text; write 1"]),
        (
            "x = { mean = 0, sd = 1, observations = 0 }",
            &["`schema.x.observations` must be positive"],
        ),
        ("x = { range = [0, 1], coefficients = [] }", &["which only poly() has"]),
        ("'log(x)' = { type = 'number' }", &["`schema.log(x).type` is for columns"]),
        (
            "'log(x)' = { levels = ['a', 'b'] }",
            &["only columns, factor(), ordered() and relevel() have"],
        ),
        ("'factor(x)' = { type = 'number' }", &["`schema.factor(x)` must give `levels`"]),
        ("'poly(x, 2)' = { mean = 0, sd = 1 }", &["must give `range` and `coefficients`"]),
        (
            "'poly(x, 2)' = { range = [1, 0], coefficients = [[1, 1], [1, 1, 1]] }",
            &["`schema.poly(x, 2).range` must be the least and the greatest value, not [1, 0]"],
        ),
        (
            "'poly(x, 2)' = { range = [0, 1], coefficients = [[1, 1], [1, 1]] }",
            &[
                "`schema.poly(x, 2).coefficients` must be 2 lists of finite numbers, of lengths 2 to 3",
            ],
        ),
        (
            "'poly(x, 2)' = { range = [0, 1], coefficients = [[1, nan], [1, 1, 1]] }",
            &["2 lists of finite numbers"],
        ),
        ("'poly(x, 2)' = { range = [0], coefficients = [] }", &["`schema.poly(x, 2).range`"]),
        (
            "'poly(x,2)' = { range = [0, 1], coefficients = [[1, 1], [1, 1, 1]] }",
            &["is spelled otherwise: write `poly(x, 2)`"],
        ),
        (
            "'my column' = { type = 'number' }",
            &["`schema.my column` is named after no part of a formula", "backticks"],
        ),
        ("'y ~ x' = { type = 'number' }", &["no part of a formula"]),
        ("'.' = { type = 'number' }", &["no part of a formula"]),
    ] {
        let error = parse(&with(&format!("[schema]\n{entry}\n"))).unwrap_err();
        assert!(error.is_input());
        let said = error.to_string();
        assert!(said.starts_with("folder/study.toml, line 7: "), "{entry}: {said}");
        for part in words {
            assert!(said.contains(part), "{entry}\n{said}\nlacks {part}");
        }
    }
}

#[test]
fn deep_and_endless_names_are_refused_in_good_time() {
    for name in
        ["(".repeat(5000) + "x" + &")".repeat(5000), "x".repeat(2 << 20), "-".repeat(100_000) + "x"]
    {
        let text = with(&format!("[schema]\n\"{name}\" = {{ mean = 0, sd = 1 }}\n"));
        if let Err(error) = parse(&text) {
            assert!(error.to_string().len() < 1000);
        }
    }
}
