//! Converted copies while they are written: what the columns are shows as their rows come.

use super::arrow;
use super::part::{FilePart, Odd};
use super::table::ColumnKind;
use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, Encoding};
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use ::parquet::schema::types::ColumnPath;
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use rayon::prelude::*;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// Rows of a row group, at most: what a thread decodes at a time.
const ROW_GROUP: usize = 1 << 17;

/// Bytes of numbers of a row group, at most: many columns have fewer rows in one.
const GROUP_BYTES: usize = 32 << 20;

/// Rows of a row group of so many columns.
fn row_group(columns: usize) -> usize {
    (GROUP_BYTES / (8 * columns.max(1))).clamp(1 << 8, ROW_GROUP)
}

/// The metadata's key for the number of comments.
pub(super) const COMMENTS: &str = "comments";

/// A copy while it is written.
pub(super) struct Writing {
    out: Option<File>,
    writer: Option<(ArrowWriter<File>, Arc<Schema>)>,
    /// What the columns are by the rows so far.
    pub kinds: Vec<ColumnKind>,
    /// What they are written as, once it is begun.
    written_as: Vec<ColumnKind>,
    /// The rows that stand before the first that are written.
    waiting: Vec<FilePart>,
    /// Whether the kinds are those of all rows.
    known: bool,
    lines: String,
    comments: u64,
    /// Each column's first value that is not finite.
    pub odd: Vec<Option<Odd>>,
}

impl Writing {
    pub fn new(out: File, kinds: Vec<ColumnKind>, lines: String, known: bool) -> Writing {
        let odd = kinds.iter().map(|_| None).collect();
        Writing {
            out: Some(out),
            writer: None,
            kinds,
            written_as: Vec::new(),
            waiting: Vec::new(),
            known,
            lines,
            comments: 0,
            odd,
        }
    }

    /// Writes some rows, unless columns have turned out to be something else than they are written as.
    pub fn add(&mut self, names: &[&str], part: FilePart) -> io::Result<()> {
        self.comments += part.comments;
        for ((kind, odd), part) in self.kinds.iter_mut().zip(&mut self.odd).zip(&part.columns) {
            *kind = ColumnKind::of([*kind, part.kind()].into_iter());
            if odd.is_none() {
                *odd = part.odd().cloned();
            }
        }
        if self.written_as.is_empty() {
            self.waiting.push(part);
            let rows: usize = self.waiting.iter().map(|part| part.numbers.len()).sum();
            if !self.known && rows < row_group(names.len()) {
                return Ok(());
            }
            return self.begin(names);
        }
        self.write(part)
    }

    /// Begins to write, as what the columns are by now.
    fn begin(&mut self, names: &[&str]) -> io::Result<()> {
        // What is not known yet may be anything, and is often nothing to the end.
        let known = |kind: &ColumnKind| {
            if *kind == ColumnKind::Unknown { ColumnKind::Single } else { *kind }
        };
        self.written_as = self.kinds.iter().map(known).collect();
        let types = self.written_as.iter().map(|kind| match kind {
            ColumnKind::Unknown | ColumnKind::Single => DataType::Float32,
            ColumnKind::Number => DataType::Float64,
            ColumnKind::Logical => DataType::Boolean,
            ColumnKind::Text => DataType::Utf8,
        });
        let fields = names.iter().zip(types).map(|(name, kind)| Field::new(*name, kind, true));
        let lines = Field::new(&self.lines, DataType::UInt32, false);
        let schema = Arc::new(Schema::new(fields.chain([lines]).collect::<Vec<_>>()));
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::LZ4_RAW)
            .set_max_row_group_row_count(Some(row_group(names.len())))
            // Numbers hardly occur twice, and those that do are compressed,
            .set_dictionary_enabled(false)
            .set_column_encoding(
                ColumnPath::from(self.lines.as_str()),
                Encoding::DELTA_BINARY_PACKED,
            );
        // but words do.
        for (name, _) in
            names.iter().zip(&self.kinds).filter(|(_, kind)| **kind == ColumnKind::Text)
        {
            let column = ColumnPath::new(vec![name.to_string()]);
            properties = properties.set_column_dictionary_enabled(column, true);
        }
        let out = self.out.take().expect("it is begun once");
        let writer = ArrowWriter::try_new(out, schema.clone(), Some(properties.build()))?;
        self.writer = Some((writer, schema));
        for part in std::mem::take(&mut self.waiting) {
            self.write(part)?;
        }
        Ok(())
    }

    fn write(&mut self, part: FilePart) -> io::Result<()> {
        let Some((writer, schema)) = &mut self.writer else { return Ok(()) };
        let fits = |(kind, written): (&ColumnKind, &ColumnKind)| {
            kind == written || *kind == ColumnKind::Unknown
        };
        if !self.kinds.iter().zip(&self.written_as).all(fits) {
            self.writer = None;
            return Ok(());
        }
        let columns: Option<Vec<ArrayRef>> = part
            .columns
            .into_par_iter()
            .zip(&self.written_as)
            .map(|(part, kind)| part.into_column(*kind).map(arrow::array))
            .collect::<Vec<_>>()
            .into_iter()
            .collect();
        // Words that were read as something else.
        let Some(mut columns) = columns else {
            self.writer = None;
            return Ok(());
        };
        columns.push(Arc::new(UInt32Array::from(part.numbers)));
        let batch = RecordBatch::try_new(schema.clone(), columns).map_err(io::Error::other)?;
        Ok(writer.write(&batch)?)
    }

    /// Ends the file; false if it is not what the columns are.
    pub fn finish(&mut self, names: &[&str]) -> io::Result<bool> {
        if self.written_as.is_empty() {
            self.begin(names)?;
        }
        let Some((mut writer, _)) = self.writer.take() else { return Ok(false) };
        writer.append_key_value_metadata(KeyValue::new(
            COMMENTS.to_string(),
            self.comments.to_string(),
        ));
        writer.close()?;
        Ok(true)
    }
}
