//! Converted copies: nobody can tell from the data whether one was used, and no copy is used that is
//! not what it should be.

use crate::random::{Dice, random_text};
use consilience::data::Table;
use consilience::data::read::{Event, ReadTable, Reader, TextFormat, Wanted};
use consilience::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// What happened to copies while files were read: `c`onverted, `u`sed, `n`one possible.
fn watched<T>(
    format: &TextFormat,
    cache: Option<&Path>,
    read: impl FnOnce(&Reader) -> Result<T>,
) -> (Result<T>, String) {
    let events = Mutex::new(String::new());
    let watch = |event: &Event| match event {
        Event::Reading(_) => {}
        Event::Converting(_) => events.lock().unwrap().push('c'),
        Event::Copy(_) => events.lock().unwrap().push('u'),
        Event::NoCopy(..) => events.lock().unwrap().push('n'),
    };
    let result = read(&Reader { cache, large: 0, watch: &watch, ..Reader::new(format) });
    (result, events.into_inner().unwrap())
}

fn table(files: &[PathBuf], cache: Option<&Path>) -> (Result<ReadTable>, String) {
    watched(&TextFormat::default(), cache, |reader| reader.table(files, &Wanted::All))
}

/// As text, since NaN is not equal to itself.
fn spelled(read: &Result<ReadTable>) -> String {
    read.as_ref().map_or_else(Error::to_string, |read| format!("{read:?}"))
}

fn copies(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Reads without copies, with new ones, with those that are there, and in blocks from them.
fn check(files: &[PathBuf]) -> (Result<ReadTable>, String) {
    let cache = tempfile::tempdir().unwrap();
    let (plain, none) = table(files, None);
    assert_eq!(none, "");
    let (first, made) = table(files, Some(cache.path()));
    assert_eq!(spelled(&first), spelled(&plain));
    let (second, used) = table(files, Some(cache.path()));
    assert_eq!(spelled(&second), spelled(&plain));
    if plain.is_ok() {
        // What only another file makes a column of text is not copied at first.
        assert!(used == made.replace('c', "u") || files.len() > 1, "{made}, {used}");
        assert!(made.starts_with('c') && used.contains('u'), "{made}, {used}");
    }
    let in_blocks = |reader: &Reader| {
        let source = reader.source(files, &Wanted::All)?;
        let blocks = source.blocks(3).collect::<Result<Vec<Table>>>()?;
        Ok((source.rows(), source.comments(), blocks))
    };
    match (watched(&TextFormat::default(), Some(cache.path()), in_blocks).0, &plain) {
        (Err(error), plain) => assert_eq!(error.to_string(), spelled(plain)),
        (Ok((rows, comments, blocks)), Ok(plain)) => {
            assert_eq!((rows, comments), (plain.table.rows() as u64, plain.comments));
            let mut from = 0;
            for block in blocks {
                let expected = plain.table.slice(from..from + block.rows());
                assert_eq!(format!("{block:?}"), format!("{expected:?}"));
                from += block.rows();
            }
            assert_eq!(from, plain.table.rows());
        }
        (Ok(_), Err(error)) => panic!("{error}"),
    }
    (plain, made)
}

#[test]
fn tables_and_errors_are_the_same_with_copies_and_without() {
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> =
        ["a.csv", "b.csv"].iter().map(|name| folder.path().join(name)).collect();
    let mut dice = Dice(7);
    let mut converted = 0;
    for _ in 0..150 {
        for file in &files {
            std::fs::write(file, random_text(&mut dice)).unwrap();
        }
        converted += usize::from(check(&files[..1]).0.is_ok());
        drop(check(&files));
    }
    assert!(converted > 60, "{converted}");
}

/// Copies are begun before all rows have shown what the columns are.
#[test]
fn columns_that_turn_into_something_else_late_are_copied_as_what_they_are() {
    use std::fmt::Write;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    let mut text = "single,double,word,logical,late,never,line\n# a comment\n".to_string();
    for i in 0..300_000 {
        let late = i > 290_000;
        let double = if late { "0.1" } else { "2" };
        let word = if late { "x" } else { "007" };
        let value = if late { "5" } else { "" };
        writeln!(text, "{i},{double},{word},{},{value},NA,é{}", late, i % 100).unwrap();
    }
    std::fs::write(&file, &text).unwrap();
    let (read, made) = check(&[file]);
    let table = read.unwrap().table;
    assert_eq!(made, "c");
    let kind = |name: &str| format!("{:?}", table.column(name).unwrap())[..6].to_string();
    let kinds = table.names().iter().map(|name| kind(name)).collect::<Vec<_>>();
    assert_eq!(kinds, ["Single", "Number", "Text {", "Logica", "Single", "Number", "Text {"]);
}

#[test]
fn a_copy_is_good_for_the_same_bytes_read_the_same_way() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = folder.path().join("t.csv");
    let files = std::slice::from_ref(&file);
    let read = |format: &TextFormat, wanted: &Wanted| {
        let (table, events) =
            watched(format, Some(cache.path()), |reader| reader.table(files, wanted));
        (table.unwrap().table, events)
    };
    let usual = TextFormat::default();
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    write("x;y,z\n1;2,3\n");
    assert_eq!(read(&usual, &Wanted::All).1, "c");
    assert_eq!(read(&usual, &Wanted::All).1, "u");
    let commas = TextFormat { delimiter: Some(';'), ..TextFormat::default() };
    assert_eq!(read(&commas, &Wanted::All).0.names(), ["x", "y,z"]);
    let (one, events) = read(&usual, &Wanted::Named(&["z".to_string()]));
    assert_eq!((one.names(), events.as_str()), (&["z".to_string()][..], "c"));
    assert_eq!(copies(cache.path()).len(), 3);
    // Nothing but the bytes counts: not the time of the last change.
    write("x;y,z\n1;2,3\n");
    assert_eq!(read(&usual, &Wanted::All).1, "u");
    write("x;y,z\n1;2,4\n");
    let (table, events) = read(&usual, &Wanted::All);
    assert_eq!((spelled_column(&table, "z").as_str(), events.as_str()), ("Single([4.0])", "c"));
    // The copies of what is no longer there are gone too.
    assert_eq!(copies(cache.path()).len(), 1);
}

fn spelled_column(table: &Table, name: &str) -> String {
    format!("{:?}", table.column(name).unwrap())
}

#[test]
fn a_damaged_copy_is_made_anew() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = folder.path().join("t.csv");
    std::fs::write(&file, "x,y\n1,a\n0.1,b\n,a\n").unwrap();
    let files = [file];
    let (plain, _) = table(&files, None);
    assert_eq!(table(&files, Some(cache.path())).1, "c");
    let path = copies(cache.path()).remove(0);
    let whole = std::fs::read(&path).unwrap();
    let mut damaged: Vec<Vec<u8>> = vec![Vec::new(), whole[..whole.len() / 2].to_vec()];
    damaged.push([&whole[..], &whole[..1]].concat());
    for at in (0..whole.len()).step_by(41) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        damaged.push(bytes);
    }
    for bytes in damaged {
        std::fs::write(&path, bytes).unwrap();
        let (read, events) = table(&files, Some(cache.path()));
        assert_eq!((spelled(&read), events.as_str()), (spelled(&plain), "c"));
        assert_eq!(copies(cache.path()), [path.as_path()]);
        assert_eq!(std::fs::read(&path).unwrap(), whole);
    }
}

#[test]
fn without_a_place_for_copies_files_are_read_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, "x,y\n1,a\n2,b\n").unwrap();
    let files = [file.clone()];
    // A folder cannot be in a file.
    let (read, events) = table(&files, Some(&file.join("cache")));
    assert_eq!((spelled(&read), events.as_str()), (spelled(&table(&files, None).0), "cn"));
}
