//! Tests of the study file.

mod good;
mod priors;
mod wrong;

use super::*;

/// The least that `[data]` can be: two lines.
const DATA: &str = "[data]\npath = \"d.csv\"\n";
/// The least that a model can be: three lines.
const MODEL: &str = "[[model]]\nformula = \"y ~ x\"\nfamily = \"gaussian\"\n";

fn parse(text: &str) -> Result<Study> {
    Study::parse(text, "folder/study.toml".as_ref())
}
