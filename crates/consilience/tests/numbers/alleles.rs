//! Simulated allele doses: what they look like, and that sparse regression finds what moves the trait.

#![allow(clippy::disallowed_methods)]

use consilience::data::read::{TextFormat, Wanted, read_table};
use consilience::engine::Silent;
use consilience::plan::Plan;
use consilience::simulate::{self, BLOCK, Format, Simulated, alleles};
use consilience::study::{Overrides, StudyFile};
use std::fs::File;
use std::path::Path;

const LOCI: usize = 30;

/// All columns, as they were simulated.
fn columns(rows: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut all = vec![Vec::new(); LOCI + 1];
    for b in 0..rows.div_ceil(BLOCK) {
        let block = alleles::block(seed, b as u64, rows - b * BLOCK, LOCI);
        for (all, values) in all.iter_mut().zip(block) {
            all.extend(values.into_iter().map(f64::from));
        }
    }
    all
}

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

fn covariance(x: &[f64], y: &[f64]) -> f64 {
    let (mx, my) = (mean(x), mean(y));
    x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum::<f64>() / x.len() as f64
}

#[test]
fn files_hold_the_simulated_rows_with_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let expected = columns(BLOCK + 77, 3);
    for name in ["a.parquet", "a.csv", "a.csv.gz"] {
        let path = folder.path().join(name);
        let (file, format) = (File::create(&path).unwrap(), Format::of(&path).unwrap());
        let rows = expected[0].len() as u64;
        simulate::write(file, format, Simulated::Alleles(LOCI), rows, 3, &mut |_| ()).unwrap();
        let table = read_table(&[path], &TextFormat::default(), &Wanted::All).unwrap().table;
        assert_eq!(table.names(), alleles::names(LOCI));
        for (name, expected) in table.names().iter().zip(&expected) {
            let values = table.column(name).unwrap().numbers().unwrap();
            let single = values.iter().map(|&v| f64::from(v as f32));
            assert!(single.eq(expected.iter().copied()), "{name}");
        }
    }
    // Fewer rows are the first of more.
    let few = columns(1000, 3);
    assert!(few.iter().zip(&expected).all(|(few, more)| few[..] == more[..1000]));
}

#[test]
fn doses_have_their_frequencies_linkage_and_effects() {
    let n = 100_000;
    let data = columns(n, 1);
    let root = (n as f64).sqrt();
    let mut scores = Vec::new();
    for j in 0..LOCI {
        let f = alleles::frequency(j);
        assert!((0.05..=0.5).contains(&f));
        let doses = &data[j + 1];
        assert!(doses.iter().all(|d| [0.0, 1.0, 2.0].contains(d)));
        // Two haplotypes that know nothing of each other: binomial.
        scores.push(root * (mean(doses) - 2.0 * f) / (2.0 * f * (1.0 - f)).sqrt());
        let both = doses.iter().filter(|d| **d == 2.0).count() as f64 / n as f64;
        scores.push(root * (both - f * f) / (f * f * (1.0 - f * f)).sqrt());
    }
    // What the effects leave of the outcome is noise of variance 1 that no dose explains.
    let rest: Vec<f64> = (0..n)
        .map(|i| {
            let effects = (0..LOCI).map(|j| alleles::effect(j) * data[j + 1][i]).sum::<f64>();
            data[0][i] - alleles::MEAN - effects
        })
        .collect();
    scores.push(root * mean(&rest));
    scores.push(root * (covariance(&rest, &rest) - 1.0) / 2f64.sqrt());
    for doses in &data[1..] {
        scores.push(root * covariance(&rest, doses) / covariance(doses, doses).sqrt());
    }
    assert!(scores.iter().all(|z| z.abs() < 4.5), "{scores:?}");
    let sd = (scores.iter().map(|z| z * z).sum::<f64>() / scores.len() as f64).sqrt();
    assert!((0.75..1.25).contains(&sd), "sd of {} z-scores: {sd}", scores.len());
    assert_eq!((0..100).filter(|j| alleles::effect(*j) != 0.0).count(), 5);

    let correlation = |a: usize, b: usize| {
        let (x, y) = (&data[a + 1], &data[b + 1]);
        covariance(x, y) / (covariance(x, x) * covariance(y, y)).sqrt()
    };
    for j in 0..LOCI - 1 {
        let r = correlation(j, j + 1);
        if (j + 1) % alleles::STRETCH == 0 {
            assert!(r.abs() < 4.5 / root, "{r} between stretches");
        } else {
            assert!(r > 0.1, "{r} within a stretch");
        }
    }
}

/// Of the example's two models the one that expects few effects is the better description.
#[test]
fn the_sparse_model_wins() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let file = File::create(&path).unwrap();
    let what = Simulated::Alleles(60);
    simulate::write(file, Format::Parquet, what, 40_000, 1, &mut |_| ()).unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/alleles.toml");
    let overrides = Overrides {
        data: Some(vec![path.to_str().unwrap().to_string()]),
        shards: Some(5),
        ..Overrides::default()
    };
    let study = StudyFile::read_with(example, &overrides).unwrap();
    let result = Plan::new(study, 2, &Silent).unwrap().run(&Silent).unwrap();
    assert!(result.is_reliable());
    assert!(result.models[0].probability > 0.99, "{}", result.models[0].probability);
    // A kink at 0 in each of 60 directions: draws are less effective than those of a smooth posterior.
    assert!(result.models[0].log_evidence.se.unwrap() <= 0.05);
}
