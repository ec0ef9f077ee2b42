//! Parquet files: types, nulls, and what can be wrong with them.

use crate::{Dir, names, read, refused, values};
use arrow_array::builder::{Decimal32Builder, Decimal64Builder, Decimal128Builder};
use arrow_array::builder::{Decimal256Builder, Float16Builder, ListBuilder};
use arrow_array::types::{Int8Type, Int32Type, Int64Type, UInt16Type};
use arrow_array::*;
use arrow_schema::{DataType, Field, Schema};
use consilience::Error;
use consilience::data::Column;
use consilience::data::read::{ReadTable, TextFormat, Wanted, column_names, read_table};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use std::path::PathBuf;
use std::sync::Arc;

pub type Columns<'a> = Vec<(&'a str, ArrayRef)>;

/// Writes a file of row groups of two rows, so that columns come in several pieces.
pub fn write(dir: &Dir, name: &str, columns: Columns) -> PathBuf {
    let field = |(name, array): &(&str, ArrayRef)| {
        Field::new(name.to_string(), array.data_type().clone(), true)
    };
    let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let path = dir.path(name);
    let file = std::fs::File::create(&path).expect("a file");
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(2)).build();
    let mut writer =
        ArrowWriter::try_new(file, schema.clone(), Some(properties)).expect("a writer");
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(schema, arrays).expect("a batch");
    writer.write(&batch).expect("written");
    writer.close().expect("written");
    path
}

fn read_columns(columns: Columns) -> Result<ReadTable, Error> {
    let dir = Dir::new();
    read(&[write(&dir, "t.parquet", columns)])
}

fn read_named(files: &[PathBuf], wanted: &[&str]) -> Result<ReadTable, Error> {
    read_table(files, &TextFormat::default(), &Wanted::Named(&names(wanted)))
}

/// The values of a column, spelled.
fn one(array: impl Array + 'static) -> String {
    values(&read_columns(vec![("x", Arc::new(array))]).expect("a table").table, "x")
}

#[test]
fn numbers_of_all_widths_are_numbers() {
    assert_eq!(one(Int8Array::from(vec![Some(-128), None, Some(127)])), "-128 ? 127");
    assert_eq!(one(Int16Array::from(vec![Some(-32768), None, Some(5)])), "-32768 ? 5");
    assert_eq!(one(Int32Array::from(vec![i32::MIN, i32::MAX, 0])), "-2147483648 2147483647 0");
    assert_eq!(one(UInt8Array::from(vec![255, 0, 1])), "255 0 1");
    assert_eq!(one(UInt16Array::from(vec![65535, 0])), "65535 0");
    assert_eq!(one(UInt32Array::from(vec![u32::MAX])), "4294967295");
    let most = 1i64 << 53;
    let expected = "9007199254740992 -9007199254740992 ?";
    assert_eq!(one(Int64Array::from(vec![Some(most), Some(-most), None])), expected);
    assert_eq!(one(UInt64Array::from(vec![Some(1 << 53), None])), "9007199254740992 ?");
    assert_eq!(one(Float32Array::from(vec![Some(0.5), None, Some(-0.25)])), "0.5 ? -0.25");
    assert_eq!(one(Float64Array::from(vec![Some(0.1), None, Some(1e300)])), {
        format!("0.1 ? {}", 1e300)
    });
    let mut half = Float16Builder::new();
    half.append_null();
    half.append_value(<arrow_array::types::Float16Type as ArrowPrimitiveType>::Native::from_f32(
        1.5,
    ));
    assert_eq!(one(half.finish()), "? 1.5");
    assert_eq!(one(NullArray::new(3)), "? ? ?");
}

#[test]
fn decimals_are_numbers() {
    let mut decimal = Decimal128Builder::new().with_data_type(DataType::Decimal128(30, 2));
    decimal.append_value(12345);
    decimal.append_null();
    decimal.append_value(-1);
    assert_eq!(one(decimal.finish()), "123.45 ? -0.01");
    let mut decimal = Decimal32Builder::new().with_data_type(DataType::Decimal32(5, 1));
    decimal.append_value(-15);
    assert_eq!(one(decimal.finish()), "-1.5");
    let mut decimal = Decimal64Builder::new().with_data_type(DataType::Decimal64(15, 3));
    decimal.append_value(1);
    assert_eq!(one(decimal.finish()), "0.001");
    let mut decimal = Decimal256Builder::new().with_data_type(DataType::Decimal256(50, 1));
    decimal.append_option(Some(<_>::from(25)));
    decimal.append_null();
    assert_eq!(one(decimal.finish()), "2.5 ?");
}

#[test]
fn text_and_logicals() {
    let strings = vec![Some("b"), None, Some(""), Some(" a "), Some("b"), Some("NA")];
    let expected = "'b' ? '' ' a ' 'b' 'NA'";
    assert_eq!(one(StringArray::from(strings.clone())), expected);
    assert_eq!(one(LargeStringArray::from(strings.clone())), expected);
    assert_eq!(one(StringViewArray::from(strings)), expected);
    assert_eq!(one(StringArray::from(vec!["1", "2"])), "'1' '2'");
    assert_eq!(one(BooleanArray::from(vec![Some(true), None, Some(false)])), "true ? false");
}

#[test]
fn a_column_of_nulls_is_numeric() {
    for array in [
        Arc::new(StringArray::from(vec![None::<&str>; 3])) as ArrayRef,
        Arc::new(BooleanArray::from(vec![None; 3])),
        Arc::new(Float64Array::from(vec![None; 3])),
        Arc::new(DictionaryArray::<Int8Type>::from_iter([None::<&str>; 3])),
    ] {
        let table = read_columns(vec![("x", array)]).expect("a table").table;
        assert_eq!(values(&table, "x"), "? ? ?");
        assert!(matches!(table.column("x"), Ok(Column::Number(_))));
    }
}

#[test]
fn dictionaries_are_what_their_values_are() {
    let keys = Int32Array::from(vec![Some(3), None, Some(1), Some(0), Some(3), Some(2)]);
    let words = StringArray::from(vec![Some("x"), Some("y"), None, Some("z"), Some("unused")]);
    let dictionary = DictionaryArray::<Int32Type>::new(keys, Arc::new(words));
    let table = read_columns(vec![("x", Arc::new(dictionary))]).expect("a table").table;
    assert_eq!(values(&table, "x"), "'z' ? 'y' 'x' 'z' ?");
    let Ok(Column::Text { levels, .. }) = table.column("x") else { panic!() };
    assert_eq!(**levels, ["z", "y", "x"]);

    let keys = UInt16Array::from(vec![Some(1), Some(0), None, Some(1)]);
    let large = LargeStringArray::from(vec!["p", "q"]);
    assert_eq!(one(DictionaryArray::<UInt16Type>::new(keys, Arc::new(large))), "'q' 'p' ? 'q'");

    let keys = Int64Array::from(vec![Some(1), Some(0), None, Some(1)]);
    for values in [
        Arc::new(Int64Array::from(vec![7, -5])) as ArrayRef,
        Arc::new(Float64Array::from(vec![7.0, -5.0])),
    ] {
        assert_eq!(one(DictionaryArray::<Int64Type>::new(keys.clone(), values)), "-5 7 ? -5");
    }
}

#[test]
fn numbers_that_are_not_finite_are_refused() {
    for (value, spelled) in
        [(f64::NAN, "`NaN`"), (f64::INFINITY, "`inf`"), (f64::NEG_INFINITY, "`-inf`")]
    {
        let place = "t.parquet, row 4, column `x`";
        let array = Float64Array::from(vec![Some(1.0), None, Some(2.0), Some(value), Some(value)]);
        refused(read_columns(vec![("x", Arc::new(array))]), &[place, spelled, "null"]);
        let array = Float32Array::from(vec![0.0, 1.0, 2.0, value as f32]);
        refused(read_columns(vec![("x", Arc::new(array))]), &[place, spelled]);
        let keys = Int8Array::from(vec![0, 0, 0, 1]);
        let array = DictionaryArray::new(keys, Arc::new(Float64Array::from(vec![0.0, value])));
        refused(read_columns(vec![("x", Arc::new(array))]), &[place, spelled]);
    }
}

#[test]
fn integers_that_are_not_exact_are_refused() {
    let beyond = (1i64 << 53) + 1;
    for value in [beyond, -beyond, i64::MIN, i64::MAX] {
        let array = Int64Array::from(vec![Some(1), None, Some(value)]);
        let parts = ["row 3, column `x`", &value.to_string(), "2^53", "exactly", "as text"];
        refused(read_columns(vec![("x", Arc::new(array))]), &parts);
    }
    let array = UInt64Array::from(vec![u64::MAX]);
    refused(read_columns(vec![("x", Arc::new(array))]), &["row 1", "18446744073709551615"]);
}

#[test]
fn other_types_are_refused_if_wanted() {
    let dir = Dir::new();
    let mut list = ListBuilder::new(arrow_array::builder::Int32Builder::new());
    list.append_value([Some(1)]);
    let struct_of = Field::new("y", DataType::Int32, true);
    let columns: Columns = vec![
        ("when", Arc::new(TimestampMicrosecondArray::from(vec![5]))),
        ("day", Arc::new(Date32Array::from(vec![5]))),
        ("bytes", Arc::new(BinaryArray::from(vec![&b"x"[..]]))),
        ("list", Arc::new(list.finish())),
        (
            "struct",
            Arc::new(StructArray::from(vec![(
                Arc::new(struct_of),
                Arc::new(Int32Array::from(vec![1])) as ArrayRef,
            )])),
        ),
        ("x", Arc::new(Int32Array::from(vec![1]))),
    ];
    let files = [write(&dir, "t.pq", columns)];
    refused(read(&files), &["t.pq, column `when`: the type Timestamp", "leave it out"]);
    for (name, kind) in
        [("day", "Date32"), ("bytes", "Binary"), ("list", "List"), ("struct", "Struct")]
    {
        refused(read_named(&files, &["x", name]), &[&format!("column `{name}`: the type {kind}")]);
    }
    assert_eq!(values(&read_named(&files, &["x"]).expect("a table").table, "x"), "1");
    let all = column_names(&files[0], &TextFormat::default()).expect("names");
    assert_eq!(all, ["when", "day", "bytes", "list", "struct", "x"]);
}

#[test]
fn columns_are_found_by_name() {
    let dir = Dir::new();
    let int = |values: &[i32]| Arc::new(Int32Array::from(values.to_vec())) as ArrayRef;
    let word = |values: &[&str]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
    let files = [
        write(
            &dir,
            "1.pq",
            vec![("a", int(&[1, 2, 3])), ("b", word(&["u", "v", "u"])), ("c", int(&[7, 8, 9]))],
        ),
        write(&dir, "2.pq", vec![("c", int(&[6])), ("b", word(&["w"])), ("a", int(&[4]))]),
        dir.write("3.csv", "b,c,a\nv,5,0.5\n"),
    ];
    let table = read(&files).expect("a table").table;
    assert_eq!(table.names(), ["a", "b", "c"]);
    assert_eq!(values(&table, "a"), "1 2 3 4 0.5");
    assert_eq!(values(&table, "b"), "'u' 'v' 'u' 'w' 'v'");
    assert_eq!(values(&table, "c"), "7 8 9 6 5");
    assert_eq!(table.origin().rows, [(0, 1), (0, 2), (0, 3), (1, 1), (2, 2)]);
    assert_eq!(table.place(2, None).row, Some(3));
    assert_eq!(table.place(4, None).line, Some(2));
    let table = read_named(&files, &["c", "b"]).expect("a table").table;
    assert_eq!(table.names(), ["b", "c"]);
    assert_eq!(values(&table, "c"), "7 8 9 6 5");
    assert_eq!(read_named(&files, &[]).expect("a table").table.rows(), 5);
    refused(read_named(&files, &["bb"]), &["1.pq: there is no column `bb`", "`b`?"]);
}

#[test]
fn files_that_differ_in_kind_make_text() {
    let dir = Dir::new();
    let files = [
        write(
            &dir,
            "1.pq",
            vec![
                ("x", Arc::new(Float64Array::from(vec![Some(1.0), Some(2.5), None]))),
                ("l", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
                ("n", Arc::new(StringArray::from(vec![None::<&str>; 3]))),
            ],
        ),
        dir.write("2.csv", "x,l,n\nword,1,5\n01,2,6\n"),
    ];
    let table = read(&files).expect("a table").table;
    assert_eq!(values(&table, "x"), "'1' '2.5' ? 'word' '01'");
    assert_eq!(values(&table, "l"), "'true' 'false' ? '1' '2'");
    assert_eq!(values(&table, "n"), "? ? ? 5 6");
}

#[test]
fn empty_tables_and_bad_names_are_refused() {
    let int = |rows| Arc::new(Int32Array::from(vec![1; rows])) as ArrayRef;
    refused(read_columns(vec![("x", int(0))]), &["t.parquet", "no rows"]);
    let twice = vec![("x", int(1)), ("y", int(1)), ("x", int(1))];
    refused(read_columns(twice), &["columns 1 and 3 are both named `x`"]);
    refused(read_columns(vec![("", int(1))]), &["column 1 of 1 has no name"]);
}

/// A file of many types, to be broken.
fn rich(dir: &Dir) -> Vec<u8> {
    let rows = 20;
    let words = (0..rows).map(|i| (i % 7 > 0).then(|| format!("word{}", i % 11)));
    let words: StringArray = words.collect();
    let dictionary: DictionaryArray<Int32Type> = words.iter().collect();
    let columns: Columns = vec![
        ("a", Arc::new((0..rows).map(Some).collect::<Int32Array>())),
        (
            "b",
            Arc::new(
                (0..rows).map(|i| Some(f64::from(i % 97) * 0.37 - 5.0)).collect::<Float64Array>(),
            ),
        ),
        ("c", Arc::new(words)),
        ("d", Arc::new(dictionary)),
        ("e", Arc::new((0..rows).map(|i| Some(i % 3 == 0)).collect::<BooleanArray>())),
    ];
    std::fs::read(write(dir, "whole.parquet", columns)).expect("a file")
}

#[test]
fn broken_files_are_refused() {
    let dir = Dir::new();
    let whole = rich(&dir);
    for length in [1, 3, 4, 11, 12, whole.len() / 2, whole.len() - 4, whole.len() - 1] {
        refused(read(&[dir.write("t.parquet", &whole[..length])]), &["t.parquet: ", "Parquet"]);
    }
    refused(read(&[dir.write("t.parquet", "")]), &["t.parquet: the file is empty"]);
    refused(read(&[dir.write("t.parquet", "a,b\n1,2\n3,4\n")]), &["t.parquet: ", "Parquet"]);
    // The beginning is lost, the footer is whole.
    let mut hollow = whole.clone();
    hollow[..whole.len() / 3].fill(0);
    refused(read(&[dir.write("t.parquet", hollow)]), &["t.parquet: ", "Parquet"]);
}

/// Flipped bits may go unnoticed or be refused, but not more. (Among so many flips are some on
/// which the Parquet crate panics.)
#[test]
fn corrupt_files_do_no_harm() {
    let dir = Dir::new();
    let whole = rich(&dir);
    let mut state = 7u64;
    for _ in 0..1500 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let mut bytes = whole.clone();
        bytes[(state >> 33) as usize % whole.len()] ^= 1 << ((state >> 20) % 8);
        if let Err(error) = read(&[dir.write("t.parquet", bytes)]) {
            assert!(error.is_input(), "{error:?}");
        }
    }
}

/// Row groups are read side by side where columns are few, and nobody can tell: neither from the table nor from errors.
#[test]
fn few_columns_are_the_same_on_any_threads() {
    let n = 301;
    let x = || -> ArrayRef {
        Arc::new(Float64Array::from_iter(
            (0..n).map(|i| (i % 11 > 0).then_some(f64::from(i) / 7.0)),
        ))
    };
    let s: ArrayRef = Arc::new(Float32Array::from_iter_values((0..n).map(|i| i as f32 / 3.0)));
    // Levels that come late, come again, and are spelled in two ways.
    let word = |i: i32| match i % 13 {
        0 => None,
        5 if i > 200 => Some("e\u{301}".to_string()),
        6 if i > 250 => Some("\u{e9}".to_string()),
        k => Some(format!("{}", (k + i / 60) % 9)),
    };
    let g: ArrayRef = Arc::new(StringArray::from_iter((0..n).map(word)));
    let keys = (0..n).map(|i| ["u", "v", "w"][(i / 100 + i % 2) as usize % 3]);
    let d: ArrayRef = Arc::new(keys.collect::<DictionaryArray<Int32Type>>());
    let none: ArrayRef = Arc::new(Float64Array::from(vec![None; n as usize]));
    let dir = Dir::new();
    let columns = vec![("x", x()), ("s", s), ("g", g), ("d", d), ("none", none)];
    let path = write(&dir, "t.parquet", columns);
    // Two faults: the first one in the file is told.
    let faulty = |i: i32| if i == 120 || i == 290 { f64::INFINITY } else { f64::from(i) };
    let bad: ArrayRef = Arc::new(Float64Array::from_iter_values((0..n).map(faulty)));
    let wrong = write(&dir, "wrong.parquet", vec![("bad", bad), ("x", x())]);
    let on = |threads: usize, file: &PathBuf, wanted: &[&str]| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| read_named(std::slice::from_ref(file), wanted))
    };
    for wanted in
        [&["x"] as &[&str], &["g"], &["g", "s"], &["none", "d", "x"], &["x", "s", "g", "d"]]
    {
        let one = format!("{:?}", on(1, &path, wanted).unwrap());
        for threads in [2, 3, 16, 64] {
            assert_eq!(format!("{:?}", on(threads, &path, wanted).unwrap()), one, "{wanted:?}");
        }
    }
    let one = on(1, &path, &["g"]).unwrap().table;
    assert_eq!((one.rows(), one.origin().rows[300]), (301, (0, 301)));
    for threads in [1, 2, 16] {
        refused(on(threads, &wrong, &["bad", "x"]), &["row 121", "`inf`"]);
    }
}
