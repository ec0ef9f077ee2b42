//! Text that is read in pieces is the text read as a whole, whatever the pieces.

use super::csv::{PieceSizes, decode_in_chunks};
use super::files::{FileFormat, format_of};
use super::part::{ColumnPart, FilePart};
use super::part_tests::is_text;
use super::read::TextFormat;
use flate2::Compression;
use flate2::write::GzEncoder;
use random::{Dice, random_text};
use std::io::Write;
use std::path::Path;

/// The tests of converted copies have the same texts.
#[path = "../../tests/read/random.rs"]
mod random;

/// All columns, or the error, spelled.
fn read(file: &Path, format: &TextFormat, sizes: PieceSizes) -> String {
    let Ok(FileFormat::Text(text)) = format_of(file) else { panic!("no text") };
    let select = |names: &[String]| Ok((0..names.len()).collect());
    let mut pieces = Vec::new();
    let mut read = |as_text: &[bool]| -> crate::Result<FilePart> {
        pieces.clear();
        decode_in_chunks(file, text, (format, None), &select, as_text, sizes, &mut |piece| {
            pieces.push(piece);
            Ok(())
        })?;
        Ok(FilePart::join(std::mem::take(&mut pieces)))
    };
    // As many columns as any file here has; the select above does not mind fewer.
    let first = match read(&[false; 4]) {
        Ok(part) => part,
        Err(error) => return error.to_string(),
    };
    let odd = |part: &ColumnPart| part.odd().map(|odd| (odd.line, odd.value.clone()));
    let texts: Vec<bool> = first.columns.iter().map(|p| is_text([p].into_iter())).collect();
    let odds: Vec<_> =
        first.columns.iter().zip(&texts).map(|(p, t)| odd(p).filter(|_| !t)).collect();
    let (numbers, comments) = (first.numbers.clone(), first.comments);
    let again = read(&texts).expect("it was read before");
    let columns: Vec<_> = first
        .columns
        .into_iter()
        .zip(again.columns)
        .map(|(first, again)| {
            // Where the first reading is good for text already, so it must be.
            let text =
                first.can_join_text().then(|| format!("{:?}", ColumnPart::join(vec![first])));
            let column = format!("{:?}", ColumnPart::join(vec![again]));
            assert!(text.is_none_or(|text| text == column), "{column}");
            column
        })
        .collect();
    format!("{numbers:?} {comments} {odds:?} {columns:#?}")
}

#[test]
fn pieces_of_any_size_make_the_same_table_or_error() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, gzip) = (folder.path().join("t.csv"), folder.path().join("t.csv.gz"));
    let mut dice = Dice(1);
    let (mut errors, mut clashes) = (0, 0);
    for round in 0..1000 {
        let mut text = random_text(&mut dice);
        let format = match dice.below(4) {
            0 => {
                TextFormat { columns: Some(vec!["a".into(), "b".into()]), ..TextFormat::default() }
            }
            3 => {
                text.iter_mut().filter(|b| **b == b',').for_each(|b| *b = b" \t"[dice.below(2)]);
                TextFormat { na: vec!["7".into()], ..TextFormat::default() }
            }
            1 => TextFormat { delimiter: Some(','), comment: None, ..TextFormat::default() },
            _ => TextFormat::default(),
        };
        std::fs::write(&plain, &text).unwrap();
        let whole = read(&plain, &format, PieceSizes { chunk: 1 << 20, batch: 1 });
        errors += usize::from(!whole.starts_with('['));
        clashes += usize::from(whole.contains("Text"));
        for (chunk, batch) in [(1, 1), (1, 3), (2, 1000), (7, 2), (16, 1), (61, 4), (200, 2)] {
            let pieces = read(&plain, &format, PieceSizes { chunk, batch });
            assert_eq!(
                pieces,
                whole,
                "round {round}, {chunk} bytes: {}",
                String::from_utf8_lossy(&text)
            );
        }
        // A file that breaks off, which shows after all that is whole before.
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&text).unwrap();
        let mut zipped = encoder.finish().unwrap();
        std::fs::write(&gzip, &zipped).unwrap();
        let whole = read(&gzip, &format, PieceSizes { chunk: 1 << 20, batch: 1 });
        assert_eq!(read(&gzip, &format, PieceSizes { chunk: 9, batch: 2 }), whole);
        zipped.truncate(zipped.len() - 1 - dice.below(zipped.len() / 2));
        std::fs::write(&gzip, &zipped).unwrap();
        let whole = read(&gzip, &format, PieceSizes { chunk: 1 << 20, batch: 1 });
        assert!(!whole.starts_with('['), "{whole}");
        assert_eq!(read(&gzip, &format, PieceSizes { chunk: 9, batch: 2 }), whole);
    }
    assert!(errors > 100 && clashes > 100, "{errors} errors, {clashes} with text");
}
