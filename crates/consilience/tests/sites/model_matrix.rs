//! Designs against R's `model.matrix`, on one shard and on several. The expected numbers come
//! from `scripts/model_matrix.R`; columns of `poly()` are R's times √(n − 1).

use consilience::data::{Column, Fact, Formula, Origin, Recipe, Request, Table, agree, describe};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Deserialize)]
struct Expected {
    formula: String,
    names: Vec<String>,
    terms: Vec<String>,
    response: Vec<f64>,
    offset: Option<Vec<f64>>,
    columns: Vec<Vec<f64>>,
}

fn file(name: &str) -> (PathBuf, String) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let text = std::fs::read_to_string(&path).expect("the file is part of the repository");
    (path, text)
}

/// A reader for files without quotes and missing values.
fn read() -> Table {
    let (path, text) = file("model_matrix.csv");
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let columns = names.iter().enumerate().map(|(i, name)| {
        let cells: Vec<&str> = rows.iter().map(|row| row[i]).collect();
        (name.to_string(), column(&cells))
    });
    let origin = Origin {
        files: Arc::new(vec![(path, true)]),
        rows: (0..rows.len() as u32).map(|row| (0, row + 2)).collect(),
    };
    Table::new(columns.collect(), origin)
}

fn column(cells: &[&str]) -> Column {
    if let Ok(numbers) = cells.iter().map(|c| c.parse()).collect::<Result<Vec<f64>, _>>() {
        return Column::Number(numbers);
    }
    if cells.iter().all(|c| ["TRUE", "FALSE"].contains(c)) {
        return Column::Logical(cells.iter().map(|c| u32::from(*c == "TRUE")).collect());
    }
    // Backwards, so that the library has to sort.
    let levels: Vec<String> =
        cells.iter().collect::<BTreeSet<_>>().into_iter().rev().map(|c| c.to_string()).collect();
    let code = |cell: &&str| levels.iter().position(|l| l == cell).unwrap() as u32;
    Column::Text { codes: cells.iter().map(code).collect(), levels: Arc::new(levels.clone()) }
}

/// The rows of every shard: the whole, thirds, in turns, and by the values of columns, so that
/// shards miss levels and one is empty.
fn splits(table: &Table) -> Vec<Vec<Vec<usize>>> {
    let n = table.rows();
    let by = |shards: usize, shard: &dyn Fn(usize) -> usize| -> Vec<Vec<usize>> {
        (0..shards).map(|s| (0..n).filter(|&row| shard(row) == s).collect()).collect()
    };
    let codes = |name: &str| match table.column(name).unwrap() {
        Column::Text { codes, .. } | Column::Logical(codes) => codes.clone(),
        Column::Number(_) | Column::Single(_) => panic!("{name} is a column of texts"),
    };
    let (a, c, flag) = (codes("a"), codes("c"), codes("flag"));
    vec![
        by(1, &|_| 0),
        by(3, &|row| row * 3 / n),
        by(3, &|row| row % 3),
        by(3, &|row| a[row] as usize),
        by(5, &|row| c[row] as usize + usize::from(c[row] > 1)),
        by(3, &|row| 2 * flag[row] as usize),
    ]
}

fn agreed(formulas: &[&str], shards: &[Table]) -> (Vec<Recipe>, usize) {
    let all = shards[0].names();
    let terms: Vec<_> =
        formulas.iter().map(|f| Formula::parse(f).unwrap().terms(all, &[]).unwrap()).collect();
    let mut rounds = 0;
    let mut ask = |requests: &[Request]| {
        rounds += 1;
        let facts: Result<Vec<Vec<Fact>>, _> =
            shards.iter().map(|shard| describe(&shard.clone().into(), None, requests)).collect();
        // Facts and requests cross the wire.
        let wire = postcard::to_stdvec(&facts?).unwrap();
        Ok(postcard::from_bytes(&wire).unwrap())
    };
    let recipes = agree(&terms, None, &mut ask).unwrap();
    (recipes, rounds)
}

/// How many times R's column ours is: R's polynomials have length 1, ours standard deviation 1.
fn times(column: &str, rows: usize) -> f64 {
    ((rows - 1) as f64).sqrt().powi(column.matches("poly(").count() as i32)
}

fn close(actual: &[f64], expected: &[f64], what: &str) {
    assert_eq!(actual.len(), expected.len(), "{what}");
    // R's polynomials are only as exact as their column is large.
    let size = expected.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    for (row, (a, e)) in actual.iter().zip(expected).enumerate() {
        let near = (a - e).abs() <= 1e-10 * e.abs() || (a - e).abs() <= 1e-13 * size;
        assert!(near, "{what}, row {row}: {a} instead of {e}");
    }
}

#[test]
fn designs_are_those_of_r() {
    let table = read();
    let expected: Vec<Expected> = serde_json::from_str(&file("model_matrix.json").1).unwrap();
    assert!(expected.len() >= 40);
    let formulas: Vec<&str> = expected.iter().map(|e| e.formula.as_str()).collect();
    for (number, split) in splits(&table).iter().enumerate() {
        let shards: Vec<Table> = split.iter().map(|rows| table.select(rows)).collect();
        let (recipes, rounds) = agreed(&formulas, &shards);
        // Column kinds and scales, scales of those and polynomials of those, polynomials of the
        // latter.
        assert_eq!(rounds, 3, "split {number}");
        for (recipe, expected) in recipes.iter().zip(&expected) {
            let what = format!("{} on split {number}", expected.formula);
            assert_eq!(recipe.names(), expected.names, "{what}");
            let terms: Vec<&String> = recipe.columns.iter().map(|c| &c.term).collect();
            assert_eq!(terms, expected.terms.iter().collect::<Vec<_>>(), "{what}");
            let wire = postcard::to_stdvec(recipe).unwrap();
            assert_eq!(&postcard::from_bytes::<Recipe>(&wire).unwrap(), recipe, "{what}");
            for (shard, rows) in shards.iter().zip(split) {
                let design = recipe.design(shard).unwrap();
                let pick = |values: &[f64]| rows.iter().map(|&r| values[r]).collect::<Vec<_>>();
                close(&design.response, &pick(&expected.response), &what);
                assert_eq!(design.offset.is_some(), expected.offset.is_some(), "{what}");
                if let (Some(offset), Some(expected)) = (&design.offset, &expected.offset) {
                    close(offset, &pick(expected), &what);
                }
                for ((column, expected), name) in
                    design.columns.iter().zip(&expected.columns).zip(recipe.names())
                {
                    let factor = times(name, table.rows());
                    let scaled: Vec<f64> = pick(expected).iter().map(|v| factor * v).collect();
                    close(column, &scaled, &format!("{what}, column {name}"));
                }
            }
        }
    }
}

#[test]
fn one_formula_asks_no_more_than_it_needs() {
    let table = read();
    let shards = [table];
    for (formula, rounds) in [
        ("y ~ a * x", 1),
        ("y ~ .", 1),
        ("y ~ scale(x) + a + factor(k)", 1),
        ("type ~ log(z)", 1),
        ("y ~ poly(x, 2) + scale(scale(x)^2)", 2),
        ("scale(y) ~ x", 2),
        ("y ~ poly(scale(x), 2)", 3),
    ] {
        assert_eq!(agreed(&[formula], &shards).1, rounds, "{formula}");
    }
}

#[test]
fn the_response_knows_its_moments() {
    let table = read();
    let expected: Vec<Expected> = serde_json::from_str(&file("model_matrix.json").1).unwrap();
    let shards: Vec<Table> = splits(&table)[3].iter().map(|rows| table.select(rows)).collect();
    for formula in ["y ~ x", "type ~ x", "flag ~ a:b", "log(y + 1) ~ c", "I(x > 0) ~ z"] {
        let values = &expected.iter().find(|e| e.formula == formula).unwrap().response;
        let response = &agreed(&[formula], &shards).0[0].response;
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
        assert_eq!(response.weight, 30.0);
        close(&[response.mean, response.sd], &[mean, variance.sqrt()], formula);
    }
}
