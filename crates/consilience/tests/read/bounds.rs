//! Files that are larger than they look, and rows that never end.

use super::*;
use consilience::data::read::{Bound, Reader};

const FEW: usize = 1 << 20;

fn bounded<'a>(format: &'a TextFormat, dir: &'a Dir, words: usize) -> Reader<'a> {
    Reader { bound: Some(Bound { words, folder: dir.0.path() }), ..Reader::new(format) }
}

/// The blocks of a table behind each other, read with a bound.
fn in_blocks(dir: &Dir, files: &[PathBuf], words: usize) -> Result<Vec<Table>, Error> {
    let format = TextFormat::default();
    let source = bounded(&format, dir, words).source(files, &Wanted::All)?;
    source.blocks(10_000).collect()
}

/// A file that has no room in memory is read by way of a copy that leaves nothing behind, and is the same
/// table: kinds, levels, lines and all.
#[test]
fn a_bound_changes_nothing_of_a_table() {
    let dir = Dir::new();
    let row = |i: u32| {
        let note = if i % 1000 == 3 { "# a comment\n" } else { "" };
        let late = if i > 69_990 { "word".to_string() } else { (i % 5).to_string() };
        format!(
            "{note}{},{},{late},g{},{}\n",
            i % 7,
            f64::from(i) / 3.0,
            i % 90,
            i.is_multiple_of(2)
        )
    };
    let text = "a,b,late,g,t\n".to_string() + &(0..70_000).map(row).collect::<String>();
    let plain = dir.write("p.csv", &text);
    let packed = dir.write("p.csv.gz", gzip(&text));
    let other = dir.write("q.csv", "a,b,late,g,t\n0.1,2,x,g3,true\n");
    for files in [vec![plain], vec![packed.clone()], vec![packed, other]] {
        let whole = read(&files).unwrap().table;
        let mut rows = 0;
        for block in in_blocks(&dir, &files, FEW).unwrap() {
            assert_eq!(block, whole.slice(rows..rows + block.rows()));
            rows += block.rows();
        }
        assert_eq!(rows, whole.rows());
    }
    let left: Vec<_> = std::fs::read_dir(dir.0.path()).unwrap().flatten().collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn a_value_that_is_not_finite_is_named_as_ever() {
    let dir = Dir::new();
    let row = |i: u32| format!("{},{}\n", i % 2, if i == 99_000 { "inf" } else { "0.5" });
    let text = "a,b\n".to_string() + &(0..200_000).map(row).collect::<String>();
    let file = dir.write("o.csv", text);
    let expected = read(std::slice::from_ref(&file)).unwrap_err().to_string();
    assert!(expected.contains("line 99002") && expected.contains("`inf`"), "{expected}");
    let found = in_blocks(&dir, std::slice::from_ref(&file), FEW).unwrap_err().to_string();
    assert_eq!(found, expected);
}

/// Words stay in memory, so that there is a bound on them.
#[test]
fn words_beyond_the_bound_are_refused() {
    let dir = Dir::new();
    let row = |i: u32| format!("{},w{i:x}\n", i % 2);
    let text = "a,id\n".to_string() + &(0..150_000).map(row).collect::<String>();
    for file in [dir.write("w.csv", &text), dir.write("w.csv.gz", gzip(&text))] {
        let files = [file];
        let parts = ["column `id`", "different words", "--memory"];
        refused(in_blocks(&dir, &files, FEW), &parts);
        assert_eq!(in_blocks(&dir, &files, 1 << 30).unwrap().len(), 15);
    }
}

/// A line without an end is refused before it is in memory whole.
#[test]
fn endless_rows_are_refused() {
    let dir = Dir::new();
    let long = "x".repeat(33 << 20);
    let fields = "1,".repeat(1_000_001);
    for (what, text, parts) in [
        ("a header", long.clone(), ["t.csv, line 1: ", "longer than 32 MiB"]),
        ("a comment", format!("#{long}\na\n1\n"), ["line 1: ", "longer than 32 MiB"]),
        ("a row", format!("a,b\n1,2\n3,{long}"), ["line 3: ", "longer than 32 MiB"]),
        ("a quote", format!("a,b\n1,2\n3,\"{long}\n\n\n"), ["line ", "a quote that is not closed"]),
        ("names", fields.clone(), ["line 1: ", "more than 1000000 values"]),
        ("values", format!("a,b\n1,2\n{fields}\n"), ["line 3: ", "more than 1000000 values"]),
    ] {
        let file = dir.write("t.csv", text);
        let message = refused(read(std::slice::from_ref(&file)), &parts);
        assert!(message.contains("line ends that are missing"), "{what}: {message}");
        let found = in_blocks(&dir, &[file], FEW).unwrap_err().to_string();
        assert_eq!(found, message, "{what}");
    }
    // The longest that is fine.
    let file = dir.write("t.csv", format!("a,b\n1,{}\n2,x\n", "y".repeat((32 << 20) - 3)));
    assert_eq!(read(&[file]).unwrap().table.rows(), 2);
}

/// Many columns are named, found and refused one by one, not pair by pair: else this takes minutes.
#[test]
fn two_hundred_thousand_columns() {
    let dir = Dir::new();
    let names: Vec<String> = (0..200_000).map(|i| format!("c{i}")).collect();
    let row = vec!["1"; names.len()].join(",");
    let file = dir.write("w.csv", format!("{}\n{row}\n", names.join(",")));
    let files = [file];
    let table = read(&files).unwrap().table;
    assert_eq!((table.rows(), table.names()), (1, &names[..]));
    let format = TextFormat::default();
    let some = read_table(&files, &format, &Wanted::Named(&names[7..150_000])).unwrap();
    assert_eq!(some.table.names(), &names[7..150_000]);
    let mut twice = names.clone();
    twice[199_999] = "c70".into();
    let file = dir.write("t.csv", format!("{}\n{row}\n", twice.join(",")));
    refused(read(&[file]), &["columns 71 and 200000 are both named `c70`"]);
    twice[199_999] = "d".into();
    let more = dir.write("m.csv", format!("{},d\n{row},1\n", names.join(",")));
    refused(read(&[files[0].clone(), more]), &["there is a column `d` that the first file lacks"]);
}
