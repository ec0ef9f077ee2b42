//! The codebook of a study's data.

use crate::arguments::SchemaArguments;
use crate::progress::Bar;
use crate::sources::Sources;
use consilience::data::Codebook;
use consilience::draft;
use consilience::plan::Plan;
use consilience::run::{Run, Stop};
use consilience::study::{Overrides, StudyFile};
use consilience::{Error, Place, Result};

/// Writes the codebook, and returns what is to be printed: the codebook itself, unless it is for a file.
pub fn write(arguments: &SchemaArguments) -> Result<String> {
    if let Some(out) = arguments.out.as_ref().filter(|out| !arguments.force && out.exists()) {
        let message = "this file is there already; name another, or replace it with --force";
        return Err(Error::input_at(Place::file(out), message));
    }
    let codebook = codebook(arguments)?;
    let text = format!(
        "\n# What the data say of the columns, by `consilience schema`.\n{}",
        codebook.to_toml()
    );
    match &arguments.out {
        None => Ok(text),
        Some(out) => {
            draft::write(out, text.trim_start())?;
            Ok(format!(
                "{} is written. Put it into the study, and its shards need not be asked.\n",
                out.display()
            ))
        }
    }
}

fn codebook(arguments: &SchemaArguments) -> Result<Codebook> {
    let (bar, study) = (Bar::new(!arguments.quiet), &arguments.study);
    let overrides = study.overrides();
    if study.study.is_dir() {
        let nothing = Overrides { home: overrides.home.clone(), ..Overrides::default() };
        if overrides != nothing {
            let message =
                "this is a run directory, whose study is settled; leave out what changes it";
            return Err(Error::input_at(Place::file(&study.study), message));
        }
        return Run::open(&study.study)?.codebook(&Stop, &bar);
    }
    let file = StudyFile::read_with(&study.study, &overrides)?;
    if let Some(out) = &arguments.out {
        Sources::of_study(&file, &study.study).spare(out)?;
    }
    let (room, wanted) = (study.machine.room()?, study.machine.threads());
    Plan::codebook(file, room.threads(wanted), &room, &bar)
}
