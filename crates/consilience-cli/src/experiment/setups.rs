//! What each experiment runs.

use super::data::{Source, Sources};
use consilience::Result;
use consilience::simulate::Simulated;
use consilience::study::{Combine, Kernel, Local, Overrides, SplitBy, StudyFile};
use consilience::sweep::Sweep;
use std::fmt::Write;
use std::path::Path;

/// How large experiments are.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub quick: bool,
    pub repeats: Option<usize>,
}

impl Size {
    /// The repeats that were asked for, or these.
    fn repeats(self, full: usize, quick: usize) -> usize {
        self.repeats.unwrap_or(if self.quick { quick } else { full })
    }

    fn pick<T>(self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }
}

/// An experiment: sweeps that belong together.
pub struct Experiment {
    pub number: usize,
    pub title: &'static str,
    pub parts: Vec<Part>,
    /// Where its data are from.
    pub says: String,
}

/// One sweep of it.
pub struct Part {
    /// A folder's name.
    pub name: &'static str,
    pub title: String,
    pub study: StudyFile,
    /// Every so many-th row is taken.
    pub every: usize,
    pub sweep: Sweep,
    /// Which figures are drawn.
    pub figures: &'static [&'static str],
    /// The models of a study with [select] whose Bayes factors come from reversible jump, by their terms.
    pub jump: Option<Vec<String>>,
}

const TOY: &str = include_str!("../../../../examples/toy.toml");
const FLIGHTS: &str = include_str!("../../../../examples/flights.toml");
const HIGGS: &str = include_str!("../../../../examples/higgs.toml");
const RJMCMC: &str = include_str!("../../../../examples/rjmcmc.toml");

/// Rows of the Higgs data set.
const COLLISIONS: u64 = 11_000_000;

impl Experiment {
    /// The experiment of this number, its data found or simulated.
    pub fn new(number: usize, size: Size, sources: &Sources) -> Result<Experiment> {
        match number {
            1 => votes(size, sources),
            2 => augmentation(size, sources),
            3 => factors(size, sources),
            4 => collisions(size, sources),
            5 => sparse(size, sources),
            _ => jumps(size, sources),
        }
    }

    /// Its folder's name.
    pub fn folder(&self, size: Size) -> String {
        format!("{}{}", self.number, size.pick("", "-quick"))
    }
}

/// A study of an example, on these data, with draws of seeds from 1 on. Small ones have the same bits on every CPU.
fn study(text: &str, name: &str, size: Size, data: &Source, rest: Overrides) -> Result<StudyFile> {
    let data = Some(vec![data.path.display().to_string()]);
    let kernel = size.quick.then_some(Kernel::Portable);
    let overrides = Overrides { data, kernel, seed: Some(1), split_seed: Some(1), ..rest };
    StudyFile::parse_with(text, Path::new(name), &overrides)
}

fn sweep(shards: &[usize], repeats: usize, combine: &[Combine]) -> Sweep {
    Sweep {
        shards: shards.to_vec(),
        repeats,
        by: vec![SplitBy::Random],
        combine: combine.to_vec(),
        votes: false,
        reference: None,
    }
}

const ALGORITHM_2: [Combine; 3] = [Combine::Normal, Combine::NormalUncorrected, Combine::Exact];

fn votes(size: Size, sources: &Sources) -> Result<Experiment> {
    let data = sources.find_or_simulate(&["gauss.parquet"], Simulated::Toy, 10_000)?;
    let local = Some(Local::Importance);
    let methods = [Combine::Normal, Combine::NormalUncorrected, Combine::CmcIs, Combine::Exact];
    let part = Part {
        name: "votes",
        title: "votes, upsampled evidences and CMC-IS on the toy data".into(),
        study: study(
            TOY,
            "toy.toml",
            size,
            &data,
            Overrides { local, draws: Some(size.pick(10_000, 2_000)), ..Overrides::default() },
        )?,
        every: 1,
        sweep: Sweep {
            votes: true,
            ..sweep(&[1, 2, 5, 10, 20, 50], size.repeats(20, 20), &methods)
        },
        figures: &["choices", "error", "rmse"],
        jump: None,
    };
    Ok(Experiment {
        number: 1,
        title: "Voting schemes and CMC-IS",
        parts: vec![part],
        says: data.says,
    })
}

fn augmentation(size: Size, sources: &Sources) -> Result<Experiment> {
    let data = sources.flights()?;
    let every = size.pick(1, 10);
    let rows = if size.quick { ", every tenth row" } else { "" };
    let options = |local, draws| Overrides {
        local: Some(local),
        draws: Some(draws),
        warmup: Some(draws / 4 + 100),
        ..Overrides::default()
    };
    let repeats = size.repeats(20, 3);
    let shards = &[10, 20, 50];
    let normals = Part {
        name: "normals",
        title: format!("Algorithm 2 on the flights{rows}"),
        study: study(
            FLIGHTS,
            "flights.toml",
            size,
            &data,
            options(Local::Importance, size.pick(10_000, 4_000)),
        )?,
        every,
        sweep: sweep(shards, repeats, &ALGORITHM_2),
        figures: &["error", "rmse", "bayes-factor"],
        jump: None,
    };
    let augmented = Part {
        name: "augmentation",
        title: format!("Algorithm 1 on the flights{rows}, random and stratified"),
        study: study(
            FLIGHTS,
            "flights.toml",
            size,
            &data,
            options(Local::GibbsChib, size.pick(8_000, 300)),
        )?,
        every,
        sweep: Sweep {
            by: vec![SplitBy::Random, SplitBy::Outcome, SplitBy::Cluster],
            ..sweep(shards, size.repeats(20, 2), &[Combine::Augmented, Combine::Exact])
        },
        figures: &["error", "rmse"],
        jump: None,
    };
    Ok(Experiment {
        number: 2,
        title: "Data augmentation and normals",
        parts: vec![normals, augmented],
        says: data.says,
    })
}

fn factors(size: Size, sources: &Sources) -> Result<Experiment> {
    let data = sources.find_or_simulate(&["gauss.parquet"], Simulated::Toy, 10_000)?;
    let part = Part {
        name: "bayes-factors",
        title: "Bayes factors over splits of the toy data".into(),
        study: study(
            TOY,
            "toy.toml",
            size,
            &data,
            Overrides {
                local: Some(Local::Importance),
                draws: Some(size.pick(10_000, 2_000)),
                ..Overrides::default()
            },
        )?,
        every: 1,
        sweep: sweep(
            size.pick(
                &[1, 2, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50][..],
                &[1, 5, 10, 20, 30, 40, 50],
            ),
            size.repeats(20, 5),
            &ALGORITHM_2,
        ),
        figures: &["bayes-factor", "overlap-share", "rmse"],
        jump: None,
    };
    Ok(Experiment {
        number: 3,
        title: "Bayes factors over splits",
        parts: vec![part],
        says: data.says,
    })
}

fn collisions(size: Size, sources: &Sources) -> Result<Experiment> {
    let rows = size.pick(COLLISIONS, 100_000);
    let data = match size.quick {
        true => sources.simulate(Simulated::Higgs, rows)?,
        false => sources.find_or_simulate(
            &["HIGGS.csv.gz", "HIGGS.csv", "higgs.parquet"],
            Simulated::Higgs,
            rows,
        )?,
    };
    let importance = Overrides {
        local: Some(Local::Importance),
        draws: Some(size.pick(10_000, 2_000)),
        ..Overrides::default()
    };
    let chains = Overrides {
        local: Some(Local::NutsWarp3),
        draws: Some(size.pick(8_000, 2_000)),
        warmup: Some(size.pick(2_000, 500)),
        ..Overrides::default()
    };
    let all = Part {
        name: "all-rows",
        title: format!("{rows} collisions"),
        study: study(HIGGS, "higgs.toml", size, &data, importance)?,
        every: 1,
        sweep: sweep(size.pick(&[100, 500, 1000], &[10, 50]), 1, &ALGORITHM_2),
        figures: &["error", "time"],
        jump: None,
    };
    let nuts = Part {
        name: "nuts",
        title: format!(
            "NUTS and bridges as in the paper, {} collisions",
            size.pick(220_000, 10_000)
        ),
        study: study(HIGGS, "higgs.toml", size, &data, chains)?,
        every: size.pick(50, 10),
        sweep: sweep(size.pick(&[2, 10, 20], &[2, 5]), size.repeats(20, 4), &ALGORITHM_2),
        figures: &["error", "time"],
        jump: None,
    };
    Ok(Experiment { number: 4, title: "Many rows", parts: vec![all, nuts], says: data.says })
}

/// The paper's numbers of splits for the errors of the overlap.
const MANY: [usize; 14] = [1, 2, 4, 5, 8, 10, 15, 20, 25, 30, 35, 40, 45, 50];

fn sparse(size: Size, sources: &Sources) -> Result<Experiment> {
    let designs: &[(&str, u64, usize)] =
        size.pick(&[("table", 10_000, 40), ("text", 13_235, 100)], &[("table", 10_000, 40)]);
    let (mut parts, mut says) = (Vec::new(), Vec::new());
    for &(name, rows, loci) in designs {
        let data = sources.simulate(Simulated::Alleles(loci), rows)?;
        let options = Overrides {
            local: Some(Local::NutsWarp3),
            draws: Some(size.pick(8_000, 2_000)),
            warmup: Some(size.pick(2_000, 500)),
            ..Overrides::default()
        };
        let part = |suffix: &'static str, title: &str, shards: &[usize], repeats| -> Result<Part> {
            Ok(Part {
                name: suffix,
                title: format!("{title}: {rows} people, {} and {loci} loci", loci / 2),
                study: study(&alleles(loci), "alleles.toml", size, &data, options.clone())?,
                every: 1,
                sweep: sweep(shards, repeats, &ALGORITHM_2),
                figures: &["rmse", "epsilon", "error"],
                jump: None,
            })
        };
        let names =
            if name == "text" { ["text-table", "text-errors"] } else { ["table", "errors"] };
        parts.push(part(
            names[0],
            "errors of the evidence",
            &[5, 10, 20, 50],
            size.repeats(20, 4),
        )?);
        if !size.quick {
            parts.push(part(names[1], "errors of the overlap", &MANY, size.repeats(6, 2))?);
        }
        says.push(data.says);
    }
    Ok(Experiment { number: 5, title: "Sparse regression", parts, says: says.join("; ") })
}

/// The study of experiment 5: half of the loci, or all, under Laplace priors.
fn alleles(loci: usize) -> String {
    let sum =
        |count: usize| (1..=count).map(|j| format!("locus_{j}")).collect::<Vec<_>>().join(" + ");
    let mut text = String::from(
        "[data]\npath = \"alleles.parquet\"\n[prior]\ndefault = \"normal(0, 1)\"\ncoefficients = \"laplace(0, 1)\"\n",
    );
    for count in [loci / 2, loci] {
        let _ = write!(
            text,
            "[[model]]\nname = \"{count} loci\"\nformula = \"y ~ {}\"\nfamily = \"gaussian\"\n",
            sum(count)
        );
    }
    text
}

fn jumps(size: Size, sources: &Sources) -> Result<Experiment> {
    let data = sources.find_or_simulate(&["sim2.parquet"], Simulated::Rjmcmc(4_000), 4_000)?;
    let options = Overrides {
        draws: Some(size.pick(100_000, 4_000)),
        warmup: Some(size.pick(25_000, 1_000)),
        ..Overrides::default()
    };
    let part = |name: &'static str, candidates: &str, models: [&str; 3]| -> Result<Part> {
        let text = RJMCMC.replace("x1 + x2 + x3 + x4 + x5\"", &format!("{candidates}\""));
        Ok(Part {
            name,
            title: format!("Bayes factors of {}", models.join(", ")),
            study: study(&text, "rjmcmc.toml", size, &data, options.clone())?,
            every: 1,
            sweep: Sweep {
                votes: true,
                ..sweep(
                    size.pick(&[1, 2, 3, 5, 10], &[1, 3, 10]),
                    size.repeats(20, 2),
                    &[Combine::Exact],
                )
            },
            figures: &["bayes-factor"],
            jump: Some(models.map(String::from).into()),
        })
    };
    // The paper's table has models with x1; its numbers are of those without, of a run in which x1 was no candidate.
    let parts = vec![
        part(
            "with-x1",
            "x1 + x2 + x3 + x4 + x5",
            ["x1 + x2 + x3 + x5", "x1 + x4 + x5", "x1 + x2 + x5"],
        )?,
        part("without-x1", "x2 + x3 + x4 + x5", ["x2 + x3 + x5", "x2 + x4 + x5", "x2 + x5"])?,
    ];
    Ok(Experiment { number: 6, title: "Reversible jump over splits", parts, says: data.says })
}
