//! Tables read block by block are the tables read whole.

use crate::parquet::{Columns, write};
use crate::{Dir, names, read};
use arrow_array::*;
use consilience::Error;
use consilience::data::Table;
use consilience::data::read::{TextFormat, Wanted, read_table};
use consilience::data::source::Source;
use std::path::PathBuf;
use std::sync::Arc;

/// Reads in blocks of several sizes, twice each, and compares with the whole.
fn check(files: &[PathBuf], wanted: &Wanted) -> Table {
    let whole = read_table(files, &TextFormat::default(), wanted).expect("a table");
    let source = Source::open(files, &TextFormat::default(), wanted).expect("a source");
    assert_eq!(source.rows(), whole.table.rows() as u64);
    assert_eq!((source.names(), source.comments()), (whole.table.names(), whole.comments));
    for size in [1, 2, 3, 5, 1000].into_iter().flat_map(|size| [size, size]) {
        let mut from = 0;
        for block in source.blocks(size) {
            let block = block.expect("a block");
            assert!((1..=size).contains(&block.rows()));
            // As text, since NaN is not equal to itself.
            let expected = whole.table.slice(from..from + block.rows());
            assert_eq!(format!("{block:?}"), format!("{expected:?}"));
            from += block.rows();
        }
        assert_eq!(from, whole.table.rows());
    }
    whole.table
}

fn strings(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn columns(rows: usize, salt: usize) -> Columns<'static> {
    let words = ["b", "a", "größe", "", "c"];
    let word = |i: usize| Some(words[(i * i + salt) % 5]).filter(|_| !(i + salt).is_multiple_of(4));
    let number = |i: usize| ((i + salt) % 3 > 0).then_some(i as f64 / 3.0);
    vec![
        ("n", Arc::new(Float64Array::from_iter((0..rows).map(number))) as ArrayRef),
        ("s", Arc::new(Float32Array::from_iter_values((0..rows).map(|i| (i + salt) as f32 / 7.0)))),
        ("t", strings(&(0..rows).map(word).collect::<Vec<_>>())),
        (
            "l",
            Arc::new(BooleanArray::from_iter((0..rows).map(|i| (i % 3 > 0).then_some(i % 2 == 1)))),
        ),
        ("i", Arc::new(Int64Array::from_iter_values((0..rows as i64).map(|i| i - 3)))),
    ]
}

#[test]
fn blocks_of_parquet_files_share_kinds_and_levels() {
    let dir = Dir::new();
    let a = write(&dir, "a.parquet", columns(11, 0));
    let mut reversed = columns(7, 3);
    reversed.reverse();
    let b = write(&dir, "b.parquet", reversed);
    check(std::slice::from_ref(&a), &Wanted::All);
    let table = check(&[a.clone(), b.clone()], &Wanted::All);
    assert_eq!(table.names(), ["n", "s", "t", "l", "i"]);
    check(&[b, a], &Wanted::Named(&names(&["t", "s"])));
}

/// Every pair of files that may disagree, text among them.
#[test]
fn files_that_disagree_do_so_in_blocks_too() {
    let dir = Dir::new();
    let nothing: Vec<Option<&str>> = vec![None; 3];
    let mut files: Vec<PathBuf> = [
        Arc::new(Float64Array::from(vec![Some(1.5), None, Some(-2.0)])) as ArrayRef,
        Arc::new(Int32Array::from(vec![1, 2, 3])),
        Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
        strings(&[Some("x"), None, Some("1.5")]),
        strings(&nothing),
        Arc::new(BooleanArray::from(vec![None; 3])),
        Arc::new(NullArray::new(3)),
    ]
    .into_iter()
    .enumerate()
    .map(|(i, array)| write(&dir, &format!("{i}.parquet"), vec![("x", array)]))
    .collect();
    for (i, text) in
        ["1.50\n2\n", "TRUE\n\"\"\n", "NA\n\"\"\n", "# c\nx\n1\n", "1e0\nz\n"].iter().enumerate()
    {
        files.push(dir.write(&format!("{i}.csv"), format!("x\n{text}")));
    }
    for a in &files {
        for b in files.iter().filter(|&b| b != a) {
            check(&[a.clone(), b.clone()], &Wanted::All);
        }
    }
    check(&files, &Wanted::All);
}

#[test]
fn an_error_names_its_row_and_ends_the_blocks() {
    let dir = Dir::new();
    // Far enough into the file that it is not found out before the blocks.
    let mut values = vec![1.0; 3000];
    values[2500] = f64::INFINITY;
    let file = write(&dir, "t.parquet", vec![("x", Arc::new(Float64Array::from(values)))]);
    let source = Source::open(&[file.clone()], &TextFormat::default(), &Wanted::All).unwrap();
    let blocks: Vec<Result<Table, Error>> = source.blocks(2000).collect();
    assert_eq!(blocks.len(), 2);
    assert_eq!(blocks[0].as_ref().unwrap().rows(), 2000);
    let expected = read(&[file.clone()]).unwrap_err().to_string();
    assert!(expected.contains("row 2501"), "{expected}");
    assert_eq!(blocks[1].as_ref().unwrap_err().to_string(), expected);

    // What open refuses.
    let csv = dir.write("t.csv", "x\n1\ninf\n");
    let error = |files: &[PathBuf]| {
        Source::open(files, &TextFormat::default(), &Wanted::All).err().unwrap().to_string()
    };
    assert_eq!(error(&[csv.clone()]), read(&[csv]).unwrap_err().to_string());
    assert_eq!(error(&[]), read(&[]).unwrap_err().to_string());

    // A file that is another one by the time it is read.
    write(&dir, "t.parquet", vec![("x", Arc::new(Float64Array::from(vec![1.0; 8])))]);
    let error = source.blocks(4).next().unwrap().unwrap_err().to_string();
    assert!(error.contains("changed"), "{error}");
}
