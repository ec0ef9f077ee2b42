//! What each combination costs at S = 50: rounds, bytes to and from each shard, seconds, and how far it
//! is off. Then what `normal` costs by itself at S = 1000 and 100 parameters, once the shards have answered.
//! Run with: cargo bench --workspace --bench combine (`-- alone` for the latter only)

use consilience::Result;
use consilience::engine::{Answered as Called, Engine, Silent};
use consilience::fit::FitOrder;
use consilience::plan::Plan;
use consilience::question::{Answer, Answers, Fit, Question};
use consilience::simulate::{self, Format, Simulated};
use consilience::study::{Local, StudyFile};
use std::path::Path;
use std::sync::Mutex;
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
        exact: -2364.848025,
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
    if !std::env::args().any(|argument| argument == "alone") {
        all_combinations();
    }
    normal_alone();
}

/// An engine whose shards have answered already: the first shards' fits, again and again for all.
struct Answered<'a> {
    plan: &'a Plan,
    fits: Mutex<Vec<Answer>>,
    /// The clock and the CPU time when the fits were handed over.
    handed_over: Mutex<Option<(Instant, f64)>>,
}

impl Engine for Answered<'_> {
    fn shards(&self) -> usize {
        self.plan.engine().shards()
    }

    fn ask(&self, questions: &[Question], answered: &Called) -> Result<Vec<Answers>> {
        if !matches!(questions, [Question::Fit(_)]) {
            return self.plan.engine().ask(questions, answered);
        }
        let fits = std::mem::take(&mut *self.fits.lock().expect("one thread"));
        *self.handed_over.lock().expect("one thread") = Some((Instant::now(), cpu_seconds()));
        Ok(vec![Answers::Each(fits)])
    }
}

/// `normal` at S = 1000 with 100 parameters, from the moment at which all answers are there.
fn normal_alone() {
    const SHARDS: usize = 1000;
    const FITTED: usize = 10;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("alleles.parquet");
    let file = std::fs::File::create(&path).expect("a file");
    simulate::write(file, Format::Parquet, Simulated::Alleles(98), 20_000, 1, &mut |_| ())
        .expect("room for it");
    let plan = |shards: usize| {
        let text = format!(
            "[data]\npath = {path:?}\n[split]\nshards = {shards}\n[prior]\ndefault = \"normal(0, 1)\"\n[evidence]\ncombine = \"normal\"\nlocal = \"importance\"\n[[model]]\nname = \"m\"\nformula = \"y ~ .\"\nfamily = \"gaussian\"\n",
        );
        let study = StudyFile::parse(&text, Path::new("bench.toml")).expect("a valid study");
        Plan::new(study, 2, &Silent).expect("the data can be read")
    };
    // Shards of 2,000 rows answer for those of the large split.
    let (few, plan) = (plan(FITTED), plan(SHARDS));
    let (model, share) = (plan.settings[0].model.clone(), plan.settings[0].share);
    println!("\n`normal` alone, {SHARDS} shards, {} parameters", model.dim());
    let method = Local::Importance;
    let order = FitOrder { method, draws: 10_000, warmup: 2_000, chains: 1, power: 1.0, seed: 1 };
    let asked = Question::from(Fit { model, share, order, draws: false });
    let fits: Vec<Answer> =
        (0..FITTED).map(|s| asked.answer(few.engine().shard(s)).expect("a fit")).collect();
    for jackknife in [false, true] {
        let mut best = (f64::INFINITY, f64::INFINITY);
        for _ in 0..3 {
            let mut answers: Vec<Answer> = fits.iter().cycle().take(SHARDS).cloned().collect();
            if !jackknife {
                for answer in &mut answers {
                    let Answer::Fit(fit) = answer else { continue };
                    fit.summary.batches.clear();
                }
            }
            let (fits, handed_over) = (Mutex::new(answers), Mutex::new(None));
            let engine = Answered { plan: &plan, fits, handed_over };
            let result = plan.run_on(&engine, &Silent).expect("the study runs");
            let (clock, cpu) = engine.handed_over.lock().expect("one thread").expect("asked");
            assert_eq!(result.models[0].log_evidence.se.is_some(), jackknife);
            let took = (cpu_seconds() - cpu, clock.elapsed().as_secs_f64());
            best = if took < best { took } else { best };
        }
        let with = if jackknife { "with" } else { "without" };
        println!("  {with} the jackknife: {:.2} CPU-s, {:.2} s", best.0, best.1);
    }
}

/// Seconds that all threads of this process have run so far.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which stands in parentheses: the 12th and 13th field, in hundredths.
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn all_combinations() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
    println!(
        "| data and model | method | rounds | kB to a shard | kB back | seconds | log evidence | off by | trusted |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for problem in &PROBLEMS {
        for (method, evidence) in problem.methods {
            let text = format!(
                "[data]\npath = {:?}\n[split]\nshards = 50\n[prior]\ndefault = \"normal(0, 1)\"\n[evidence]\n{evidence}\n[[model]]\nname = \"m\"\nformula = {:?}\nfamily = {:?}\n",
                data.join(problem.data),
                problem.formula,
                problem.family
            );
            let study = StudyFile::parse(&text, Path::new("bench.toml")).expect("a valid study");
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
