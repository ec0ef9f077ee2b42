//! What each combination costs at S = 50: rounds, bytes to and from each shard, seconds, and how far it
//! is off. Run with: cargo bench --workspace --bench combine

use consilience::engine::Silent;
use consilience::plan::Plan;
use consilience::study::Study;
use std::path::Path;
use std::time::Instant;

struct Problem {
    name: &'static str,
    data: &'static str,
    formula: &'static str,
    family: &'static str,
    /// The exact log evidence (data/truth.json).
    exact: f64,
    methods: &'static [(&'static str, &'static str)],
}

const PROBLEMS: [Problem; 4] = [
    Problem {
        name: "flights, one slope",
        data: "flights.parquet",
        formula: "late ~ 0 + dep_delay + carrier",
        family: "logistic",
        exact: -147546.42148659655,
        methods: &[EXACT, SOBOL, NORMAL, CMC_IS],
    },
    Problem {
        name: "flights, a slope per carrier",
        data: "flights.parquet",
        formula: "late ~ 0 + carrier + carrier:dep_delay",
        family: "logistic",
        exact: -147111.97507,
        methods: &[EXACT, SOBOL, NORMAL, CMC_IS],
    },
    Problem {
        name: "sim2, all covariates",
        data: "sim2.parquet",
        formula: "y ~ x1 + x2 + x3 + x4 + x5",
        family: "logistic",
        exact: -2364.8469,
        methods: &[EXACT, SOBOL, NORMAL, CMC_IS, ("augmented", "combine = \"augmented\"")],
    },
    Problem {
        name: "Gaussian toy, model 6",
        data: "gauss.parquet",
        formula: "y ~ x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9 + x10 + x11 + x12 + x13 + x14 + x15",
        family: "gaussian",
        exact: -14316.33575192097,
        methods: &[
            ("exact, statistics", ""),
            ("exact, rounds", "statistics = false"),
            ("exact, rounds, Sobol", "statistics = false\npoints = \"sobol\""),
            ("normal, quadrature", "combine = \"normal\""),
            NORMAL,
            CMC_IS,
        ],
    },
];

const EXACT: (&str, &str) = ("exact", "");
const SOBOL: (&str, &str) = ("exact, Sobol", "points = \"sobol\"");
const NORMAL: (&str, &str) = ("normal, importance", "combine = \"normal\"\nlocal = \"importance\"");
const CMC_IS: (&str, &str) = ("cmc-is, importance", "combine = \"cmc-is\"\nlocal = \"importance\"");

fn main() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
    println!(
        "| data and model | method | rounds | kB to a shard | kB back | seconds | log evidence | off by | trusted |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for problem in &PROBLEMS {
        for (method, evidence) in problem.methods {
            let text = format!(
                "[data]\npath = {:?}\n[split]\nshards = 50\n[evidence]\n{evidence}\n[[model]]\nname = \"m\"\nformula = {:?}\nfamily = {:?}\n",
                data.join(problem.data),
                problem.formula,
                problem.family
            );
            let study = Study::parse(&text, Path::new("bench.toml")).expect("a valid study");
            let plan = Plan::new(study, 2, &Silent).expect("the data can be read");
            let start = Instant::now();
            let result = plan.run(&Silent).expect("the study runs");
            let seconds = start.elapsed().as_secs_f64();
            let found = result.models[0].log_evidence;
            println!(
                "| {} | {method} | {} | {:.0} | {:.0} | {seconds:.2} | {:.3} ± {:.3} | {:+.3} | {} |",
                problem.name,
                result.rounds,
                result.traffic.bytes_sent as f64 / 50e3,
                result.traffic.bytes_received as f64 / 50e3,
                found.value,
                found.se.unwrap_or(f64::NAN),
                found.value - problem.exact,
                if result.is_reliable() { "yes" } else { "no" }
            );
        }
    }
}
