//! A shard's rows as a Parquet file that remembers where each row came from.

use super::arrow;
use super::read::{Reader, TextFormat, Wanted};
use super::shard_data::ShardData;
use super::table::{Column, Origin, Table};
use crate::{Error, Place, Result};
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The columns that say where a row came from, after the data's own: the file's number and the line
/// or row in it.
const ORIGIN: [&str; 2] = ["origin_file", "origin_row"];

/// Rows that are written in one go.
const BATCH: usize = 1 << 16;

/// Writes rows without missing values. The file is there whole or not at all.
pub(crate) fn write_shard(path: &Path, data: &ShardData) -> Result<()> {
    crate::draft::write_with(path, |file| write(file, data))
}

/// Rows without missing values as bytes, from which [`shard_of_bytes`] makes the same rows, on another machine too.
pub fn shard_to_bytes(data: &ShardData) -> Result<Vec<u8>> {
    let table = data.batch(0..0)?;
    let files = serde_json::to_vec(&*table.origin().files).map_err(|e| in_memory(e.into()))?;
    let mut bytes = (files.len() as u64).to_le_bytes().to_vec();
    bytes.extend(files);
    write(&mut bytes, data).map_err(in_memory)?;
    Ok(bytes)
}

/// The rows that [`shard_to_bytes`] wrote.
pub fn shard_of_bytes(bytes: &[u8]) -> Result<ShardData> {
    let cut = || in_memory(io::Error::other("the bytes of a shard are cut short"));
    let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| cut())?;
    let (files, rows) = rest.split_at_checked(length).ok_or_else(cut)?;
    let files: Vec<(PathBuf, bool)> =
        serde_json::from_slice(files).map_err(|e| in_memory(e.into()))?;
    // The reader of Parquet files takes files.
    let mut file = tempfile::Builder::new().suffix(".parquet").tempfile().map_err(in_memory)?;
    file.write_all(rows).map_err(in_memory)?;
    let mut all = Table::default();
    read_shard(file.path(), &Arc::new(files), &mut |block| {
        all.append(block);
        Ok(())
    })?;
    Ok(ShardData::from(all))
}

fn in_memory(source: io::Error) -> Error {
    Error::Io { path: "a shard's rows".into(), source }
}

fn write<W: Write + Send>(file: W, data: &ShardData) -> io::Result<()> {
    let mut writer: Option<ArrowWriter<W>> = None;
    let mut file = Some(file);
    for rows in data.batches(BATCH) {
        let batch = batch(&*data.batch(rows).map_err(io::Error::other)?)?;
        let writer = match &mut writer {
            Some(writer) => writer,
            None => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(ZstdLevel::default()))
                    .build();
                let file = file.take().expect("there is one writer");
                let new = ArrowWriter::try_new(file, batch.schema(), Some(properties))?;
                writer.insert(new)
            }
        };
        writer.write(&batch)?;
    }
    if let Some(writer) = writer {
        writer.close()?;
    }
    Ok(())
}

fn batch(table: &Table) -> io::Result<RecordBatch> {
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (name, column) in table.names().iter().zip(table.columns()) {
        let array = arrow::array(column.clone());
        fields.push(Field::new(name, array.data_type().clone(), false));
        arrays.push(array);
    }
    let rows = &table.origin().rows;
    let numbers = [rows.iter().map(|r| r.0).collect(), rows.iter().map(|r| r.1).collect()];
    for (name, numbers) in origin_names(table.names()).into_iter().zip(numbers) {
        fields.push(Field::new(name, DataType::UInt32, false));
        let numbers: Vec<u32> = numbers;
        arrays.push(Arc::new(UInt32Array::from(numbers)));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(io::Error::other)
}

/// The origin's names, made longer until the data have no such columns.
fn origin_names(names: &[String]) -> [String; 2] {
    ORIGIN.map(|name| {
        let mut name = name.to_string();
        while names.contains(&name) {
            name.push('_');
        }
        name
    })
}

/// Reads what [`write_shard`] wrote, a block of rows after the other: rows that came from these files, and
/// whether their rows are counted in lines.
pub(crate) fn read_shard(
    path: &Path,
    files: &Arc<Vec<(PathBuf, bool)>>,
    take: &mut dyn FnMut(Table) -> Result<()>,
) -> Result<()> {
    let format = TextFormat::default();
    let source = Reader::new(&format).source(&[path.to_path_buf()], &Wanted::All)?;
    source.blocks(BATCH).try_for_each(|block| take(with_origin(block?, path, files)?))
}

/// A block with its last two columns as what they stand for.
fn with_origin(table: Table, path: &Path, files: &Arc<Vec<(PathBuf, bool)>>) -> Result<Table> {
    let broken = |what: &str| {
        Error::input_at(
            Place::file(path),
            format!("this is no shard of a run: {what}; make the run again with `split`"),
        )
    };
    let Some(own) = table.names().len().checked_sub(2) else {
        return Err(broken("it has no columns"));
    };
    let number = |column: &Column| match column {
        Column::Number(values) => Ok(values.iter().map(|&v| v as u32).collect::<Vec<u32>>()),
        _ => Err(broken("its last two columns do not say where rows came from")),
    };
    let (file, row) = (number(&table.columns()[own])?, number(&table.columns()[own + 1])?);
    if file.iter().any(|&k| k as usize >= files.len()) {
        return Err(broken("its rows come from a file that the run does not know"));
    }
    let origin = Origin { files: files.clone(), rows: file.into_iter().zip(row).collect() };
    let columns = table.into_columns().into_iter().take(own).collect();
    Ok(Table::new(columns, origin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_comes_back_whole() {
        let text = Column::Text {
            codes: vec![0, 1, 0],
            levels: Arc::new(vec!["12".into(), "größe, \"x\"".into()]),
        };
        let files = Arc::new(vec![(PathBuf::from("a.csv"), true), ("b.parquet".into(), false)]);
        let origin = Origin { files: files.clone(), rows: vec![(0, 2), (1, 1), (0, 7)] };
        let columns = vec![
            ("origin_file".to_string(), Column::Number(vec![-0.0, 1e-300, f64::MAX])),
            ("f".to_string(), Column::Single(vec![0.1, -0.0, f32::MIN_POSITIVE])),
            ("t".to_string(), text),
            ("l".to_string(), Column::Logical(vec![1, 0, 1])),
        ];
        let table = Table::new(columns, origin);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.parquet");
        write_shard(&path, &table.clone().into()).unwrap();
        let mut read = Table::default();
        read_shard(&path, &files, &mut |block| {
            read.append(block);
            Ok(())
        })
        .unwrap();
        assert_eq!(read, table);
        let bytes = shard_to_bytes(&table.clone().into()).unwrap();
        assert_eq!(*shard_of_bytes(&bytes).unwrap().table().unwrap(), table);
        assert!(shard_of_bytes(&bytes[..40]).is_err() && shard_of_bytes(&bytes[..7]).is_err());
        let Column::Number(bits) = read.column("origin_file").unwrap() else { panic!() };
        assert!(bits[0].is_sign_negative());
        let none = Arc::new(Vec::new());
        let error = read_shard(&path, &none, &mut |_| Ok(())).unwrap_err().to_string();
        assert!(error.contains("0.parquet") && error.contains("does not know"), "{error}");
    }
}
