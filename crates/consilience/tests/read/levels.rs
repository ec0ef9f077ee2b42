//! Levels that are spelled in two ways are one level, wherever they stand.

use super::*;
use arrow_array::{ArrayRef, StringArray};
use consilience::engine::Silent;
use consilience::plan::Plan;
use consilience::study::StudyFile;
use std::sync::Arc;

const COMPOSED: &str = "caf\u{e9}";
const APART: &str = "cafe\u{301}";

#[test]
fn both_spellings_are_one_level_in_every_file() {
    let dir = Dir::new();
    let text = format!("g\n{APART}\nb\n{COMPOSED}\n\"{APART}\"\n");
    let csv = dir.write("a.csv", &text);
    let packed = dir.write("b.csv.gz", gzip(&text));
    let table = read(&[csv.clone(), packed]).unwrap().table;
    let Column::Text { codes, levels } = table.column("g").unwrap() else { panic!("no text") };
    assert_eq!(**levels, [COMPOSED.to_string(), "b".into()]);
    assert_eq!(codes, &[0, 1, 0, 0, 0, 1, 0, 0]);
    // In a Parquet file that somebody else wrote.
    let array: ArrayRef = Arc::new(StringArray::from(vec![COMPOSED, APART, "b"]));
    let path = parquet::write(&dir, "c.parquet", vec![("g", array)]);
    let table = read(&[path, csv]).unwrap().table;
    let Column::Text { codes, levels } = table.column("g").unwrap() else { panic!("no text") };
    assert_eq!(**levels, [COMPOSED.to_string(), "b".into()]);
    assert_eq!(codes, &[0, 0, 1, 0, 1, 0, 0]);
}

/// Priors, codebooks and formulas name levels too.
#[test]
fn what_is_said_of_a_level_holds_for_both_spellings() {
    let dir = Dir::new();
    let row =
        |i: usize| format!("{},{}\n", i * 7 % 5 % 2, ["a", COMPOSED, "b", APART, "b", "a"][i % 6]);
    dir.write("d.csv", "y,g\n".to_string() + &(0..60).map(row).collect::<String>());
    let plan = |formula: &str, more: &str| {
        let text = format!(
            "[data]\npath = \"d.csv\"\n[split]\nshards = 3\n[[model]]\nformula = '{formula}'\nfamily = \"logistic\"\n{more}\n"
        );
        Plan::new(StudyFile::parse(&text, &dir.path("s.toml"))?, 1, &Silent)
    };
    let named = |plan: Plan| -> Vec<(String, String)> {
        let parameters = &plan.settings[0].model.parameters;
        parameters.iter().map(|p| (p.name.clone(), p.prior.to_string())).collect()
    };
    let plain = named(plan("y ~ g", "").unwrap());
    assert_eq!(plain.len(), 3, "{plain:?}");
    for spelling in [COMPOSED, APART] {
        let prior = format!("[prior.parameters]\n\"g{spelling}\" = \"normal(0, 0.25)\"");
        let found = named(plan("y ~ g", &prior).unwrap());
        assert_eq!(found[2], (format!("g{COMPOSED}"), "normal(0, 0.25)".into()), "{found:?}");
        let schema = format!("[schema]\ng = {{ levels = [\"a\", \"b\", \"{spelling}\"] }}");
        assert_eq!(named(plan("y ~ g", &schema).unwrap()), plain);
        // As many rows are equal to it whichever way it is spelled.
        let quoted = named(plan(&format!("y ~ factor(g == \"{spelling}\")"), "").unwrap());
        assert_eq!(quoted.len(), 2);
        let other = named(plan(&format!("y ~ factor(g == \"{COMPOSED}\")"), "").unwrap());
        assert_eq!(quoted[1].1, other[1].1);
    }
    let twice = format!("[schema]\ng = {{ levels = [\"a\", \"{APART}\", \"{COMPOSED}\"] }}");
    let error = plan("y ~ g", &twice).map(drop).unwrap_err().to_string();
    assert!(error.contains("a second time"), "{error}");
}
