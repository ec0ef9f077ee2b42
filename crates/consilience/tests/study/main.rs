//! Tests of the study file.

mod good;
mod hash;
mod priors;
mod schema;
mod template;
mod wrong;

use consilience::Result;
use consilience::study::{Study, StudyFile};

/// The least that `[data]` can be: two lines.
const DATA: &str = "[data]\npath = \"d.csv\"\n";
/// The least that a model can be: three lines.
const MODEL: &str = "[[model]]\nformula = \"y ~ x\"\nfamily = \"gaussian\"\n";

fn file(text: &str) -> Result<StudyFile> {
    StudyFile::parse(text, "folder/study.toml".as_ref())
}

/// A study of files.
fn parse(text: &str) -> Result<Study> {
    let file = file(text)?;
    file.paths()?;
    Ok(file.study)
}
