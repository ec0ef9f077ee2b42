//! Work that is called off ends in the middle, wherever it is; and shards that are reached by bytes alone.

use consilience::arrow_array::{ArrayRef, Float64Array, RecordBatch};
use consilience::compare::PartitionReport;
use consilience::data::{Tables, shard_of_bytes, shard_to_bytes};
use consilience::engine::Silent;
use consilience::plan::{Gathered, Plan, Room};
use consilience::run::{Came, Carrier, Remote, answer, study_hash};
use consilience::study::Study;
use consilience::{Error, Expansion, Foreign, Halt, Model, Prior, Result, Shard, Target, Threads};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A likelihood that has the work called off at its hundredth evaluation, and counts those that come after.
struct Fuse {
    halt: Halt,
    calls: Arc<AtomicUsize>,
}

impl Target for Fuse {
    fn dim(&self) -> usize {
        1
    }

    fn log_density_gradient(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        if self.calls.fetch_add(1, Ordering::Relaxed) == 100 {
            self.halt.call();
        }
        gradient[0] = -theta[0];
        -0.5 * theta[0] * theta[0]
    }

    fn expand(&self, theta: &[f64]) -> Expansion {
        let mut at = Expansion::zeros(1);
        at.value = self.log_density_gradient(theta, &mut at.gradient);
        at.hessian[(0, 0)] = -1.0;
        at
    }
}

#[test]
fn a_chain_ends_when_it_is_called_off() {
    for (local, combine) in
        [("nuts+warp3", "normal"), ("importance", "normal"), ("auto", "exact"), ("auto", "cmc-is")]
    {
        let (halt, calls) = (Halt::new(), Arc::new(AtomicUsize::new(0)));
        let fuse = Fuse { halt: halt.clone(), calls: calls.clone() };
        let mut shard = Shard::without_rows(0).until(Some(halt));
        shard.learn("fuse", Foreign::new(Arc::new(fuse), 10.0).unwrap());
        let study = Study::from_toml(&format!(
            "[[model]]\nformula = \"y ~ 1\"\nfamily = \"gaussian\"\n[evidence]\nlocal = {local:?}\ncombine = {combine:?}\ndraws = 100_000\n"
        ));
        let prior = Prior::Normal { mean: 0.0, sd: 1.0 };
        let engine = Threads::new(vec![shard], 1).unwrap();
        let models = vec![Model::foreign("fuse", &[("a", prior)])];
        let plan = Plan::of_models(engine, models, study.unwrap().evidence).unwrap();
        let error = plan.run(&Silent).unwrap_err();
        assert!(matches!(error, Error::Stopped), "{local}, {combine}: {error}");
        // At most the points between two looks follow; there would have been many thousands.
        let calls = calls.load(Ordering::Relaxed);
        assert!((101..=400).contains(&calls), "{local}, {combine}: {calls} evaluations");
    }
}

fn table(from: usize, rows: usize) -> RecordBatch {
    let noise = |i: usize, k: usize| ((i * k + 13) % 101) as f64 / 101.0 - 0.5;
    let column = |of: &dyn Fn(usize) -> f64| -> ArrayRef {
        Arc::new((from..from + rows).map(of).map(Some).collect::<Float64Array>())
    };
    let y = |i: usize| f64::from(noise(i, 7919) + 0.4 * noise(i, 31) > 0.0);
    RecordBatch::try_from_iter([("y", column(&y)), ("x", column(&|i| noise(i, 31)))]).unwrap()
}

fn study(local: &str, combine: &str) -> Study {
    Study::from_toml(&format!(
        "[[model]]\nformula = \"y ~ x\"\nfamily = \"logistic\"\n[[model]]\nformula = \"y ~ 1\"\nfamily = \"logistic\"\n[evidence]\nlocal = {local:?}\ncombine = {combine:?}\ndraws = 400\nwarmup = 200\n"
    ))
    .unwrap()
}

/// What may become of an answer's bytes.
type Alter = fn(Vec<u8>) -> Vec<u8>;

/// Shards as bytes, made anew for every question; the last one comes first.
#[derive(Debug)]
struct Bytes {
    rows: Vec<Vec<u8>>,
    /// What becomes of an answer on its way.
    on_the_way: Alter,
}

impl Carrier for Bytes {
    fn shards(&self) -> usize {
        self.rows.len()
    }

    fn carry(&self, question: &[u8], came: &Came) -> Result<()> {
        for (index, rows) in self.rows.iter().enumerate().rev() {
            let shard = Shard::new(index, shard_of_bytes(rows)?);
            came(index, &(self.on_the_way)(answer(&shard, question)?))?;
        }
        Ok(())
    }
}

fn remote(study: Study, on_the_way: Alter) -> Result<Plan<Remote<Bytes>>> {
    let rows: Vec<Vec<u8>> = (0..3)
        .map(|s| {
            let tables = Tables::whole(vec![table(80 * s, 80)])?;
            shard_to_bytes(&Gathered::of_tables(study.clone(), tables, &Room::default())?.shards[0])
        })
        .collect::<Result<_>>()?;
    let partition = PartitionReport::given(&[80, 80, 80], 0);
    let engine = Remote::new(Bytes { rows, on_the_way }, &study_hash(&study), &partition.hash);
    let names = vec!["y".to_string(), "x".to_string()];
    Plan::on(Gathered::elsewhere(study, names, partition)?, engine, &Silent)
}

#[test]
fn shards_that_are_bytes_have_the_same_bits() {
    for (local, combine) in [("auto", "exact"), ("nuts+warp3", "normal")] {
        let study = study(local, combine);
        let tables = (0..3).map(|s| vec![table(80 * s, 80)]).collect();
        let here = Plan::of_tables_within(
            study.clone(),
            Tables::shards(tables).unwrap(),
            2,
            &Room::default().until(Halt::new()),
            &Silent,
        );
        let here = here.unwrap().run(&Silent).unwrap();
        let there = remote(study, |bytes| bytes).unwrap().run(&Silent).unwrap();
        assert_eq!(
            serde_json::to_string(&here.models).unwrap(),
            serde_json::to_string(&there.models).unwrap()
        );
        assert_eq!(here.partition, there.partition);
    }
}

#[test]
fn answers_that_are_none_are_refused() {
    let altered: [(Alter, &str); 3] = [
        (|_| Vec::new(), "shard 2: its answer is refused: the file is empty"),
        (
            |mut bytes| {
                *bytes.last_mut().unwrap() ^= 1;
                bytes
            },
            "altered",
        ),
        (|_| b"consilience question 5\n".to_vec(), "`question`"),
    ];
    for (on_the_way, needle) in altered {
        let error = remote(study("auto", "exact"), on_the_way).unwrap_err();
        assert!(matches!(error, Error::Transport(_)), "{error}");
        assert!(error.to_string().contains(needle), "{error}");
    }
    // A split that the shards do not have.
    let mut other = study("auto", "exact");
    other.split.shards = Some(4);
    let error = remote(other, |bytes| bytes).unwrap_err();
    assert!(error.to_string().contains("there are 3 shards already"), "{error}");
}
