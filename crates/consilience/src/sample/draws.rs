//! Draws as a Parquet file, for programs that look at posteriors.

use super::{Chain, Sample};
use crate::data::Column;
use crate::data::read::{TextFormat, Wanted, read_table};
use crate::math::Matrix;
use crate::{Error, Place, Result};
use arrow_array::{ArrayRef, Float64Array, Int32Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

const CHAIN: &str = "chain";
const DRAW: &str = "draw";

/// Writes a sample's draws: a row each, with the chain's and the draw's number from 0 in the columns
/// `chain` and `draw` and a column for every parameter. A parameter of an earlier one's name, or named
/// `chain` or `draw`, gets `_2`, `_3`, … after its name.
///
/// The file is there whole or not at all: it is written under another name in the same folder and
/// gets its own, which may be taken by an older file, once it is safely on disk.
///
/// # Panics
///
/// If there are not as many names as parameters.
pub fn write_draws(path: &Path, names: &[String], sample: &Sample) -> Result<()> {
    let fits = |c: &Chain| c.thetas.cols() == names.len();
    assert!(sample.chains.iter().all(fits), "not as many names as parameters");
    crate::draft::write_with(path, |file| write(file, names, sample))
}

fn write(file: &mut File, names: &[String], sample: &Sample) -> io::Result<()> {
    let integers = [CHAIN, DRAW].map(|name| Field::new(name, DataType::Int32, false));
    let numbers =
        distinct(names).into_iter().map(|name| Field::new(name, DataType::Float64, false));
    let schema = Arc::new(Schema::new(integers.into_iter().chain(numbers).collect::<Vec<_>>()));
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        // Hardly a value occurs twice.
        .set_dictionary_enabled(false);
    for name in [CHAIN, DRAW] {
        let column = ColumnPath::from(name);
        properties = properties.set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    let mut writer = ArrowWriter::try_new(file, schema.clone(), Some(properties.build()))?;
    for (number, chain) in sample.chains.iter().enumerate() {
        let rows = chain.thetas.rows();
        let too_many = |_| io::Error::other("more than 2^31 chains, or draws in a chain");
        let number = i32::try_from(number).map_err(too_many)?;
        let draws = i32::try_from(rows).map_err(too_many)?;
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from_value(number, rows)),
            Arc::new(Int32Array::from_iter_values(0..draws)),
        ];
        for j in 0..names.len() {
            let values = (0..rows).map(|k| chain.thetas[(k, j)]);
            columns.push(Arc::new(Float64Array::from_iter_values(values)));
        }
        let batch = RecordBatch::try_new(schema.clone(), columns).map_err(io::Error::other)?;
        writer.write(&batch)?;
    }
    writer.close()?;
    Ok(())
}

/// Reads a sample that [`write_draws`] wrote for parameters of these names.
pub fn read_draws(path: &Path, names: &[String]) -> Result<Sample> {
    let table = read_table(&[path.to_path_buf()], &TextFormat::default(), &Wanted::All)?.table;
    let column = |name: &str| match table.column(name)? {
        Column::Number(values) => Ok(values),
        _ => Err(Error::input_at(Place::file(path).column(name), "this is no column of draws")),
    };
    let chains = column(CHAIN)?;
    let columns: Vec<&Vec<f64>> =
        distinct(names).iter().map(|name| column(name)).collect::<Result<_>>()?;
    let mut sample = Sample { chains: Vec::new() };
    for rows in chains.chunk_by(|a, b| a == b) {
        let first: usize = sample.chains.iter().map(|c: &Chain| c.thetas.rows()).sum();
        let value = |k: usize| columns.iter().map(move |c| c[k]);
        let data = (first..first + rows.len()).flat_map(value).collect();
        let thetas = Matrix::from_rows(rows.len(), columns.len(), data);
        let (log_density, energy) = (Vec::new(), Vec::new());
        sample.chains.push(Chain { thetas, log_density, energy, divergences: 0 });
    }
    Ok(sample)
}

/// The names, as they are as far as columns can have them. A name that somebody else has from the
/// start is never given to another.
fn distinct(names: &[String]) -> Vec<String> {
    let reserved: HashSet<&str> = names.iter().map(String::as_str).chain([CHAIN, DRAW]).collect();
    let mut taken = HashSet::from([CHAIN.to_string(), DRAW.to_string()]);
    let mut distinct = Vec::with_capacity(names.len());
    for name in names {
        let mut chosen = name.clone();
        let mut number = 2u64;
        while taken.contains(&chosen) || (chosen != *name && reserved.contains(chosen.as_str())) {
            chosen = format!("{name}_{number}");
            number += 1;
        }
        taken.insert(chosen.clone());
        distinct.push(chosen);
    }
    distinct
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Column;
    use crate::data::read::{TextFormat, Wanted, read_table};
    use crate::math::Matrix;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|t| t.to_string()).collect()
    }

    fn sample(chains: usize, draws: usize, parameters: usize) -> Sample {
        let value = |i: usize| (i as f64).sqrt() / 3.0 - 1e-300;
        let chain = |c: usize| Chain {
            thetas: Matrix::from_rows(
                draws,
                parameters,
                (0..draws * parameters).map(|i| value(i + 1000 * c)).collect(),
            ),
            log_density: vec![0.0; draws],
            energy: vec![],
            divergences: 0,
        };
        Sample { chains: (0..chains).map(chain).collect() }
    }

    fn entries(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn our_own_reader_finds_every_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("draws.parquet");
        let names = texts(&["(Intercept)", "poly(x, 2)1", "a:b.c", "größe", "log σ"]);
        // Over an older file, twice, and past what a killed run left.
        std::fs::write(folder.path().join(".draws.parquet.0.tmp"), "left").unwrap();
        write_draws(&path, &names, &sample(1, 2, 5)).unwrap();
        let sample = sample(3, 40, 5);
        write_draws(&path, &names, &sample).unwrap();
        assert_eq!(entries(folder.path()).len(), 2);

        let table = read_table(&[path], &TextFormat::default(), &Wanted::All).unwrap().table;
        assert_eq!(table.names(), [&texts(&["chain", "draw"])[..], &names].concat());
        let column = |name: &str| match table.column(name).unwrap() {
            Column::Number(values) => values.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(table.rows(), 120);
        assert_eq!(column("chain"), (0..120).map(|i| f64::from(i / 40)).collect::<Vec<_>>());
        assert_eq!(column("draw"), (0..120).map(|i| f64::from(i % 40)).collect::<Vec<_>>());
        for (j, name) in names.iter().enumerate() {
            let expected = (0..120).map(|i| sample.chains[i / 40].thetas[(i % 40, j)]);
            assert_eq!(column(name), expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn names_are_kept_or_made_distinct() {
        let names = texts(&["a", "chain", "a", "a_2", "draw", "a", "chain_2"]);
        let expected = ["a", "chain_3", "a_3", "a_2", "draw_2", "a_4", "chain_2"];
        assert_eq!(distinct(&names), expected);
        assert_eq!(distinct(&texts(&["x", "y"])), ["x", "y"]);
    }

    #[test]
    fn a_failure_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("taken");
        std::fs::create_dir(&taken).unwrap();
        std::fs::write(taken.join("file"), "").unwrap();
        let names = texts(&["x"]);
        let error = write_draws(&taken, &names, &sample(1, 3, 1)).unwrap_err();
        assert!(matches!(&error, Error::Io { path, .. } if *path == taken), "{error}");
        assert_eq!(entries(folder.path()), ["taken"]);
        for nowhere in [folder.path().join("no/folder"), folder.path().join("..")] {
            assert!(write_draws(&nowhere, &names, &sample(1, 3, 1)).is_err());
        }
        assert_eq!(entries(folder.path()), ["taken"]);
    }
}
