//! Sweeps: what they say is what single comparisons say, whoever computes them and however often they are stopped.

#![allow(clippy::disallowed_methods)]

use consilience::arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use consilience::data::read::{TextFormat, Wanted, read_table};
use consilience::data::{Column, Tables};
use consilience::engine::{Observer, Silent};
use consilience::plan::{GatheredRows, Plan, Room};
use consilience::run::{Courier, OpenRound, Run};
use consilience::study::{Combine, Local, Overrides, SplitBy, StudyFile};
use consilience::sweep::{
    Bench, Cell, CellName, CellStore, CellTime, Document, Folder, OnThreads, Sweep, Watch,
};
use consilience::{Error, Halt, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const STUDY: &str = r#"
[split]
seed = 4
[prior]
default = "normal(0, 1)"
[[model]]
name = "glu"
formula = "type ~ scale(glu)"
family = "logistic"
[[model]]
name = "glu + bmi"
formula = "type ~ scale(glu) + scale(bmi)"
family = "logistic"
[[model]]
name = "age"
formula = "type ~ scale(age)"
family = "logistic"
[evidence]
local = "importance"
draws = 1000
seed = 9
"#;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/pima_tr.csv")
}

fn study(more: Overrides) -> StudyFile {
    let overrides = Overrides { data: Some(vec![data().display().to_string()]), ..more };
    StudyFile::parse_with(STUDY, Path::new("study.toml"), &overrides).unwrap()
}

fn sweep() -> Sweep {
    Sweep {
        shards: vec![1, 3, 8],
        repeats: 3,
        by: vec![SplitBy::Random, SplitBy::Outcome],
        combine: vec![Combine::Normal, Combine::NormalUncorrected, Combine::CmcIs, Combine::Exact],
        votes: true,
        reference: None,
    }
}

struct Quiet;

impl Watch for Quiet {
    fn within(&self) -> &dyn Observer {
        &Silent
    }
}

fn bench(file: &StudyFile, threads: usize) -> OnThreads {
    let rows = GatheredRows::read(file.clone(), threads, &Room::default(), &Silent).unwrap();
    OnThreads::new(rows, threads, Room::default(), None)
}

fn run(sweep: &Sweep, threads: usize) -> Document {
    let file = study(Overrides::default());
    sweep.run(&file, &bench(&file, threads), &(), &Quiet).unwrap()
}

/// The log evidences that one comparison finds.
fn compared(by: &str, shards: usize, repeat: u64, combine: Combine) -> Vec<f64> {
    let local = if combine == Combine::Exact { Local::Auto } else { Local::Importance };
    let file = study(Overrides {
        by: Some(SplitBy::parse(by).unwrap()),
        shards: Some(shards),
        split_seed: Some(3 + repeat),
        seed: Some(8 + repeat),
        combine: Some(combine),
        local: Some(local),
        ..Overrides::default()
    });
    let comparison = Plan::new(file, 1, &Silent).unwrap().run(&Silent).unwrap();
    comparison.models.iter().map(|m| m.log_evidence.value).collect()
}

#[test]
fn a_sweep_says_what_single_comparisons_say() {
    let sweep = sweep();
    let found = run(&sweep, 2);
    assert_eq!(found.cells.len(), 2 * 3 * 3);
    // Evidences, to the bit; `exact` is computed once per seed, and any split has it up to its error.
    for cell in &found.cells {
        for way in &cell.combinations {
            let combine: Combine = way.method.parse().unwrap();
            let alone = compared(&cell.by, cell.shards, cell.repeat as u64, combine);
            for (model, alone) in way.models.iter().zip(alone) {
                let value = model.log_evidence.value;
                if combine == Combine::Exact && (cell.shards > 1 || cell.by != "random") {
                    let se = model.log_evidence.se.unwrap();
                    assert!((value - alone).abs() < 4.0 * 2.0_f64.sqrt() * se, "{value} {alone}");
                } else {
                    assert_eq!(value.to_bits(), alone.to_bits(), "{} {}", way.method, cell.shards);
                }
            }
        }
    }
    // Metrics, computed here from what those comparisons say.
    let exact: Vec<Vec<f64>> = (1..=3).map(|r| compared("random", 1, r, Combine::Exact)).collect();
    let truth: Vec<f64> = (0..3).map(|k| exact.iter().map(|e| e[k]).sum::<f64>() / 3.0).collect();
    for (reference, truth) in found.reference.log_evidence.iter().zip(&truth) {
        assert!((reference.value - truth).abs() < 1e-12);
    }
    let best = (0..3).max_by(|&a, &b| truth[a].total_cmp(&truth[b])).unwrap();
    for (by, shards, method) in
        [("random", 8, Combine::Normal), ("outcome", 3, Combine::NormalUncorrected)]
    {
        let group = found
            .groups
            .iter()
            .find(|g| g.by == by && g.shards == shards && g.method == method.name())
            .unwrap();
        let all: Vec<Vec<f64>> = (1..=3).map(|r| compared(by, shards, r, method)).collect();
        let (mut rmse, mut chosen) = (Vec::new(), vec![0; 3]);
        for k in 0..3 {
            let squares = all.iter().map(|v| (v[k] - truth[k]).powi(2)).sum::<f64>() / 3.0;
            let bias = all.iter().map(|v| v[k] - truth[k]).sum::<f64>() / 3.0;
            rmse.push(squares.sqrt());
            let model = &group.models[k];
            let close = |a: Option<f64>, b: f64| {
                assert!((a.unwrap() - b).abs() < 1e-9 * (1.0 + b.abs()), "{a:?} {b}");
            };
            close(model.errors.rmse, rmse[k]);
            close(model.errors.rmse_percent, 100.0 * rmse[k] / truth[k].abs());
            close(model.errors.bias, bias);
            close(model.errors.bias2_over_variance, bias * bias / (squares - bias * bias));
            // Σ log Z_s is the same in truth and estimate, so that the overlap's error is the evidence's.
            let epsilon = all.iter().map(|v| (v[k] - truth[k]).abs()).sum::<f64>() / 3.0;
            close(model.epsilon1, epsilon);
            match model.log_bayes_factor {
                None => assert_eq!(k, best),
                Some(factor) => {
                    let off = |v: &Vec<f64>| v[best] - v[k] - (truth[best] - truth[k]);
                    let squares = all.iter().map(|v| off(v).powi(2)).sum::<f64>() / 3.0;
                    close(factor.rmse, squares.sqrt());
                }
            }
        }
        for values in &all {
            chosen[(0..3).max_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap()] += 1;
        }
        assert_eq!(group.chosen, chosen);
        assert_eq!((group.counted, group.failed), (3, 0));
    }
}

#[test]
fn one_shard_is_no_split() {
    let found = run(&sweep(), 1);
    for cell in found.cells.iter().filter(|c| c.shards == 1) {
        let values = |method: &str| -> Vec<f64> {
            let way = cell.combination(method).unwrap();
            way.models.iter().map(|m| m.log_evidence.value).collect()
        };
        // Nothing is combined, so nothing is corrected and nothing is voted away.
        assert_eq!(values("normal"), values("normal-uncorrected"));
        let product =
            cell.votes.iter().find(|v| v.method == "product of local probabilities").unwrap();
        for (a, b) in values("normal").iter().zip(&product.models) {
            assert!((a - b.value).abs() < 1e-9);
        }
        let chooses: Vec<usize> = cell.votes.iter().map(|v| v.chooses).collect();
        assert!(chooses.iter().all(|c| *c == chooses[0]), "{chooses:?}");
    }
    // With error bars of 0.01 and 200 rows whole, all are within 0.1 nat of `exact`. That of itself is its own mean.
    assert!(found.advice.iter().all(|a| a.method != "exact") && found.advice.len() == 2 * 3);
    assert!(found.advice.iter().all(|a| a.within_tenth_nat >= Some(1)), "{:?}", found.advice);
}

#[test]
fn threads_and_order_change_nothing() {
    let sweep = sweep();
    let (one, three) = (run(&sweep, 1), run(&sweep, 3));
    assert_eq!(one, three);
    // A part of the sweep finds the same in its cells.
    let part = Sweep { shards: vec![3], combine: vec![Combine::Normal], ..sweep };
    let part = Sweep { by: vec![SplitBy::Outcome], votes: false, ..part };
    let alone = run(&part, 2);
    for cell in &alone.cells {
        let same = one
            .cells
            .iter()
            .find(|c| c.by == cell.by && c.shards == cell.shards && c.repeat == cell.repeat)
            .unwrap();
        assert_eq!(same.partition, cell.partition);
        assert_eq!(same.combination("normal"), cell.combination("normal"));
        assert!(cell.combination("exact").is_none() && cell.votes.is_empty());
    }
}

#[test]
fn given_references_are_taken() {
    let reference = Some(vec![-100.0, -90.0, -120.0]);
    let sweep = Sweep { reference, combine: vec![Combine::Normal], votes: false, ..sweep() };
    let found = run(&sweep, 2);
    assert_eq!(found.reference.method, "given");
    let model = &found.groups[0].models[1];
    assert!((model.errors.bias.unwrap() - (model.errors.mean + 90.0)).abs() < 1e-12);
    assert_eq!(found.groups[0].models[1].log_bayes_factor, None);
    assert!(found.cells.iter().all(|c| c.combination("exact").is_none()));
    assert!(found.warnings.iter().all(|w| w.code != "reference-disputed"));
}

#[test]
fn given_references_are_doubted_where_exact_finds_others() {
    let one = Sweep { shards: vec![1], repeats: 1, combine: vec![Combine::Exact], ..sweep() };
    let sweep = Sweep { by: vec![SplitBy::Random], votes: false, ..one };
    let truth: Vec<f64> = run(&sweep, 2).reference.log_evidence.iter().map(|e| e.value).collect();
    let against =
        |reference: Vec<f64>| run(&Sweep { reference: Some(reference), ..sweep.clone() }, 2);
    let doubts = |found: &Document| {
        found
            .warnings
            .iter()
            .filter(|w| w.code == "reference-disputed")
            .cloned()
            .collect::<Vec<_>>()
    };
    let fine = against(truth.clone());
    assert_eq!(doubts(&fine), []);
    // What is given is another thing than what is found: there is something to say of `exact`.
    assert!(fine.advice.iter().all(|a| a.method == "exact" && a.within_tenth_nat == Some(1)));
    assert_eq!(fine.advice.len(), 1);
    let off = against(vec![truth[0], truth[1] + 40.0, truth[2] - 3.0]);
    let doubts = doubts(&off);
    assert_eq!(doubts.len(), 1, "{:?}", off.warnings);
    for part in ["`glu + bmi`", "`exact` finds", "one of the two is wrong", "another model"] {
        assert!(doubts[0].message.contains(part), "{part}: {doubts:?}");
    }
    assert!(doubts[0].value.is_some_and(|value| (value - 40.0).abs() < 1e-9));
}

#[test]
fn nothing_is_said_that_the_reference_does_not_tell() {
    // The second model is the first by another name.
    let twins = STUDY.replace("type ~ scale(glu) + scale(bmi)", "type ~ scale(glu)");
    let overrides =
        Overrides { data: Some(vec![data().display().to_string()]), ..Overrides::default() };
    let file = StudyFile::parse_with(&twins, Path::new("study.toml"), &overrides).unwrap();
    let sweep = Sweep {
        shards: vec![1],
        repeats: 1,
        by: vec![SplitBy::Random],
        combine: vec![Combine::Normal, Combine::Exact],
        votes: false,
        reference: None,
    };
    for reference in [None, Some(vec![-95.0, -95.0, -120.0])] {
        let sweep = Sweep { reference, ..sweep.clone() };
        let found = sweep.run(&file, &bench(&file, 2), &(), &Quiet).unwrap();
        assert!(!found.reference.tells_best && found.reference.tells_tenth_nat);
        let given = found.reference.method == "given";
        assert!(!given || found.reference.best == 0);
        assert_eq!(found.advice.len(), if given { 2 } else { 1 });
        for advice in &found.advice {
            assert_eq!((advice.within_bayes_factor, advice.same_choice), (None, None));
            let said = "the reference does not tell which of";
            assert!(advice.text.contains(said) && !advice.text.contains("chosen"), "{advice:?}");
        }
    }
    // A reference that is known to a few tenths of a nat says nothing of a tenth.
    struct Blurred<'a>(&'a OnThreads);
    impl Bench for Blurred<'_> {
        fn measure(
            &self,
            name: &CellName,
            methods: &[Combine],
            votes: bool,
            observer: &dyn Observer,
        ) -> Result<(Cell, Option<CellTime>)> {
            let (mut cell, time) = self.0.measure(name, methods, votes, observer)?;
            let exact = cell.combinations.iter_mut().filter(|c| c.method == "exact");
            exact.for_each(|c| c.models[2].log_evidence.se = Some(0.2));
            Ok((cell, time))
        }
    }
    let found = sweep.run(&file, &Blurred(&bench(&file, 2)), &(), &Quiet).unwrap();
    assert!(found.warnings.iter().any(|w| w.code == "reference-error"));
    for advice in &found.advice {
        assert_eq!(advice.within_tenth_nat, None);
        assert!(advice.text.contains("cannot be told"), "{advice:?}");
    }
}

/// A folder that is lost after so many cells.
struct Breaking<'a>(&'a Folder, AtomicUsize);

impl CellStore for Breaking<'_> {
    fn get(&self, name: &CellName) -> Result<Option<(Cell, Option<CellTime>)>> {
        self.0.get(name)
    }
    fn put(&self, name: &CellName, cell: &Cell, time: Option<CellTime>) -> Result<()> {
        if self.1.fetch_sub(1, Ordering::Relaxed) == 0 {
            return Err(Error::Stopped);
        }
        self.0.put(name, cell, time)
    }
}

/// A bench that counts.
struct Counting<'a>(&'a OnThreads, AtomicUsize);

impl Bench for Counting<'_> {
    fn measure(
        &self,
        name: &CellName,
        methods: &[Combine],
        votes: bool,
        observer: &dyn Observer,
    ) -> Result<(Cell, Option<CellTime>)> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.measure(name, methods, votes, observer)
    }
}

#[test]
fn a_sweep_that_was_stopped_goes_on_where_it_was() {
    let (file, sweep) = (study(Overrides::default()), sweep());
    let whole = run(&sweep, 2);
    let folder = tempfile::tempdir().unwrap();
    let bench = bench(&file, 1);
    let kept = Folder::new(folder.path(), &file, &["data".to_string()]).unwrap();
    let stopped =
        sweep.run(&file, &bench, &Breaking(&kept, AtomicUsize::new(5)), &Quiet).unwrap_err();
    assert!(matches!(stopped, Error::Stopped));
    let counting = Counting(&bench, AtomicUsize::new(0));
    let again = sweep.run(&file, &counting, &kept, &Quiet).unwrap();
    assert_eq!(counting.1.load(Ordering::Relaxed), 18 - 5);
    assert_eq!(again, whole);
    let json = |d: &Document| serde_json::to_string(d).unwrap();
    assert_eq!(json(&again), json(&whole));
    // More of it: only what is missing is computed.
    let more = Sweep { repeats: 4, ..sweep.clone() };
    let counting = Counting(&bench, AtomicUsize::new(0));
    more.run(&file, &counting, &kept, &Quiet).unwrap();
    assert_eq!(counting.1.load(Ordering::Relaxed), 6);

    // Cells of other data, another study, another partition, or no cells at all.
    let refused = |file: &StudyFile, data: &str, wanted: &str| {
        let kept = Folder::new(folder.path(), file, &[data.to_string()]).unwrap();
        let error = sweep.run(file, &bench, &kept, &Quiet).unwrap_err();
        assert!(error.is_input() && error.to_string().contains(wanted), "{error}");
    };
    refused(&file, "other data", "of another sweep");
    refused(
        &study(Overrides { draws: Some(999), ..Overrides::default() }),
        "data",
        "another study",
    );
    let cells = folder.path().join("cells");
    let first = std::fs::read(cells.join("random-1-1.json")).unwrap();
    std::fs::write(cells.join("random-1-2.json"), &first).unwrap();
    refused(&file, "data", "another partition");
    std::fs::write(cells.join("random-1-2.json"), &first[..first.len() / 2]).unwrap();
    refused(&file, "data", "no cell of a sweep");
    // Whole, but not what a sweep finds.
    let whole_cell: serde_json::Value = serde_json::from_slice(&first).unwrap();
    let spoiled: [fn(&mut serde_json::Value); 5] = [
        |cell| cell["combinations"][0]["chooses"] = 99.into(),
        |cell| cell["combinations"][0]["chooses"] = serde_json::Value::Null,
        |cell| cell["combinations"][0]["models"].as_array_mut().unwrap().truncate(2),
        |cell| cell["combinations"][0]["models"][0]["log_evidence"]["se"] = (-1.0).into(),
        |cell| cell["votes"][0]["chooses"] = 99.into(),
    ];
    for spoil in spoiled {
        let mut written = whole_cell.clone();
        spoil(&mut written["cell"]);
        std::fs::write(cells.join("random-1-1.json"), written.to_string()).unwrap();
        refused(&file, "data", "no sweep of 3 models finds");
    }
    std::fs::write(cells.join("random-1-1.json"), &first).unwrap();
    std::fs::remove_file(cells.join("random-1-2.json")).unwrap();
    assert_eq!(sweep.run(&file, &bench, &kept, &Quiet).unwrap(), whole);
}

#[test]
fn a_sweep_that_grows_ends_as_one_that_was_whole_from_the_start() {
    let file = study(Overrides::default());
    let bench = bench(&file, 2);
    let of = |shards: &[usize], by: Vec<SplitBy>| Sweep {
        shards: shards.to_vec(),
        by,
        repeats: 2,
        combine: vec![Combine::Normal, Combine::Exact],
        votes: false,
        reference: None,
    };
    let (random, outcome) = (SplitBy::Random, SplitBy::Outcome);
    for (small, large) in [
        // A smaller number of shards, and another way to split, become the first: the place where `exact` is computed.
        (of(&[3], vec![random.clone()]), of(&[1, 3], vec![random.clone()])),
        (of(&[3], vec![outcome.clone()]), of(&[3], vec![random, outcome])),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let kept = Folder::new(folder.path(), &file, &["data".to_string()]).unwrap();
        small.run(&file, &bench, &kept, &Quiet).unwrap();
        let grown = large.run(&file, &bench, &kept, &Quiet).unwrap();
        let whole = large.run(&file, &bench, &(), &Quiet).unwrap();
        assert_eq!(grown.reference, whole.reference);
        assert_eq!(serde_json::to_string(&grown).unwrap(), serde_json::to_string(&whole).unwrap());
        assert_eq!(grown.cells_csv(), whole.cells_csv());
        assert_eq!(grown.groups_csv(), whole.groups_csv());
        // And again as the small one.
        let again = small.run(&file, &bench, &kept, &Quiet).unwrap();
        assert_eq!(again, small.run(&file, &bench, &(), &Quiet).unwrap());
    }
}

/// Partitions through run directories, whose workers answer, or lose everything from some round on.
struct OnFiles<'a> {
    file: &'a StudyFile,
    folder: &'a Path,
    lost_from: u64,
}

/// Answers open rounds up to a limit.
struct Workers(u64);

impl Courier for Workers {
    fn fetch(&self, open: &OpenRound) -> Result<()> {
        if open.number >= self.0 {
            return Err(Error::Transport(format!("round {}: the post is lost", open.number)));
        }
        open.run.work_all(&open.missing, 1, false, &(), &Default::default()).map(|_| ())
    }
}

impl Bench for OnFiles<'_> {
    fn measure(
        &self,
        name: &CellName,
        methods: &[Combine],
        votes: bool,
        observer: &dyn Observer,
    ) -> Result<(Cell, Option<CellTime>)> {
        let mut own = self.file.clone();
        name.apply(&mut own.study);
        let run = Run::split(own, &self.folder.join(name.stem()))?;
        let workers = Workers(self.lost_from);
        let cell = run.measure(name, &self.file.study, methods, votes, &workers, observer)?;
        Ok((cell, None))
    }
}

#[test]
fn runs_give_the_bits_of_threads_and_a_lost_machine_is_no_finding() {
    let file = study(Overrides::default());
    let sweep = Sweep { shards: vec![1, 3], repeats: 2, ..sweep() };
    let runs = tempfile::tempdir().unwrap();
    let bench = OnFiles { file: &file, folder: runs.path(), lost_from: u64::MAX };
    assert_eq!(sweep.run(&file, &bench, &(), &Quiet).unwrap(), run(&sweep, 2));

    // Wherever the machines are lost: the sweep ends there, and keeps no cell that says a method failed.
    for lost_from in 1..6 {
        let (runs, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let cells = Folder::new(kept.path(), &file, &["data".to_string()]).unwrap();
        let bench = OnFiles { file: &file, folder: runs.path(), lost_from };
        let error = sweep.run(&file, &bench, &cells, &Quiet).unwrap_err();
        assert!(error.to_string().contains("the post is lost"), "{lost_from}: {error}");
        let cells = std::fs::read_dir(kept.path().join("cells")).map_or(0, Iterator::count);
        assert_eq!(cells, 0, "{lost_from}");
    }
}

#[test]
fn what_cannot_be_swept_is_refused_before_the_work() {
    let file = study(Overrides::default());
    let wrong = |sweep: Sweep, wanted: &str| {
        let error = sweep.check(&file).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    };
    wrong(Sweep { shards: vec![], ..sweep() }, "numbers of shards");
    wrong(Sweep { shards: vec![0, 5], ..sweep() }, "numbers of shards");
    wrong(Sweep { shards: vec![5, 5], ..sweep() }, "must ascend");
    wrong(Sweep { repeats: 0, ..sweep() }, "at least one repeat");
    wrong(Sweep { by: vec![SplitBy::File], ..sweep() }, "the data say how many");
    wrong(Sweep { by: vec![SplitBy::Random; 2], ..sweep() }, "random twice");
    wrong(Sweep { combine: vec![Combine::Normal; 2], ..sweep() }, "normal twice");
    wrong(Sweep { reference: Some(vec![1.0]), ..sweep() }, "1 values and the study 3 models");
    wrong(Sweep { reference: Some(vec![f64::NAN; 3]), ..sweep() }, "finite");
    wrong(Sweep { repeats: 1_000_000, ..sweep() }, "too many");
    let many = Sweep { shards: vec![1, 500], ..sweep() };
    let error = many.run(&file, &bench(&file, 2), &(), &Quiet).unwrap_err().to_string();
    assert!(error.contains("500 shards are more than the 200 rows"), "{error}");
}

/// The rows of the file as a table in memory.
fn in_memory() -> RecordBatch {
    let table = read_table(&[data()], &TextFormat::default(), &Wanted::All).unwrap().table;
    let array = |column: &Column| -> ArrayRef {
        match column {
            Column::Text { codes, levels } => {
                let word = |code: &u32| levels.get(*code as usize).map(String::as_str);
                Arc::new(codes.iter().map(word).collect::<StringArray>())
            }
            column => Arc::new(Float64Array::from(column.numbers().unwrap().into_owned())),
        }
    };
    let columns = table.names().iter().map(|name| (name, array(table.column(name).unwrap())));
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn a_table_in_memory_is_swept_as_its_file_is() {
    let sweep = Sweep { shards: vec![1, 3], repeats: 2, ..sweep() };
    let of_file = run(&sweep, 2);
    // The study names no files.
    let file = StudyFile::parse_with(STUDY, Path::new(""), &Overrides::default()).unwrap();
    let whole = in_memory();
    let rows = |batch: &RecordBatch, threads: usize| {
        let tables =
            Tables::whole(vec![batch.slice(0, 77), batch.slice(77, batch.num_rows() - 77)]);
        GatheredRows::of_tables(file.clone(), tables.unwrap(), threads, &Room::default()).unwrap()
    };
    for threads in [1, 3] {
        let bench = OnThreads::new(rows(&whole, threads), threads, Room::default(), None);
        let found = sweep.run(&file, &bench, &(), &Quiet).unwrap();
        assert_eq!(
            serde_json::to_string(&found).unwrap(),
            serde_json::to_string(&of_file).unwrap()
        );
    }
    // What is kept is of these rows: told by their values, in whatever batches they came.
    let hashes = rows(&whole, 1).hashes().unwrap();
    assert_eq!(hashes, rows(&whole.slice(0, whole.num_rows()), 2).hashes().unwrap());
    assert_ne!(hashes, rows(&whole.slice(0, whole.num_rows() - 1), 1).hashes().unwrap());
    assert_ne!(hashes, rows(&whole, 1).every(2).unwrap().hashes().unwrap());
    let shards = Tables::shards(vec![vec![whole.slice(0, 100)], vec![whole.slice(100, 100)]]);
    let error =
        GatheredRows::of_tables(file.clone(), shards.unwrap(), 1, &Room::default()).unwrap_err();
    assert!(error.to_string().contains("give one table with all rows"), "{error}");
    // Called off before it begins.
    let halt = Halt::new();
    halt.call();
    let tables = Tables::whole(vec![whole]).unwrap();
    let stopped = GatheredRows::of_tables(file, tables, 1, &Room::default().until(halt));
    assert!(matches!(stopped, Err(Error::Stopped)));
}
