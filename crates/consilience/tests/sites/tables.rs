//! Data in memory: the same bits as from files, and clear errors.

use consilience::Result;
use consilience::arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use consilience::arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Float32Array, Float64Array, Int64Array, RecordBatch,
    RecordBatchIterator, StringArray,
};
use consilience::compare::Comparison;
use consilience::data::Tables;
use consilience::engine::Silent;
use consilience::model::Family;
use consilience::plan::Plan;
use consilience::study::{SplitBy, Study};
use std::sync::Arc;

const ROWS: usize = 240;

/// Rows of numbers of both widths, integers, text and logicals, some missing, and a column of a type
/// that no study can use.
fn batch(rows: &[usize]) -> RecordBatch {
    let noise = |i: usize| ((i * 7919 + 13) % 101) as f64 / 101.0 - 0.5;
    let x: Vec<Option<f64>> = rows.iter().map(|&i| (i % 17 > 0).then(|| noise(i))).collect();
    let s: Vec<f32> = rows.iter().map(|&i| noise(3 * i + 1) as f32).collect();
    let k: Vec<i64> = rows.iter().map(|&i| (i % 5) as i64).collect();
    let g: Vec<Option<&str>> =
        rows.iter().map(|&i| (i % 23 > 0).then_some(["b", "a", "c"][i % 3])).collect();
    let l: Vec<bool> = rows.iter().map(|&i| i % 4 < 2).collect();
    let y: Vec<f64> = rows.iter().map(|&i| 0.3 * noise(i) + noise(11 * i + 5)).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("when", Arc::new(Date32Array::from(vec![1; rows.len()]))),
        ("x", Arc::new(Float64Array::from(x))),
        ("s", Arc::new(Float32Array::from(s))),
        ("k", Arc::new(Int64Array::from(k))),
        ("g", Arc::new(StringArray::from(g))),
        ("l", Arc::new(BooleanArray::from(l))),
        ("y", Arc::new(Float64Array::from(y))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true)))
        .unwrap()
}

fn study() -> Study {
    Study::new()
        .shards(3)
        .model("y ~ x + s + k + g + l", Family::Gaussian)
        .model("y ~ x", Family::Gaussian)
}

/// All that rests on the rows: as text, in which equal numbers have equal bits.
fn bits(comparison: &Comparison) -> String {
    serde_json::to_string(&comparison.models).unwrap()
}

fn run(study: Study, tables: Tables) -> Comparison {
    Plan::of_tables(study, tables, 2, &Silent).unwrap().run(&Silent).unwrap()
}

#[test]
fn a_file_a_table_and_tables_already_split_give_the_same_bits() {
    let all: Vec<usize> = (0..ROWS).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.parquet");
    let file = std::fs::File::create(&path).unwrap();
    let whole = batch(&all);
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, whole.schema(), None).unwrap();
    writer.write(&whole).unwrap();
    writer.close().unwrap();
    let of_file = Plan::new(study().path(path.to_str().unwrap()), 2, &Silent).unwrap();
    let expected = of_file.run(&Silent).unwrap();

    // However the rows are cut into batches.
    for cut in [ROWS, 64, 7] {
        let of_table = run(study(), Tables::whole(all.chunks(cut).map(batch).collect()).unwrap());
        assert_eq!(bits(&of_table), bits(&expected));
        assert_eq!(of_table.partition, expected.partition);
    }

    // As another language hands them over.
    let reader = RecordBatchIterator::new(vec![Ok(whole.clone())], whole.schema());
    let stream = FFI_ArrowArrayStream::new(Box::new(reader));
    let imported = RecordBatchStreamReader::try_new(stream).unwrap();
    let of_stream = run(study(), Tables::Whole(Box::new(imported)));
    assert_eq!(bits(&of_stream), bits(&expected));

    // Split by the caller as the study would: complete rows only, so that the deal is the same.
    let complete: Vec<usize> = all.iter().copied().filter(|i| i % 17 > 0 && i % 23 > 0).collect();
    let gathered = consilience::plan::Gathered::of_tables(
        study(),
        Tables::whole(vec![whole]).unwrap(),
        &Default::default(),
    )
    .unwrap();
    let shards: Vec<Vec<usize>> = gathered
        .shards
        .iter()
        .map(|shard| {
            let table = shard.table().unwrap();
            table.origin().rows.iter().map(|(_, row)| *row as usize - 1).collect()
        })
        .collect();
    assert_eq!(shards.iter().map(Vec::len).sum::<usize>(), complete.len());
    let split = || Tables::shards(shards.iter().map(|rows| vec![batch(rows)]).collect()).unwrap();
    let given = run(study(), split());
    assert_eq!(bits(&given), bits(&expected));
    assert_eq!((given.partition.by.as_str(), given.partition.shards), ("given", 3));
    assert_eq!(given.partition.rows, expected.partition.rows);
    // The number of shards need not be said.
    let mut unsaid = study();
    unsaid.split.shards = None;
    assert_eq!(bits(&run(unsaid, split())), bits(&expected));
}

fn refused(study: Study, tables: Result<Tables>, needles: &[&str]) {
    let error = tables.and_then(|tables| Plan::of_tables(study, tables, 1, &Silent)).unwrap_err();
    assert!(error.is_input(), "{error}");
    for needle in needles {
        assert!(error.to_string().contains(needle), "{error} lacks {needle}");
    }
}

fn column(name: &str, values: Vec<f64>) -> RecordBatch {
    let values: ArrayRef = Arc::new(Float64Array::from(values));
    RecordBatch::try_from_iter([("y", values.clone()), (name, values)]).unwrap()
}

#[test]
fn wrong_tables_are_refused_with_their_place() {
    let rows: Vec<usize> = (0..40).collect();
    let on = |formula: &str| Study::new().model(formula, Family::Gaussian);
    let good = || column("x", vec![1.0, 2.0, 3.0]);
    // A type that cannot be used is no fault unless it is used.
    let whole = || Tables::whole(vec![batch(&rows)]);
    refused(on("y ~ when"), whole(), &["the table, column `when`: the type Date32"]);
    refused(on("y ~ z"), whole(), &["model `y ~ z`", "`z`", "`x`"]);
    let lacking = Tables::shards(vec![vec![good()], vec![column("X", vec![1.0, 2.0])]]);
    refused(on("y ~ x"), lacking, &["shard 1: there is no column `x`; did you mean `X`?"]);
    let nan = Tables::whole(vec![good(), column("x", vec![1.0, f64::NAN])]);
    refused(on("y ~ x"), nan, &["the table, row 5, column `y`: `NaN` is not a finite number"]);
    let nan = Tables::shards(vec![vec![good()], vec![column("x", vec![f64::INFINITY])]]);
    refused(on("y ~ x"), nan, &["shard 1, row 1, column `y`: `inf`"]);
    // Words beside numbers make text, as in files; then it is no outcome of numbers.
    let words: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let words = RecordBatch::try_from_iter([("y", words.clone()), ("x", words)]).unwrap();
    let mixed = Tables::shards(vec![vec![good()], vec![words]]);
    refused(on("y ~ x"), mixed, &["model `y ~ x`", "the outcome y has 6 classes"]);
}

#[test]
fn empty_tables_are_refused() {
    let on = || Study::new().model("y ~ x", Family::Gaussian);
    let good = || column("x", vec![1.0, 2.0, 3.0]);
    let empty = || column("x", vec![]);
    refused(on(), Tables::whole(vec![]), &["the table: the table has no batches"]);
    refused(on(), Tables::shards(vec![]), &["there are no tables"]);
    refused(on(), Tables::whole(vec![empty()]), &["the table: ", "no rows"]);
    let one = Tables::shards(vec![vec![good()], vec![empty(), empty()]]);
    refused(on(), one, &["shard 1: ", "no rows; leave it out"]);
    // All rows of a shard miss a value.
    let nulls: ArrayRef = Arc::new(Float64Array::from(vec![None, None]));
    let numbers: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0]));
    let holed = RecordBatch::try_from_iter([("y", numbers), ("x", nulls)]).unwrap();
    let one = Tables::shards(vec![vec![good()], vec![holed.clone()]]);
    refused(on(), one, &["shard 1: none of its rows is complete"]);
    refused(on(), Tables::whole(vec![holed]), &["no row is complete: all 2 rows", "`x`: 2"]);
}

#[test]
fn a_reader_that_fails_midway_says_where() {
    let schema = column("x", vec![]).schema();
    let batches = vec![
        Ok(column("x", vec![1.0, 2.0])),
        Err(arrow_schema::ArrowError::ComputeError("the line went dead".into())),
    ];
    let reader = RecordBatchIterator::new(batches, schema.clone());
    let on = || Study::new().model("y ~ x", Family::Gaussian);
    let needles = &["the table, row 3: the table cannot be read from here on", "went dead"];
    refused(on(), Ok(Tables::Whole(Box::new(reader))), needles);
    // A reader that does not keep to its schema.
    let other = RecordBatch::try_from_iter([("y", batch(&[0]).column(4).clone())]).unwrap();
    let reader = RecordBatchIterator::new(vec![Ok(column("x", vec![1.0])), Ok(other)], schema);
    let needles = &["the table, row 2: ", "not those that the table began with"];
    refused(on(), Ok(Tables::Whole(Box::new(reader))), needles);
}

#[test]
fn a_study_and_its_tables_must_agree_on_the_split() {
    let good = || vec![column("x", vec![1.0, 2.0, 3.0])];
    let on = || Study::new().model("y ~ x", Family::Gaussian);
    let two = || Tables::shards(vec![good(), good()]);
    refused(on().shards(3), two(), &["2 tables are given", "but 3"]);
    refused(on().split_by(SplitBy::Outcome), two(), &["`split.by` = \"outcome\"", "split already"]);
    refused(on().shards(4), Tables::whole(good()), &["4 shards are more than the 3 rows"]);
    // Without tables it is files that are lacking.
    let error = Plan::new(on(), 1, &Silent).unwrap_err().to_string();
    assert!(error.contains("`data.path` is missing; add path = \"data.csv\""), "{error}");
}
