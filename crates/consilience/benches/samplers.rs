//! How fast the samplers are: `cargo bench --workspace --bench samplers`. Prints one table; asserts nothing.
//! With `-- --shards DIR` it writes two shards' designs and our time on them for benches/rstan.R.

use consilience::engine::Silent;
use consilience::fit::{FitOrder, Summary};
use consilience::math::stream;
use consilience::plan::Plan;
use consilience::question::{Fit, Kind};
use consilience::sample::PolyaGamma;
use consilience::study::{Local, StudyFile};
use std::path::Path;
use std::sync::LazyLock;
use std::time::Instant;

/// Data, formula, family, number of shards.
const CASES: [(&str, &str, &str, usize); 2] = [
    ("flights", "late ~ 0 + dep_delay + carrier", "logistic", 50),
    (
        "gauss",
        "y ~ x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9 + x10 + x11 + x12 + x13 + x14 + x15",
        "gaussian",
        10,
    ),
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|a| a == "--shards") {
        return write_shards(Path::new(&arguments[at + 1]));
    }
    println!("Pólya-Gamma draws on one core");
    for (n, c) in [1, 3, 30, 300].into_iter().flat_map(|n| [0.0, 1.0, 5.0, 50.0].map(|c| (n, c))) {
        let (sampler, mut rng) = (PolyaGamma::new(), stream(1, 0, 0, "bench"));
        let (count, start) = (5_000_000, cpu_seconds());
        let sum: f64 = (0..count).map(|_| sampler.draw_sum(n, c, &mut rng)).sum();
        let rate = f64::from(count) / (cpu_seconds() - start) / 1e6;
        println!("  PG({n}, {c}): {rate:.1} million a second (mean {:.4})", sum / f64::from(count));
    }
    println!("\none shard, 10,000 draws after 2,000 of warm-up, one thread");
    for case in CASES {
        let plan = plan(case);
        let methods = Local::ALL.into_iter().filter(|m| m.has_chains() || *m == Local::Importance);
        for method in methods {
            // Gibbs has no latents for a Gaussian model.
            let Some((summary, seconds)) = fit(&plan, method) else { continue };
            let ess = summary.diagnostics.ess.unwrap_or(f64::NAN);
            println!(
                "  {}, 1 of {}, {method}: {seconds:.2} s, ESS {ess:.0} ({:.0} a second), log Z {:.3} ± {:.4}",
                case.0,
                case.3,
                ess / seconds,
                summary.log_z.value,
                summary.log_z.se.unwrap_or(f64::NAN)
            );
        }
    }
}

/// A study's plan on one thread.
fn plan((data, formula, family, shards): (&str, &str, &str, usize)) -> Plan {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
    let path = folder.join(format!("{data}.parquet"));
    let text = format!(
        "[data]\npath = {path:?}\n[split]\nshards = {shards}\n[prior]\ndefault = \"normal(0, 1)\"\n[[model]]\nformula = {formula:?}\nfamily = {family:?}"
    );
    let study = StudyFile::parse(&text, Path::new("bench.toml")).expect("a valid study");
    Plan::new(study, 1, &Silent).expect("its data are there")
}

/// The first shard by one method, on one thread: the summary, and CPU seconds.
fn fit(plan: &Plan, method: Local) -> Option<(Summary, f64)> {
    let setting = &plan.settings[0];
    let question = Fit {
        model: setting.model.clone(),
        share: setting.share,
        order: FitOrder { method, draws: 10_000, warmup: 2_000, chains: 1, power: 1.0, seed: 1 },
        draws: false,
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    pool.install(|| {
        let start = cpu_seconds();
        let answer = question.answer(plan.engine().shard(0)).ok()?;
        Some((answer.summary, cpu_seconds() - start))
    })
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

/// Writes the first shard's design of each case, and our time on it, best of three.
fn write_shards(folder: &Path) {
    let mut ours = "case,shards,parameters,seconds,ess,log_z,se\n".to_string();
    for case in CASES {
        let plan = plan(case);
        let model = &plan.settings[0].model;
        let recipe = model.regression().expect("a regression").recipe();
        let design =
            recipe.design(&plan.engine().shard(0).data().table().expect("rows")).expect("a design");
        let mut text = format!("response,{}\n", recipe.names().join(","));
        for (i, y) in design.response.iter().enumerate() {
            let row: Vec<String> = design.columns.iter().map(|c| c[i].to_string()).collect();
            text += &format!("{y},{}\n", row.join(","));
        }
        std::fs::write(folder.join(format!("{}.csv", case.0)), text).expect("a folder to write to");
        let fits: Vec<(Summary, f64)> =
            (0..3).filter_map(|_| fit(&plan, Local::NutsWarp3)).collect();
        let seconds = fits.iter().map(|f| f.1).fold(f64::INFINITY, f64::min);
        let (summary, _) = &fits[0];
        ours += &format!(
            "{},{},{},{seconds},{},{},{}\n",
            case.0,
            case.3,
            model.dim(),
            summary.diagnostics.ess.unwrap_or(f64::NAN),
            summary.log_z.value,
            summary.log_z.se.unwrap_or(f64::NAN)
        );
    }
    std::fs::write(folder.join("ours.csv"), ours).expect("a folder to write to");
}
