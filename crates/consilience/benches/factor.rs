//! What a shard's look at its rows costs a Gaussian model of p columns on 100,000 rows, on one thread: CPU seconds of
//! Survey and of Statistics, least of five. `benches/peers --factor` sets numpy's X'X beside it.
//! Run with: cargo bench --workspace --bench factor -- 100 500

use consilience::arrow_array::{ArrayRef, Float64Array, RecordBatch};
use consilience::data::Tables;
use consilience::engine::Silent;
use consilience::math::stream;
use consilience::model::Family;
use consilience::plan::Plan;
use consilience::question::{Kind, Statistics, Survey};
use consilience::study::Study;
use rand::RngExt;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

const ROWS: usize = 100_000;

fn main() {
    let widths = std::env::args().filter_map(|argument| argument.parse::<usize>().ok());
    for p in widths {
        let plan = plan(p);
        let regression = plan.settings[0].model.regression().expect("a regression");
        let design = regression.design.clone();
        let survey = Survey { family: Family::Gaussian, design: design.clone(), units: true };
        let statistics = Statistics { recipe: design, kernel: regression.kernel };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
        let (surveyed, factored) = pool.install(|| {
            let shard = plan.engine().shard(0);
            let surveyed = least(|| drop(survey.answer(shard).expect("an answer")));
            (surveyed, least(|| drop(statistics.answer(shard).expect("an answer"))))
        });
        println!("p = {p}: survey {surveyed:.4} CPU-s, statistics {factored:.4} CPU-s");
    }
}

/// One shard with p columns, no two of which are alike.
fn plan(p: usize) -> Plan {
    let mut rng = stream(1, 0, 0, "factor");
    let mut column = || -> ArrayRef {
        let values = (0..ROWS).map(|_| rng.random::<f64>() - 0.5).collect::<Vec<f64>>();
        Arc::new(Float64Array::from(values))
    };
    let names: Vec<String> = (1..=p).map(|j| format!("x{j}")).collect();
    let columns = names.iter().map(String::as_str).chain(["y"]).map(|name| (name, column()));
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let formula = format!("y ~ {}", names.join(" + "));
    let study = Study::new().shards(1).model(&formula, Family::Gaussian);
    Plan::of_tables(study, Tables::whole(vec![batch]).expect("a table"), 1, &Silent)
        .expect("a plan")
}

/// The least CPU seconds of five.
fn least(work: impl Fn()) -> f64 {
    let times = (0..5).map(|_| {
        let start = cpu_seconds();
        work();
        cpu_seconds() - start
    });
    times.fold(f64::INFINITY, f64::min)
}

/// Seconds that this thread has run so far, whoever else the machine serves; where the system does
/// not say, those on the clock.
fn cpu_seconds() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse::<f64>().ok())
        .map_or_else(|| START.elapsed().as_secs_f64(), |nanoseconds| nanoseconds * 1e-9)
}
