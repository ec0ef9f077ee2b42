//! Agreement and designs: weights, shards that differ, and everything that can be wrong.

use consilience::Result;
use consilience::data::{
    Column, Fact, Formula, MAX_LEVELS, Moments, Origin, Recipe, Request, ResponseKind, Table,
    agree, describe,
};
use std::slice::from_ref;
use std::sync::Arc;

/// A table whose rows stand in `data.csv` from line 2 on.
pub fn table(columns: Vec<(&str, Column)>) -> Table {
    let rows = columns.first().map_or(0, |(_, c)| c.len());
    let origin = Origin {
        files: Arc::new(vec![("data.csv".into(), true)]),
        rows: (0..rows as u32).map(|row| (0, row + 2)).collect(),
    };
    Table::new(columns.into_iter().map(|(n, c)| (n.to_string(), c)).collect(), origin)
}

pub fn number(values: &[f64]) -> Column {
    Column::Number(values.to_vec())
}

pub fn text(values: &[&str]) -> Column {
    let mut levels: Vec<String> = values.iter().map(|v| v.to_string()).collect();
    levels.sort();
    levels.dedup();
    levels.reverse();
    let code = |v: &&str| levels.iter().position(|l| l == v).unwrap() as u32;
    Column::Text { codes: values.iter().map(code).collect(), levels: Arc::new(levels.clone()) }
}

pub fn truth(values: &[bool]) -> Column {
    Column::Logical(values.iter().map(|&v| u32::from(v)).collect())
}

/// The recipe of a formula over these shards.
pub fn recipe(formula: &str, weights: Option<&str>, shards: &[Table]) -> Result<Recipe> {
    let exclude: Vec<String> = weights.map(String::from).into_iter().collect();
    let terms = Formula::parse(formula)?.terms(shards[0].names(), &exclude)?;
    let mut ask = |requests: &[Request]| {
        shards.iter().map(|s| describe(&s.clone().into(), weights, requests)).collect()
    };
    Ok(agree(&[terms], weights, &mut ask)?.remove(0))
}

pub fn error(formula: &str, weights: Option<&str>, shards: &[Table]) -> String {
    let made = recipe(formula, weights, shards)
        .and_then(|r| shards.iter().map(|s| r.design(s)).collect::<Result<Vec<_>>>());
    made.expect_err(formula).to_string()
}

pub fn close(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    assert!(a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-13), "{a:?} is not {b:?}");
}

#[test]
fn weights_are_repeated_rows() {
    let x = [0.3, -1.2, 2.5, 4.0, 0.9, -3.3, 77.0];
    let y = ["no", "yes", "no", "yes", "no", "yes", "maybe"];
    let w = [3.0, 1.0, 2.0, 1.0, 4.0, 2.0, 0.0];
    let times = |row: usize| w[row] as usize;
    let expanded: Vec<usize> = (0..7).flat_map(|row| vec![row; times(row)]).collect();
    let whole = table(vec![("x", number(&x)), ("y", text(&y)), ("w", number(&w))]);
    let repeated = whole.select(&expanded);
    let formula = "y ~ scale(x) + poly(x, 3) + scale(exp(scale(x)))";
    let weighted = [whole.select(&[0, 1, 2]), whole.select(&[3, 4, 5, 6])];
    let a = recipe(formula, Some("w"), &weighted).unwrap();
    let b = recipe(&formula.replace("~", "~ 1 +"), None, from_ref(&repeated)).unwrap();
    assert_eq!(a.names(), b.names());
    assert_eq!(a.response.kind, b.response.kind);
    assert_eq!((a.response.weight, b.response.weight), (13.0, 13.0));
    close(&[a.response.mean, a.response.sd], &[b.response.mean, b.response.sd]);
    let (a, b) = (a.design(&whole).unwrap(), b.design(&repeated).unwrap());
    for (a, b) in a.columns.iter().zip(&b.columns) {
        close(&expanded.iter().map(|&row| a[row]).collect::<Vec<_>>(), b);
    }
    // A row of weight 0 stays, even with a class that is none.
    assert_eq!(a.response, [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
    assert_eq!(a.weights.as_deref(), Some(&w[..]));
    assert_eq!(b.weights, None);
}

#[test]
fn weights_must_count() {
    for (bad, shown) in [(1.5, "1.5"), (-1.0, "-1")] {
        let t = table(vec![("y", number(&[1.0, 2.0])), ("w", number(&[1.0, bad]))]);
        let message = error("y ~ 1", Some("w"), from_ref(&t));
        let expected =
            format!("data.csv, line 3, column `w`: the weight is {shown}; weights count");
        assert!(message.contains(&expected), "{message}");
        let zero = table(vec![("y", number(&[1.0])), ("w", number(&[0.0]))]);
        let fine = recipe("y ~ 1", None, from_ref(&zero)).unwrap();
        assert!(Recipe { weights: Some("w".into()), ..fine }.design(&t).is_err());
        assert!(error("y ~ 1", Some("w"), &[zero]).contains("all weights are 0"));
    }
}

#[test]
fn words_among_numbers_are_judged_over_all_shards() {
    let y = |n: usize| ("y", number(&vec![1.0; n]));
    let numbers = table(vec![y(3), ("x", number(&[1.0, 2.0, 10.0]))]);
    let few = table(vec![y(2), ("x", text(&["3", "n/a"]))]);
    let many = table(vec![y(6), ("x", text(&["a", "b", "a", "b", "1", "a"]))]);

    // Mostly numbers: a mistake, and the first one is named.
    let message = error("y ~ x", None, &[numbers.clone(), few.clone()]);
    let expected = "data.csv, line 3, column `x`: the value is \"n/a\", but the column holds numbers in 4 of 5 rows; mend the value, or write factor(x)";
    assert!(message.contains(expected), "{message}");
    assert!(error("x ~ 1", None, &[numbers.clone(), few.clone()]).contains("4 of 5"));
    // Unless they are called labels, or used as numbers.
    let labels = recipe("y ~ factor(x)", None, &[numbers.clone(), few.clone()]).unwrap();
    assert_eq!(
        labels.names(),
        ["(Intercept)", "factor(x)10", "factor(x)2", "factor(x)3", "factor(x)n/a"]
    );
    let message = error("y ~ I(x + 1)", None, &[numbers.clone(), few.clone()]);
    assert!(
        message.contains("line 3, column `x`: a number is needed here, but the value is \"n/a\"")
    );
    assert!(error("y ~ log(x)", None, from_ref(&few)).contains("\"n/a\""));

    // Mostly words: labels, also where a shard saw numbers only.
    let labels = recipe("y ~ 0 + x", None, &[numbers.clone(), many.clone()]).unwrap();
    assert_eq!(labels.names(), ["x1", "x10", "x2", "xa", "xb"]);
    assert_eq!(labels.design(&numbers).unwrap().columns[1], [0.0, 0.0, 1.0]);
    assert_eq!(labels.design(&many).unwrap().columns[0], [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]);

    // Words that all spell numbers are numbers.
    let spelled = few.select(&[0]);
    let plain = recipe("x ~ x:y", None, &[numbers.clone(), spelled.clone()]);
    assert!(plain.unwrap_err().to_string().contains("also stands on the right side"));
    let plain = recipe("y ~ x", None, &[numbers, spelled.clone()]).unwrap();
    assert_eq!(plain.design(&spelled).unwrap().columns[1], [3.0]);
}

#[test]
fn truths_among_words_are_words() {
    let a = table(vec![("y", number(&[1.0, 2.0])), ("f", truth(&[true, false]))]);
    let b = table(vec![("y", number(&[1.0, 2.0])), ("f", text(&["TRUE", "maybe"]))]);
    assert_eq!(recipe("y ~ f", None, from_ref(&a)).unwrap().names(), ["(Intercept)", "fTRUE"]);
    let both = recipe("y ~ f", None, &[a.clone(), b]).unwrap();
    assert_eq!(both.names(), ["(Intercept)", "fTRUE", "fmaybe"]);
    assert_eq!(both.design(&a).unwrap().columns[1], [1.0, 0.0]);
}

#[test]
fn classes_are_agreed_on() {
    let shard = |y: &[&str]| table(vec![("y", text(y))]);
    let one = recipe("y ~ 1", None, &[shard(&["b", "b"]), shard(&["a"])]).unwrap();
    let levels = vec!["a".to_string(), "b".to_string()];
    assert_eq!(one.response.kind, ResponseKind::Classes { levels });
    assert_eq!(one.design(&shard(&["b", "a"])).unwrap().response, [1.0, 0.0]);
    assert_eq!((one.response.mean, one.response.text.as_str()), (2.0 / 3.0, "y"));

    let only = recipe("y ~ 1", None, &[shard(&["a", "a"])]).unwrap();
    assert_eq!(only.response.kind, ResponseKind::Classes { levels: vec!["a".into()] });
    assert_eq!((only.response.mean, only.response.sd), (0.0, 0.0));
    assert_eq!(only.design(&shard(&["a"])).unwrap().response, [0.0]);

    let message = error("y ~ 1", None, &[shard(&["a", "b"]), shard(&["c"])]);
    assert!(message.contains("3 classes (\"a\", \"b\", \"c\")"), "{message}");
    assert!(message.contains("I(y == \"a\")"), "{message}");

    let all_true = table(vec![("y", truth(&[true, true]))]);
    let response = recipe("y ~ 1", None, from_ref(&all_true)).unwrap().response;
    assert_eq!((response.mean, response.sd), (1.0, 0.0));
}

#[test]
fn what_cannot_be_agreed_on_is_said() {
    let x = [1.0, 2.0, 2.0, 1.0];
    let t = || {
        table(vec![
            ("y", number(&[1.0, 2.0, 3.0, 4.0])),
            ("x", number(&x)),
            ("one", number(&[5.0; 4])),
            ("same", text(&["u"; 4])),
            ("t", text(&["a", "b", "c", "a"])),
            ("big", number(&[1e200, -1e200, 1.0, 2.0])),
            ("k", number(&[1.0, 2.0, 3.0, 4.0])),
        ])
    };
    let halves = [t().select(&[0, 3]), t().select(&[1, 2])];
    for (formula, expected) in [
        ("y ~ scale(one)", "scale(one) is not possible: one is the same (5) in all rows"),
        ("y ~ scale(I(x - x))", "the same (0)"),
        ("y ~ poly(x, 2)", "needs more than 2 distinct values, but x has 2"),
        ("y ~ poly(one, 1)", "needs more than 1 distinct values, but one has 1"),
        ("y ~ same", "is \"u\" in all rows"),
        ("y ~ factor(one)", "is \"5\" in all rows"),
        ("y ~ scale(t)", "line 2, column `t`: a number is needed here, but the value is \"a\""),
        ("y ~ poly(t, 1)", "column `t`"),
        ("y ~ x + offset(t)", "column `t`"),
        ("y ~ log(x - 1)", "line 2, column `log(x - 1)`: the result is -Inf"),
        ("log(x - 2) ~ 1", "column `log(x - 2)`"),
        ("y ~ big:I(big * 1)", "line 2, column `big:I(big * 1)`: the result is too large"),
        ("y ~ scale(big)", "too large"),
        ("y ~ offset(1/(x - 1))", "a divisor must not be 0"),
    ] {
        let message = error(formula, None, &halves);
        assert!(message.contains(expected), "{formula}: {message}");
    }
    let empty = t().select(&[]);
    assert!(error("y ~ x", None, from_ref(&empty)).contains("there are no rows"));
    assert!(error("y ~ scale(x)", None, from_ref(&empty)).contains("there are no rows"));
    // One empty shard among others is fine.
    let shards = [empty, t()];
    let fine = recipe("y ~ scale(x) + t + poly(k^2, 2)", None, &shards).unwrap();
    assert_eq!(fine.design(&shards[0]).unwrap().columns, vec![Vec::<f64>::new(); 6]);
}

#[test]
fn levels_from_elsewhere_are_refused() {
    let t =
        |levels: &[&str]| table(vec![("y", number(&vec![1.0; levels.len()])), ("a", text(levels))]);
    let agreed = recipe("y ~ a", None, &[t(&["u", "v", "w"])]).unwrap();
    assert_eq!(agreed.design(&t(&["w", "u"])).unwrap().columns[1], [0.0, 0.0]);
    let message = agreed.design(&t(&["u", "z"])).unwrap_err().to_string();
    let expected = "data.csv, line 3, column `a`: the level \"z\" is unknown; the study's are \"u\", \"v\", \"w\"";
    assert!(message.contains(expected), "{message}");
}

#[test]
fn absurd_factors_are_refused() {
    let names: Vec<String> = (0..MAX_LEVELS + 1).map(|i| format!("id{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let n = names.len();
    let x: Vec<f64> = (0..n).map(|i| i as f64).collect();
    let t = table(vec![("x", number(&x)), ("id", text(&names)), ("k", number(&x))]);
    assert!(error("x ~ id", None, from_ref(&t)).contains("more than 10000 distinct values"));
    assert!(error("x ~ factor(k)", None, from_ref(&t)).contains("more than 10000 distinct values"));
    assert!(error("id ~ x", None, from_ref(&t)).contains("more than 10000 distinct values"));
    let some: Vec<usize> = (0..200).collect();
    let message = error("x ~ id * factor(k)", None, &[t.select(&some)]);
    assert!(message.contains("more than 10000 columns (at the term id:factor(k))"), "{message}");
}

#[test]
fn shards_that_answer_wrongly_are_noticed() {
    let terms = Formula::parse("y ~ 1").unwrap().terms(&["y".into()], &[]).unwrap();
    let answer = |answers: Vec<Vec<Fact>>| {
        let mut ask = |_: &[Request]| Ok(answers.clone());
        agree(from_ref(&terms), None, &mut ask).unwrap_err().to_string()
    };
    assert!(answer(vec![]).contains("no shards"));
    assert!(answer(vec![vec![]]).contains("0 answers to 1 questions"));
    let wrong = vec![vec![Fact::Moments(Moments::default())]];
    assert!(answer(wrong).contains("another question"));
}
