//! How many splits do the data bear?

pub mod arguments;
mod replaced;
mod tables;

use crate::progress::Bar;
use crate::shell::{tell, word};
use crate::sources::Sources;
use crate::{UNRELIABLE, clock, plot, print, slurm};
use arguments::SweepArguments;
use consilience::draft;
use consilience::engine::{Observer, Silent};
use consilience::plan::GatheredRows;
use consilience::study::StudyFile;
use consilience::sweep::{Bench, CellStore, Document, Folder, OnThreads, Sweep, Watch};
use consilience::{Error, Result};
use std::path::Path;
use std::process::ExitCode;

/// What is written beside the partitions.
const FILES: [&str; 4] = ["sweep.json", "cells.csv", "groups.csv", "times.json"];

pub fn run(arguments: &SweepArguments) -> Result<ExitCode> {
    let file = StudyFile::read_with(&arguments.study, &arguments.overrides())?;
    let sources = Sources::of_study(&file, &arguments.study);
    sources.spare_in(arguments.out.as_ref(), &FILES)?;
    // A page may be meant for this folder.
    if let Some(folder) = &arguments.out {
        draft::make_folder(folder)?;
    }
    arguments.page.check(&sources)?;
    let sweep = arguments.sweep();
    sweep.check(&file)?;
    let bar = Bar::new(!arguments.quiet);
    let document = match arguments.engine.engine {
        slurm::EngineName::Threads => {
            arguments.engine.refuse_leftovers()?;
            let (room, threads) = (arguments.machine.room()?, arguments.machine.threads());
            let rows = GatheredRows::read(file.clone(), threads, &room, &bar)?;
            let kept = kept(arguments.out.as_deref(), &file, || rows.hashes())?;
            let bench = OnThreads::new(rows, threads, room, clock::of_threads());
            go(&sweep, &file, &bench, &*kept, &bar)?
        }
        slurm::EngineName::Slurm => {
            let Some(out) = &arguments.out else {
                return Err(Error::input(
                    "a sweep on a cluster keeps its partitions in a folder that all nodes see; name it by --out",
                ));
            };
            let bench = slurm::OnSlurm::new(
                &file,
                out,
                &arguments.engine,
                arguments.machine.room()?,
                &bar,
            )?;
            let kept = kept(Some(out), &file, || bench.hashes())?;
            go(&sweep, &file, &bench, &*kept, &bar)?
        }
    };
    bar.clear();
    if let Some(folder) = &arguments.out {
        write(&document, folder)?;
    }
    let json = written(&document);
    arguments.page.write(&json, plot::of_file(&file.study, &arguments.study))?;
    if arguments.json {
        print(&json)?;
    } else {
        print(&tables::of(&document))?;
        if let Some(folder) = &arguments.out {
            print(&format!("\nAll numbers: {}\n", word(&folder.join("sweep.json"))))?;
        }
    }
    Ok(if document.is_reliable() { ExitCode::SUCCESS } else { ExitCode::from(UNRELIABLE) })
}

/// Where partitions are kept.
fn kept(
    out: Option<&Path>,
    file: &StudyFile,
    data: impl FnOnce() -> Result<Vec<String>>,
) -> Result<Box<dyn CellStore>> {
    Ok(match out {
        Some(folder) => Box::new(Folder::new(folder, file, &data()?)?),
        None => Box::new(()),
    })
}

fn go(
    sweep: &Sweep,
    file: &StudyFile,
    bench: &dyn Bench,
    kept: &dyn CellStore,
    bar: &Bar,
) -> Result<Document> {
    sweep.run(file, bench, kept, &Watching(bar))
}

/// The JSON document.
pub fn written(document: &Document) -> String {
    serde_json::to_string_pretty(document).expect("a sweep can be written") + "\n"
}

/// Writes the document, without times so that it has the same bytes each time, and the tables. If the place of results of
/// more is taken, that is said.
pub fn write(document: &Document, folder: &Path) -> Result<()> {
    let timeless = Document { times: None, ..document.clone() };
    let [sweep, cells, groups, spent] = FILES.map(|name| folder.join(name));
    if let Some(replaced) = replaced::by(document, &sweep) {
        tell(&replaced);
    }
    draft::write(&sweep, written(&timeless))?;
    draft::write(&cells, document.cells_csv())?;
    draft::write(&groups, document.groups_csv())?;
    if let Some(times) = &document.times {
        let text = serde_json::to_string_pretty(times).expect("times can be written") + "\n";
        draft::write(&spent, text)?;
    }
    Ok(())
}

/// A bar that counts partitions.
pub struct Watching<'a>(pub &'a Bar);

impl Watch for Watching<'_> {
    fn cells(&self, done: usize, all: usize) {
        self.0.partitions(done, all);
    }

    fn within(&self) -> &dyn Observer {
        &Silent
    }
}
