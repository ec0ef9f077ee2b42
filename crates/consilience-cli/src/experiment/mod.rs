//! The six experiments of Buchholz, Ahfock & Richardson, each a sweep or a few.

mod data;
mod jump;
mod page;
mod setups;
mod summary;

use crate::arguments::{count, threads, threads_or_all, whole};
use crate::plot::PageArguments;
use crate::progress::Bar;
use crate::shell::word;
use crate::sweep::{Watching, write};
use crate::{clock, print};
use clap::Args;
use consilience::draft;
use consilience::plan::{GatheredRows, Room};
use consilience::sweep::{Bench, Document, Folder, OnThreads};
use consilience::{Error, Result};
use consilience_report::{Extras, Look, figure, report};
use data::Sources;
use setups::{Experiment, Part, Size};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

pub const EXPERIMENT_HELP: &str = "\
1  votes, Borda counts, upsampled evidences and CMC-IS beside the combination
   by normals (toy data)
2  data augmentation (Algorithm 1) and normals (Algorithm 2), random and
   stratified splits (flights)
3  Bayes factors over up to 50 splits (toy data)
4  many rows: measurements against masses of collisions (Higgs)
5  sparse regression: how the error of the overlap grows with the number of
   splits (alleles)
6  reversible jump over splits, and what is better

Every experiment is kept as it goes: one that was stopped goes on where it
was. --quick has fewer repeats, draws and rows, and takes a few minutes for
all six on two cores. The full ones take hours: 2 and 4 run samplers over all
rows, as the paper does. docs/experiments.md shows what came out.

Data are looked for in the folder of --data: flights.parquet (needed by 2),
gauss.parquet (1 and 3), sim2.parquet (6), HIGGS.csv.gz or higgs.parquet (4).
What is not there is simulated, and the result says so; only the flights
cannot be.

DIR of --out then holds a folder for each experiment (1, or 1-quick) with
summary.md, and in it one for each part: sweep.json, cells.csv, groups.csv,
figures, and a page of its own, DIR/1/votes/report.html. --report writes one
page about all that was run.

Examples:
  consilience experiment 1 --out experiments --quick
  consilience experiment 1,3 --out experiments --quick --report both.html
  consilience experiment all --out experiments --repeats 20";

/// Which experiments to run.
#[derive(Debug, Args)]
pub struct ExperimentArguments {
    /// 1 to 6, several with commas between them, or all
    #[arg(value_name = "NUMBER,…|all", value_parser = numbers)]
    pub which: Numbers,
    /// Folder for results, figures, and partitions that are done
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Partitions for each number of shards [default: 20; fewer with --quick; the paper's 6 for the errors of experiment 5]
    #[arg(long, value_name = "N", value_parser = whole)]
    pub repeats: Option<u64>,
    /// A small version of each, for a look
    #[arg(long)]
    pub quick: bool,
    /// Where the data are
    #[arg(long, value_name = "DIR", default_value = "data")]
    pub data: PathBuf,
    /// Threads to work on [default: all cores]; the result does not depend on it
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<u64>,
    #[command(flatten)]
    pub page: PageArguments,
    /// No progress bar
    #[arg(long, short)]
    pub quiet: bool,
}

/// Numbers of experiments.
#[derive(Debug, Clone)]
pub struct Numbers(Vec<usize>);

fn numbers(text: &str) -> std::result::Result<Numbers, String> {
    if text.trim() == "all" {
        return Ok(Numbers((1..=6).collect()));
    }
    let number = |word: &str| {
        let found: Option<usize> = word.trim().parse().ok();
        found.filter(|n| (1..=6).contains(n)).ok_or("write 1 to 6, or all".to_string())
    };
    text.split(',').map(number).collect::<std::result::Result<_, _>>().map(Numbers)
}

pub fn run(arguments: &ExperimentArguments) -> Result<ExitCode> {
    draft::make_folder(&arguments.out)?;
    if arguments.repeats == Some(0) {
        return Err(Error::input("--repeats must be at least 1"));
    }
    let size = Size { quick: arguments.quick, repeats: arguments.repeats.map(count) };
    let made = arguments.out.join("data");
    arguments.page.check(&page::spared(&[&arguments.data, &made]))?;
    let sources = Sources::new(&arguments.data, &made, arguments.quiet);
    // What is missing should be known before hours of work.
    let experiments: Vec<Experiment> = arguments
        .which
        .0
        .iter()
        .map(|&number| Experiment::new(number, size, &sources))
        .collect::<Result<_>>()?;
    let threads = threads_or_all(arguments.threads);
    let mut found = Vec::new();
    for experiment in &experiments {
        let start = Instant::now();
        let folder = arguments.out.join(experiment.folder(size));
        draft::make_folder(&folder)?;
        let mut documents = Vec::new();
        for part in &experiment.parts {
            let bar = Bar::new(!arguments.quiet);
            if !arguments.quiet {
                bar.note(&format!("experiment {}: {}", experiment.number, part.title));
            }
            documents.push(compute(part, &folder.join(part.name), threads, &bar)?);
        }
        let text = summary::of(experiment, &documents);
        draft::write(&folder.join("summary.md"), &text)?;
        write_figures(experiment, &documents, &folder)?;
        print(&text)?;
        print(&format!(
            "\nIn {:.0} s on {threads} threads. Figures and pages: {}\n\n",
            start.elapsed().as_secs_f64(),
            word(&folder)
        ))?;
        if arguments.page.report.is_some() {
            found.push(page::Found { experiment, documents, folder });
        }
    }
    if let Some(path) = &arguments.page.report {
        draft::write(path, page::of(&found))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One part's partitions, and what they show.
fn compute(part: &Part, folder: &Path, threads: usize, bar: &Bar) -> Result<Document> {
    draft::make_folder(folder)?;
    let room = Room::default();
    let rows = GatheredRows::read(part.study.clone(), threads, &room, bar)?;
    let rows = if part.every > 1 { rows.every(part.every)? } else { rows };
    let kept = Folder::new(folder, &part.study, &rows.hashes()?)?;
    let bench: Box<dyn Bench> = match &part.jump {
        Some(models) => Box::new(jump::OnJumps::new(rows, models.clone(), threads)),
        None => Box::new(OnThreads::new(rows, threads, room, clock::of_threads())),
    };
    let watch = Watching(bar);
    let document = match &part.jump {
        Some(models) => part.sweep.run_models(models, &*bench, &kept, &watch)?,
        None => part.sweep.run(&part.study, &*bench, &kept, &watch)?,
    };
    bar.clear();
    write(&document, folder)?;
    Ok(document)
}

/// The figures of the experiment, and a page for every part of it.
fn write_figures(experiment: &Experiment, documents: &[Document], folder: &Path) -> Result<()> {
    for (part, document) in experiment.parts.iter().zip(documents) {
        let drawn = page::drawn(document);
        let own = folder.join(part.name);
        let extras = Extras {
            title: Some(format!("Experiment {}: {}", experiment.number, part.title)),
            ..page::about(part)
        };
        draft::write(&own.join("report.html"), report(&drawn, &extras))?;
        for kind in part.figures {
            // Errors of the overlap need two numbers of shards, times a clock.
            if let Ok(picture) = figure(&drawn, kind, &Look::default()) {
                draft::write(&own.join(format!("{kind}.svg")), picture)?;
            }
        }
    }
    Ok(())
}
