//! Data to try things on, of any size and always the same for the same seed.

pub mod alleles;
pub mod higgs;
pub mod rjmcmc;
pub mod toy;

use crate::Result;
use crate::{Error, Place};
use arrow_array::{ArrayRef, Float32Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use flate2::Compression as Level;
use flate2::write::GzEncoder;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use rayon::prelude::*;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

/// What can be simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Simulated {
    /// Collisions ([`higgs`]).
    Higgs,
    /// Allele doses at so many loci, and a trait ([`alleles`]).
    Alleles(usize),
    /// Gaussian regression on covariates that hardly differ ([`toy`]).
    Toy,
    /// Logistic regression whose third feature is a matter of taste, of so many rows ([`rjmcmc`]): the second half of them
    /// differs from the first.
    Rjmcmc(u64),
}

impl Simulated {
    /// The columns' names.
    pub fn names(self) -> Vec<String> {
        match self {
            Simulated::Higgs => higgs::COLUMNS.map(String::from).into(),
            Simulated::Alleles(loci) => alleles::names(loci),
            Simulated::Toy => toy::names(),
            Simulated::Rjmcmc(_) => rjmcmc::names(),
        }
    }

    /// Whether text files begin with the names: the HIGGS data set's do not.
    fn has_header(self) -> bool {
        self != Simulated::Higgs
    }

    /// Whether a column has few distinct values.
    fn repeats(self, name: &str) -> bool {
        match self {
            Simulated::Higgs => name == "label" || name.ends_with("b-tag"),
            Simulated::Alleles(_) => name != "y",
            Simulated::Toy => false,
            Simulated::Rjmcmc(_) => name == "y",
        }
    }

    /// The columns of one block of rows.
    fn block(self, seed: u64, block: u64, rows: usize) -> Vec<Vec<f32>> {
        match self {
            Simulated::Higgs => higgs::block(seed, block, rows),
            Simulated::Alleles(loci) => alleles::block(seed, block, rows, loci),
            Simulated::Toy => toy::block(seed, block, rows),
            Simulated::Rjmcmc(of) => rjmcmc::block(seed, block, rows, of),
        }
    }
}

/// How simulated data are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Parquet with the columns' names and types.
    Parquet,
    /// Text with commas; the collisions without a header line, as the HIGGS data set comes.
    Csv,
    /// The same, compressed.
    CsvGz,
}

impl Format {
    /// The format that a file's ending stands for.
    pub fn of(file: &Path) -> Result<Format> {
        let name = file.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        [
            (".parquet", Format::Parquet),
            (".pq", Format::Parquet),
            (".csv", Format::Csv),
            (".csv.gz", Format::CsvGz),
        ]
        .into_iter()
        .find_map(|(ending, format)| name.ends_with(ending).then_some(format))
        .ok_or_else(|| {
            let message = "the ending is none of .parquet .pq .csv .csv.gz; name such a file";
            Error::input_at(Place::file(file), message)
        })
    }
}

/// Blocks that are made before they are written: one row group of a Parquet file. Memory is bounded by
/// this, whatever the number of rows.
const GROUP: usize = 8;

/// Rows that come from one random stream: any of them can be made without those before.
pub const BLOCK: usize = 1 << 14;

/// The rows of a full row group.
pub const ROW_GROUP: usize = GROUP * BLOCK;

/// Writes so many rows of simulated data, calling `written` with the number of rows that are done after
/// every [`ROW_GROUP`] of them.
pub fn write(
    out: impl Write + Send,
    format: Format,
    what: Simulated,
    rows: u64,
    seed: u64,
    written: &mut dyn FnMut(u64),
) -> io::Result<()> {
    match format {
        Format::Parquet => {
            let mut sink = parquet_sink(out, what)?;
            let schema = sink.schema.clone();
            groups(what, rows, seed, written, &mut |blocks| {
                for block in blocks {
                    let columns = block.into_iter();
                    let columns = columns.map(|c| Arc::new(Float32Array::from(c)) as ArrayRef);
                    let batch = RecordBatch::try_new(schema.clone(), columns.collect())
                        .map_err(io::Error::other)?;
                    sink.writer.write(&batch)?;
                }
                sink.writer.flush()?;
                Ok(())
            })?;
            sink.writer.close()?;
            Ok(())
        }
        Format::Csv => {
            let mut out = BufWriter::with_capacity(1 << 20, out);
            write_text(&mut out, what, rows, seed, written)?;
            out.flush()
        }
        Format::CsvGz => {
            let out = BufWriter::with_capacity(1 << 20, out);
            let mut out = GzEncoder::new(out, Level::fast());
            write_text(&mut out, what, rows, seed, written)?;
            out.finish()?.flush()
        }
    }
}

struct ParquetSink<W: Write + Send> {
    writer: ArrowWriter<W>,
    schema: Arc<Schema>,
}

fn parquet_sink<W: Write + Send>(out: W, what: Simulated) -> io::Result<ParquetSink<W>> {
    let names = what.names();
    let field = |name: &String| Field::new(name, DataType::Float32, false);
    let schema = Arc::new(Schema::new(names.iter().map(field).collect::<Vec<_>>()));
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP))
        // Hardly a value occurs twice,
        .set_dictionary_enabled(false);
    // but for these.
    for name in names.iter().filter(|name| what.repeats(name)) {
        properties =
            properties.set_column_dictionary_enabled(ColumnPath::from(name.as_str()), true);
    }
    let writer = ArrowWriter::try_new(out, schema.clone(), Some(properties.build()))?;
    Ok(ParquetSink { writer, schema })
}

fn write_text(
    out: &mut dyn Write,
    what: Simulated,
    rows: u64,
    seed: u64,
    written: &mut dyn FnMut(u64),
) -> io::Result<()> {
    if what.has_header() {
        writeln!(out, "{}", what.names().join(","))?;
    }
    groups(what, rows, seed, written, &mut |blocks| {
        let texts: Vec<String> = blocks.into_par_iter().map(|block| text(&block)).collect();
        texts.iter().try_for_each(|text| out.write_all(text.as_bytes()))
    })
}

/// A block as lines of text, every number with as many digits as it takes to get the same one back.
fn text(block: &[Vec<f32>]) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for row in 0..block[0].len() {
        for (j, column) in block.iter().enumerate() {
            let end = if j + 1 < block.len() { ',' } else { '\n' };
            write!(text, "{}{end}", column[row]).expect("a text takes everything");
        }
    }
    text
}

/// Makes the rows, a group of blocks at a time on all threads, and hands them over in order.
fn groups(
    what: Simulated,
    rows: u64,
    seed: u64,
    written: &mut dyn FnMut(u64),
    take: &mut dyn FnMut(Vec<Vec<Vec<f32>>>) -> io::Result<()>,
) -> io::Result<()> {
    let size = BLOCK as u64;
    let blocks = rows.div_ceil(size);
    for first in (0..blocks).step_by(GROUP) {
        let last = blocks.min(first + GROUP as u64);
        let make = |b: u64| what.block(seed, b, (rows - b * size).min(size) as usize);
        take((first..last).into_par_iter().map(make).collect())?;
        written(rows.min(last * size));
    }
    Ok(())
}
