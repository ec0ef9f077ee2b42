//! How fast the samplers are: `cargo bench --bench samplers`. Prints one table; asserts nothing.

use consilience::engine::Silent;
use consilience::math::stream;
use consilience::plan::Plan;
use consilience::question::{Answer, FitOrder, Question};
use consilience::sample::PolyaGamma;
use consilience::study::{Local, Study};
use std::path::Path;
use std::time::Instant;

fn main() {
    println!("Pólya-Gamma draws on one core");
    for c in [0.0, 1.0, 5.0, 50.0] {
        let (sampler, mut rng) = (PolyaGamma::new(), stream(1, 0, 0, "bench"));
        let (count, start) = (5_000_000, Instant::now());
        let sum: f64 = (0..count).map(|_| sampler.draw(c, &mut rng)).sum();
        let rate = f64::from(count) / start.elapsed().as_secs_f64() / 1e6;
        println!("  PG(1, {c}): {rate:.1} million a second (mean {:.4})", sum / f64::from(count));
    }
    println!("\none shard, 10,000 draws after 2,000 of warm-up, one thread");
    let flights = "late ~ 0 + dep_delay + carrier";
    let toy = "y ~ x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9 + x10 + x11 + x12 + x13 + x14 + x15";
    for (data, formula, family, shards) in
        [("flights.parquet", flights, "logistic", 50), ("gauss.parquet", toy, "gaussian", 10)]
    {
        let methods = Local::ALL.into_iter().filter(|m| m.has_chains() || *m == Local::Importance);
        for method in methods {
            one_shard(data, formula, family, shards, method);
        }
    }
}

fn one_shard(data: &str, formula: &str, family: &str, shards: usize, method: Local) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data").join(data);
    let text = format!(
        "[data]\npath = {path:?}\n[split]\nshards = {shards}\n[[model]]\nformula = {formula:?}\nfamily = {family:?}"
    );
    let study = Study::parse(&text, Path::new("bench.toml")).expect("a valid study");
    let plan = Plan::new(study, 1, &Silent).expect("its data are there");
    let setting = &plan.settings[0];
    let question = Question::Fit {
        model: setting.model.clone(),
        share: setting.share,
        order: FitOrder { method, draws: 10_000, warmup: 2_000, chains: 1, seed: 1 },
    };
    let start = Instant::now();
    let Ok(Answer::Summary(summary)) = plan.engine().shard(0).answer(&question) else {
        // Gibbs has no latents for a Gaussian model.
        return;
    };
    let seconds = start.elapsed().as_secs_f64();
    let ess = summary.diagnostics.ess.unwrap_or(f64::NAN);
    println!(
        "  {data}, 1 of {shards}, {method}: {seconds:.2} s, ESS {ess:.0} ({:.0} a second), log Z {:.3} ± {:.4}",
        ess / seconds,
        summary.log_z.value,
        summary.log_z.se.unwrap_or(f64::NAN)
    );
}
