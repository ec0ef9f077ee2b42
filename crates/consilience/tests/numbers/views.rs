//! Models that share a design's rows have the same bits as models that have rows of their own.

use crate::common::Case;
use consilience::Tables;
use consilience::arrow_array::{ArrayRef, Float32Array, Float64Array, RecordBatch};
use consilience::engine::Silent;
use consilience::math::Matrix;
use consilience::model::{Begun, Common, Likelihood, Model};
use consilience::plan::Plan;
use consilience::study::StudyFile;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// More than one chunk of a model with few columns, and no whole number of panels.
const ROWS: usize = 270_003;

/// Numbers that look random, from 0 to 1.
fn noise(i: usize, salt: u64) -> f64 {
    let mut z =
        (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ z >> 31) as f64 / u64::MAX as f64
}

/// Outcomes of every kind, four numbers, one that is 0 on many panels, an offset and a factor.
fn data(rows: usize) -> String {
    let mut text = "yes,count,large,a,b,c,d,part,o,g\n".to_string();
    for i in 0..rows {
        let x: Vec<f64> = (0..4).map(|k| 2.0 * noise(i, k) - 1.0).collect();
        let yes = u8::from(noise(i, 9) < 0.5 + 0.2 * x[0]);
        let count = (4.0 * noise(i, 10) * (1.0 + 0.3 * x[1])).floor();
        let large = if i % 50 == 0 { 0.0 } else { (1e6 * (2.0 + x[2])).floor() };
        let part = if i % 4000 < 700 { 0.0 } else { noise(i, 11) };
        let g = ["p", "q", "r", "s"][i % 4];
        let o = noise(i, 12);
        let _ = writeln!(
            text,
            "{yes},{count},{large},{},{},{},{},{part},{o},{g}",
            x[0], x[1], x[2], x[3]
        );
    }
    text
}

const RIGHT: [&str; 6] = ["a", "a + part", "d + c + b + a", "b + part + c:d", "g + a", "1"];

fn plan(path: &Path, left: &str, more: &str, family: &str) -> Plan {
    let mut case = Case::new(path.to_str().unwrap(), 1);
    for right in RIGHT {
        case.model(&format!("{left} ~ {right}{more}"), family);
    }
    Plan::new(StudyFile::parse(&case.text(), Path::new("study.toml")).unwrap(), 2, &Silent).unwrap()
}

/// The bits of everything that a likelihood says at two points, by every way to ask it.
fn bits(likelihood: &Likelihood, model: &Model) -> Vec<u64> {
    let start = model.start();
    let other: Vec<f64> =
        start.iter().enumerate().map(|(k, s)| s + 0.1 - 0.03 * k as f64).collect();
    let thetas = Matrix::from_rows(2, start.len(), [start.clone(), other].concat());
    let points = [thetas.row(0), thetas.row(1)];
    let mut numbers = vec![0.0; 2];
    likelihood.values(&points, &mut numbers);
    let mut gradient = vec![0.0; start.len()];
    numbers.push(likelihood.gradient(&start, &mut gradient));
    numbers.extend(gradient);
    for at in points.map(|theta| likelihood.expand(theta)) {
        numbers.push(at.value);
        numbers.extend(at.gradient);
        numbers.extend(at.hessian.data());
    }
    numbers.extend(likelihood.gram().data());
    numbers.into_iter().map(f64::to_bits).collect()
}

#[test]
fn a_view_of_shared_rows_has_the_bits_of_rows_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    for (rows, left, more, family) in [
        (ROWS, "yes", "", "logistic"),
        (12_345, "yes", " + offset(o)", "logistic"),
        (12_345, "yes", "", "probit"),
        (12_345, "count", " + offset(o)", "poisson"),
        (12_345, "count", "", "negative-binomial"),
        (12_345, "large", "", "poisson"),
        (12_345, "large", " + offset(o)", "negative-binomial"),
    ] {
        let path = folder.path().join("data.csv");
        std::fs::write(&path, data(rows)).unwrap();
        let plan = plan(&path, left, more, family);
        let shard = plan.engine().shard(0).data();
        let first = plan.settings[0].model.regression().unwrap();
        let common = Common::new(first, shard);
        let taken = AtomicUsize::new(0);
        let room = |bytes: usize| {
            taken.fetch_add(bytes, Ordering::Relaxed);
            true
        };
        let (mut shared, mut before) = (Vec::new(), 0);
        for (right, setting) in RIGHT.iter().zip(&plan.settings) {
            let what = format!("{left} ~ {right}{more}, {family}");
            let model: &Arc<Model> = &setting.model;
            assert!(common.is_of(model.regression().unwrap()), "{what}");
            let begun = Begun::new(model, shard, Some((&common, &room))).unwrap();
            // Rows of a factor are the model's own, and so are those that are all alike, unless offsets differ.
            let own = right.starts_with('g') || *right == "1" && more.is_empty();
            assert_eq!(begun.most_memory() > 0, own, "{what}");
            let view = begun.finish(&|_| true).unwrap();
            let alone = Likelihood::of(model, shard, &|_| true).unwrap();
            assert_eq!(bits(&view, model), bits(&alone, model), "{what}");
            assert_eq!((view.observations, view.distinct), (alone.observations, alone.distinct));
            let now = taken.load(Ordering::Relaxed);
            assert!(shared.is_empty() || now == before, "{what}: taken twice");
            before = now;
            shared.push(view);
        }
        // Seven columns at most, offset, count and total, and no more than that once.
        assert!(before >= 4 * 8 * rows && before <= 11 * 8 * rows, "{before} bytes");
    }
}

/// Columns that stand in the table as they are wanted, some of them with fewer digits than others.
#[test]
fn columns_that_are_not_copied_have_the_same_bits() {
    let rows = 30_005;
    let single = |f: &dyn Fn(usize) -> f64| -> ArrayRef {
        Arc::new(Float32Array::from((0..rows).map(|i| f(i) as f32).collect::<Vec<_>>()))
    };
    let double = |f: &dyn Fn(usize) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from((0..rows).map(f).collect::<Vec<_>>()))
    };
    let count = |i: usize| (4.0 * noise(i, 10)).floor();
    let batch = RecordBatch::try_from_iter([
        ("yes", double(&|i| f64::from(noise(i, 9) < 0.4))),
        ("count", double(&count)),
        ("large", double(&|i| if i % 50 == 0 { 0.0 } else { (1e6 * noise(i, 8)).floor() })),
        ("a", single(&|i| noise(i, 1) - 0.5)),
        ("b", double(&|i| noise(i, 2) - 0.5)),
        ("part", single(&|i| if i % 4000 < 700 { 0.0 } else { noise(i, 11) })),
        ("mostly_zero", single(&|i| if noise(i, 13) < 0.6 { 0.0 } else { noise(i, 14) })),
        ("o", single(&|i| noise(i, 12))),
    ])
    .unwrap();
    for (left, more, family) in [
        ("yes", "", "logistic"),
        ("yes", " + offset(o)", "probit"),
        ("count", " + offset(o)", "poisson"),
        ("count", "", "negative-binomial"),
        ("large", "", "poisson"),
    ] {
        let mut case = Case::new("none", 1);
        for right in ["a", "b + mostly_zero + part + a", "0 + part + b", "part + a"] {
            case.model(&format!("{left} ~ {right}{more}"), family);
        }
        let study = StudyFile::parse(&case.text(), Path::new("study.toml")).unwrap();
        let tables = Tables::whole(vec![batch.clone()]).unwrap();
        let plan = Plan::of_tables(study, tables, 2, &Silent).unwrap();
        let shard = plan.engine().shard(0).data();
        let common = Common::new(plan.settings[0].model.regression().unwrap(), shard);
        let common = common.without_copies();
        let taken = AtomicUsize::new(0);
        let room = |bytes: usize| {
            taken.fetch_add(bytes, Ordering::Relaxed);
            true
        };
        for setting in &plan.settings {
            let model = &setting.model;
            let begun = Begun::new(model, shard, Some((&common, &room))).unwrap();
            assert_eq!(begun.most_memory(), 0, "{family}");
            let view = begun.finish(&|_| false).unwrap();
            let alone = Likelihood::of(model, shard, &|_| true).unwrap();
            assert_eq!(bits(&view, model), bits(&alone, model), "{}, {family}", model.name);
        }
        // Offset, count and total, and no column.
        assert!(taken.into_inner() <= 3 * 8 * (rows + 8));
    }
}

#[test]
fn without_room_rows_are_the_models_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.csv");
    std::fs::write(&path, data(9_999)).unwrap();
    let plan = plan(&path, "yes", "", "logistic");
    let shard = plan.engine().shard(0).data();
    let common = Common::new(plan.settings[0].model.regression().unwrap(), shard);
    for setting in &plan.settings {
        let begun = Begun::new(&setting.model, shard, Some((&common, &|_| false))).unwrap();
        assert!(begun.most_memory() > 0);
        let lent = begun.finish(&|_| false).unwrap();
        let held = Likelihood::of(&setting.model, shard, &|_| true).unwrap();
        assert_eq!(bits(&lent, &setting.model), bits(&held, &setting.model));
    }
}
