//! Simulated collisions: what they look like, and what the two models make of them.

#![allow(clippy::disallowed_methods)]

use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use consilience::compare::Comparison;
use consilience::data::Column;
use consilience::data::read::{TextFormat, Wanted, column_names, read_table};
use consilience::engine::{Silent, Threads};
use consilience::plan::Plan;
use consilience::shard::{Budget, Shard};
use consilience::simulate::{self, BLOCK, Format, ROW_GROUP, Simulated, higgs};
use consilience::study::{Overrides, StudyFile};
use flate2::Compression;
use flate2::write::GzEncoder;
use parquet::arrow::ArrowWriter;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/higgs.toml")
}

fn simulate(folder: &Path, name: &str, rows: u64, seed: u64) -> PathBuf {
    let path = folder.join(name);
    let mut done = Vec::new();
    let file = File::create(&path).unwrap();
    let format = Format::of(&path).unwrap();
    simulate::write(file, format, Simulated::Higgs, rows, seed, &mut |rows| done.push(rows))
        .unwrap();
    assert_eq!(done.last(), Some(&rows));
    assert_eq!(done.len() as u64, rows.div_ceil(ROW_GROUP as u64));
    path
}

/// All columns, as they were simulated.
fn columns(rows: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut all: Vec<Vec<f64>> = higgs::COLUMNS.map(|_| Vec::new()).into();
    for b in 0..rows.div_ceil(BLOCK) {
        let block = higgs::block(seed, b as u64, rows - b * BLOCK);
        for (all, values) in all.iter_mut().zip(block) {
            all.extend(values.into_iter().map(f64::from));
        }
    }
    all
}

fn compare(data: &Path, shards: usize, threads: usize) -> Comparison {
    let overrides = Overrides {
        data: Some(vec![data.to_str().unwrap().to_string()]),
        shards: Some(shards),
        ..Overrides::default()
    };
    let study = StudyFile::read_with(example(), &overrides).unwrap();
    Plan::new(study, threads, &Silent).unwrap().run(&Silent).unwrap()
}

fn evidences(comparison: &Comparison) -> Vec<(f64, f64)> {
    comparison.models.iter().map(|m| (m.log_evidence.value, m.log_evidence.se.unwrap())).collect()
}

#[test]
fn files_hold_the_simulated_rows_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    // More than a row group, and no whole number of blocks.
    let rows = ROW_GROUP + 1234;
    let expected = columns(rows, 3);
    let named = StudyFile::read(example()).unwrap().study.data.text_format();
    assert_eq!(named.columns.as_deref(), Some(&higgs::COLUMNS.map(String::from)[..]));
    let parquet = simulate(folder.path(), "h.parquet", rows as u64, 3);
    assert_eq!(column_names(&parquet, &TextFormat::default()).unwrap(), higgs::COLUMNS);
    let table = read_table(&[parquet], &named, &Wanted::All).unwrap().table;
    assert_eq!(table.rows(), rows);
    for (name, expected) in higgs::COLUMNS.iter().zip(&expected) {
        let Column::Single(values) = table.column(name).unwrap() else { panic!("{name}: not f32") };
        assert!(values.iter().map(|&v| f64::from(v)).eq(expected.iter().copied()), "{name}");
    }
    // As HIGGS.csv.gz is: no header, so that without names the first row is none either.
    for name in ["h.csv", "h.csv.gz"] {
        let path = simulate(folder.path(), name, 300, 3);
        let error = column_names(&path, &TextFormat::default()).unwrap_err().to_string();
        assert!(error.contains("no header line"), "{error}");
        let table = read_table(&[path], &named, &Wanted::All).unwrap().table;
        assert_eq!((table.rows(), table.names().len()), (300, 29));
        for (name, expected) in higgs::COLUMNS.iter().zip(&expected) {
            let values = table.column(name).unwrap().numbers().unwrap();
            assert!(
                values.iter().map(|&v| f64::from(v as f32)).eq(expected[..300].iter().copied())
            );
        }
    }
}

/// A number as the UCI repository writes it: C's `%.18e`.
fn uci(value: f64) -> String {
    let text = format!("{value:.18e}");
    let (digits, exponent) = text.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// HIGGS.csv.gz as it is: its numbers are 32-bit floats, are kept so, and give the bits that the same
/// numbers give in 64.
#[test]
fn the_file_of_the_uci_repository_is_read_without_loss() {
    assert_eq!(uci(0.869293212890625), "8.692932128906250000e-01");
    let folder = tempfile::tempdir().unwrap();
    let expected = columns(5000, 4);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    for row in 0..5000 {
        let line: Vec<String> = expected.iter().map(|column| uci(column[row])).collect();
        writeln!(gzip, "{}", line.join(",")).unwrap();
    }
    let text = folder.path().join("HIGGS.csv.gz");
    std::fs::write(&text, gzip.finish().unwrap()).unwrap();
    let named = StudyFile::read(example()).unwrap().study.data.text_format();
    let table = read_table(std::slice::from_ref(&text), &named, &Wanted::All).unwrap().table;
    for (name, expected) in higgs::COLUMNS.iter().zip(&expected) {
        let Column::Single(values) = table.column(name).unwrap() else { panic!("{name}: not f32") };
        assert!(values.iter().map(|&v| f64::from(v)).eq(expected.iter().copied()), "{name}");
    }

    let doubles = folder.path().join("doubles.parquet");
    let field = |name: &&str| Field::new(*name, DataType::Float64, false);
    let schema = Arc::new(Schema::new(higgs::COLUMNS.iter().map(field).collect::<Vec<_>>()));
    let arrays = expected.into_iter().map(|c| Arc::new(Float64Array::from(c)) as ArrayRef);
    let batch = RecordBatch::try_new(schema.clone(), arrays.collect()).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(&doubles).unwrap(), schema, None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let wide = read_table(std::slice::from_ref(&doubles), &named, &Wanted::All).unwrap().table;
    assert!(matches!(wide.column("m_bb").unwrap(), Column::Number(_)));
    assert_eq!(evidences(&compare(&text, 3, 2)), evidences(&compare(&doubles, 3, 2)));
}

#[test]
fn a_seed_fixes_the_rows_and_fewer_are_the_first_of_more() {
    let (more, fewer) = (columns(20_000, 1), columns(1_000, 1));
    assert!(more.iter().zip(&fewer).all(|(more, fewer)| more[..1000] == fewer[..]));
    let other = columns(1_000, 2);
    assert!(
        (1..29).filter(|j| !higgs::COLUMNS[*j].ends_with("b-tag")).all(|j| other[j] != fewer[j])
    );
    assert_eq!(
        higgs::block(1, 1, 10)[5],
        more[5][BLOCK..][..10].iter().map(|&v| v as f32).collect::<Vec<_>>()
    );
}

#[test]
fn the_columns_look_as_they_should() {
    let n = 200_000;
    let data = columns(n, 1);
    let column = |name: &str| &data[higgs::COLUMNS.iter().position(|c| *c == name).unwrap()];
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let z = |x: &[f64], expected: f64| {
        let m = mean(x);
        let sd = (x.iter().map(|v| (v - m) * (v - m)).sum::<f64>() / x.len() as f64).sqrt();
        (m - expected) / (sd / (x.len() as f64).sqrt())
    };
    let mut scores = Vec::new();
    for (name, values) in higgs::COLUMNS.iter().zip(&data) {
        assert!(values.iter().all(|v| v.is_finite()), "{name}");
        if name.ends_with("_pt") || *name == "lepton_pT" || name.ends_with("magnitude") {
            assert!(values.iter().all(|v| *v > 0.0));
            // exp of a normal with the mean that makes this 1, and its known square.
            scores.push((name, z(values, 1.0)));
            let squares: Vec<f64> = values.iter().map(|v| v * v).collect();
            scores.push((name, z(&squares, (0.3f64 * 0.3 + 0.4 * 0.4).exp())));
        } else if name.ends_with("_eta") {
            assert!(values.iter().all(|v| v.abs() <= higgs::STEEPEST));
            scores.push((name, z(values, 0.0)));
        } else if name.ends_with("_phi") {
            assert!(values.iter().all(|v| v.abs() <= higgs::WIDEST));
            // Uniform: each tenth holds a tenth.
            for k in 0..10 {
                let low = higgs::WIDEST * (f64::from(k) / 5.0 - 1.0);
                let is_in = |v: &f64| f64::from((low..low + higgs::WIDEST / 5.0).contains(v));
                scores.push((name, z(&values.iter().map(is_in).collect::<Vec<_>>(), 0.1)));
            }
        } else if name.starts_with("m_") {
            assert!(values.iter().all(|v| *v > 0.0), "{name}");
            assert!((0.9..1.1).contains(&mean(values)), "{name}: {}", mean(values));
        }
    }
    for (jet, tags) in higgs::TAGS.iter().enumerate() {
        let values = column(&format!("jet_{}_b-tag", jet + 1));
        let share = if jet < 2 { [0.44, 0.23, 0.33] } else { [0.65, 0.2, 0.15] };
        for (tag, share) in tags.iter().zip(share) {
            let is_it = |v: &f64| f64::from(*v == f64::from(*tag as f32));
            scores.push((&"b-tag", z(&values.iter().map(is_it).collect::<Vec<_>>(), share)));
        }
    }
    // The label given the masses: what is left of it has mean 0, also along each of them.
    let masses: Vec<&Vec<f64>> = data[22..].iter().collect();
    let rest: Vec<f64> = (0..n)
        .map(|i| {
            let logit: f64 = higgs::TRUTH[0]
                + masses.iter().zip(&higgs::TRUTH[1..]).map(|(m, g)| g * m[i]).sum::<f64>();
            data[0][i] - 1.0 / (1.0 + (-logit).exp())
        })
        .collect();
    scores.push((&"label", z(&rest, 0.0)));
    for mass in masses {
        let along: Vec<f64> = rest.iter().zip(mass).map(|(r, m)| r * m).collect();
        scores.push((&"label", z(&along, 0.0)));
    }
    for (name, z) in &scores {
        assert!(z.abs() < 4.5, "{name}: z = {z}");
    }
    let sd = (scores.iter().map(|(_, z)| z * z).sum::<f64>() / scores.len() as f64).sqrt();
    assert!((0.75..1.25).contains(&sd), "sd of {} z-scores: {sd}", scores.len());

    // A hard collision has all momenta large: the logarithms correlate by 0.09/0.25.
    let correlation = |a: &[f64], b: &[f64]| {
        let (a, b): (Vec<f64>, Vec<f64>) =
            (a.iter().map(|v| v.ln()).collect(), b.iter().map(|v| v.ln()).collect());
        let (ma, mb) = (mean(&a), mean(&b));
        let cross = |x: &[f64], mx: f64, y: &[f64], my: f64| {
            x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum::<f64>()
        };
        cross(&a, ma, &b, mb) / (cross(&a, ma, &a, ma) * cross(&b, mb, &b, mb)).sqrt()
    };
    let r = correlation(column("jet_1_pt"), column("jet_4_pt"));
    assert!((r - 0.36).abs() < 4.0 / (n as f64).sqrt(), "{r}");
    assert!(correlation(column("jet_3_pt"), column("m_jj")) > 0.3);
}

#[test]
fn the_true_model_wins_however_the_rows_are_split_and_worked_on() {
    let folder = tempfile::tempdir().unwrap();
    let data = simulate(folder.path(), "h.parquet", 20_000, 1);
    let whole = compare(&data, 1, 2);
    let split = compare(&data, 20, 2);
    assert_eq!(evidences(&split), evidences(&compare(&data, 20, 1)));
    for comparison in [&whole, &split] {
        assert!(comparison.models[1].probability > 0.999, "{:?}", evidences(comparison));
        assert!(comparison.is_reliable());
    }
    for ((a, se_a), (b, se_b)) in evidences(&whole).into_iter().zip(evidences(&split)) {
        assert!(se_a <= 0.01 && se_b <= 0.01);
        assert!((a - b).abs() < 4.0 * se_a.hypot(se_b), "{a} and {b}");
    }
}

/// Likelihoods that find no room are built for every question, and nobody can tell.
#[test]
fn a_shortage_of_memory_changes_no_bit() {
    let folder = tempfile::tempdir().unwrap();
    let data = simulate(folder.path(), "h.parquet", 10_000, 5);
    let overrides = Overrides {
        data: Some(vec![data.to_str().unwrap().to_string()]),
        shards: Some(4),
        ..Overrides::default()
    };
    let plan = Plan::new(StudyFile::read_with(example(), &overrides).unwrap(), 2, &Silent).unwrap();
    let all = plan.run(&Silent).unwrap();
    for (kept, lent) in [(0, usize::MAX), (600_000, usize::MAX), (0, 0)] {
        let budget = Arc::new(Budget::new(kept, lent));
        let shard =
            |i| Shard::new(i, plan.engine().shard(i).data().clone()).with_budget(budget.clone());
        let engine = Threads::new((0..4).map(shard).collect(), 2).unwrap();
        assert_eq!(evidences(&plan.run_on(&engine, &Silent).unwrap()), evidences(&all));
    }
}
