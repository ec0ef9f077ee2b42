//! Reading that is called off: it ends with nothing but that, wherever it was, and leaves nothing behind.

use crate::parquet::write;
use crate::{Dir, gzip};
use arrow_array::{ArrayRef, Float64Array, StringArray};
use consilience::data::read::{Bound, Event, Reader, TextFormat, Wanted};
use consilience::{Error, Halt, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Some megabytes of text, so that there are several chunks.
fn text() -> String {
    let mut text = "x,g\n".to_string();
    for i in 0..300_000 {
        text += &format!("{}.25,{}\n", i % 1000, ["a", "b", "c"][i % 3]);
    }
    text
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

/// How reading ends that is called off as soon as this comes; the whole reader, and block by block.
fn stopped_at(
    is_moment: fn(&Event) -> bool,
    file: &Path,
    cache: Option<&Path>,
    bound: Option<Bound>,
) {
    let format = TextFormat::default();
    let files = [file.to_path_buf()];
    for whole in [true, false] {
        let halt = Halt::new();
        let watch = |event: &Event| {
            if is_moment(event) {
                halt.call();
            }
        };
        let reader = Reader {
            cache,
            bound,
            large: 0,
            watch: &watch,
            halt: Some(&halt),
            ..Reader::new(&format)
        };
        let read = || -> Result<usize> {
            if whole {
                return Ok(reader.table(&files, &Wanted::All)?.table.rows());
            }
            let source = reader.source(&files, &Wanted::All)?;
            source.blocks(1000).try_fold(0, |sum, block| Ok(sum + block?.rows()))
        };
        let result = read();
        assert!(halt.is_called(), "{}: the moment never came", file.display());
        assert!(matches!(result, Err(Error::Stopped)), "{}: {result:?}", file.display());
    }
}

#[test]
fn every_kind_of_file_can_be_called_off() {
    let (dir, text) = (Dir::new(), text());
    let csv = dir.write("a.csv", &text);
    let gz = dir.write("a.csv.gz", gzip(&text));
    let x: ArrayRef = Arc::new(Float64Array::from_iter_values((0..5000).map(f64::from)));
    let g: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..5000).map(|i| (i % 7).to_string())));
    let parquet = write(&dir, "a.parquet", vec![("x", x), ("g", g)]);
    let at_begin = |event: &Event| matches!(event, Event::Reading(_));
    for file in [&csv, &gz, &parquet] {
        stopped_at(at_begin, file, None, None);
        let scratch = tempfile::tempdir().unwrap();
        stopped_at(at_begin, file, None, Some(Bound { words: 1 << 20, folder: scratch.path() }));
        assert_eq!(entries(scratch.path()), [] as [PathBuf; 0]);
    }
}

#[test]
fn what_is_called_off_leaves_no_draft_and_takes_no_copy_away() {
    let (dir, text) = (Dir::new(), text());
    let cache = tempfile::tempdir().unwrap();
    for (name, content) in [("a.csv", text.clone().into_bytes()), ("b.csv.gz", gzip(&text))] {
        let file = dir.write(name, content);
        let before = entries(cache.path());
        stopped_at(|e| matches!(e, Event::Reading(_)), &file, Some(cache.path()), None);
        stopped_at(|e| matches!(e, Event::Converting(_)), &file, Some(cache.path()), None);
        assert_eq!(entries(cache.path()), before);
        // Once there is a copy, it is neither taken for damaged nor read to its end.
        let format = TextFormat::default();
        let reader = Reader { cache: Some(cache.path()), large: 0, ..Reader::new(&format) };
        let whole = reader.table(std::slice::from_ref(&file), &Wanted::All).unwrap();
        assert_eq!(whole.table.rows(), 300_000);
        let made = entries(cache.path());
        assert_eq!(made.len(), before.len() + 1);
        stopped_at(|e| matches!(e, Event::Reading(_)), &file, Some(cache.path()), None);
        stopped_at(|e| matches!(e, Event::Copy(_)), &file, Some(cache.path()), None);
        assert_eq!(entries(cache.path()), made);
    }
}

#[test]
fn blocks_end_with_it() {
    let dir = Dir::new();
    let x: ArrayRef = Arc::new(Float64Array::from_iter_values((0..100).map(f64::from)));
    let files = [write(&dir, "a.parquet", vec![("x", x)]), dir.write("b.csv", "x\n1\n2\n3\n")];
    for file in files {
        let (format, halt) = (TextFormat::default(), Halt::new());
        let reader = Reader { halt: Some(&halt), ..Reader::new(&format) };
        let source = reader.source(&[file], &Wanted::All).unwrap();
        let mut blocks = source.blocks(1);
        assert_eq!(blocks.next().unwrap().unwrap().rows(), 1);
        halt.call();
        assert!(matches!(blocks.next(), Some(Err(Error::Stopped))));
        assert!(blocks.next().is_none());
    }
}

/// A program that was killed leaves its draft; the next one that writes a copy there removes it, but none that may be
/// somebody's.
#[test]
fn drafts_of_the_dead_go_away() {
    let (dir, cache) = (Dir::new(), tempfile::tempdir().unwrap());
    let draft = |name: &str, age: u64| {
        let path = cache.path().join(name);
        let file = std::fs::File::create(&path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        (path, file)
    };
    let (old, new) = (draft(".dead.parquet.0.tmp", 200_000).0, draft(".new.parquet.0.tmp", 60).0);
    let (other, (held, lock)) =
        (draft("other.tmp", 200_000).0, draft(".held.parquet.3.tmp", 200_000));
    lock.lock().unwrap();
    let format = TextFormat::default();
    let reader = Reader { cache: Some(cache.path()), large: 0, ..Reader::new(&format) };
    reader.table(&[dir.write("a.csv", "x\n1\n")], &Wanted::All).unwrap();
    assert!(!old.exists() && new.exists() && other.exists() && held.exists());
}
