//! What is typed for runs between sites.

use crate::arguments::{StudyArguments, WishArguments};
use clap::Args;
use std::path::PathBuf;

pub const ASK_EXAMPLES: &str = "\
Example:
  consilience ask study.toml --run trial.run --sites leeds,york,hull
  … send trial.run/questions/0001-….question to the sites; when their answers are here:
  consilience combine trial.run answers/*.answer

Every round is one question file and one answer file per site. docs/federation.md walks through it.";

pub const ANSWER_EXAMPLES: &str = "\
Example, at the site leeds:
  consilience show 0001-….question
  consilience answer 0001-….question --data patients.csv --site leeds --look
  consilience answer 0001-….question --data patients.csv --site leeds --policy policy.toml
  consilience show leeds-0001-….answer

Only the answer file leaves the site; docs/privacy.md lists what is in it, field by field.";

/// What to ask whom.
#[derive(Debug, Args)]
pub struct AskArguments {
    #[command(flatten)]
    pub study: StudyArguments,
    /// The run directory to make
    #[arg(long, value_name = "DIR")]
    pub run: PathBuf,
    /// The sites' names, separated by commas; or @FILE with a name per line
    #[arg(long, value_name = "NAMES")]
    pub sites: String,
    /// Take only signed answers: a TOML file with a line `NAME = \"PUBLIC KEY\"` for every site
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
    /// Have sites tell only the sums of their answers about models: they come masked. Needs --keys
    /// and three sites or more; docs/federation.md, \"Sums only\"
    #[arg(long)]
    pub sums: bool,
    #[command(flatten)]
    pub wishes: WishArguments,
    /// Refused, since the draws of a site's chains stay with it
    #[arg(long, value_name = "DIR", hide = true)]
    pub keep_draws: Option<PathBuf>,
}

/// What to answer with which data.
#[derive(Debug, Args)]
pub struct AnswerArguments {
    /// The question file
    pub question: PathBuf,
    /// The site's data: a path or a pattern in quotes; may be given several times
    #[arg(long, value_name = "PATH", required = true)]
    pub data: Vec<String>,
    /// The site's name, as the one who asks knows it
    #[arg(long, value_name = "NAME")]
    pub site: String,
    /// The answer file to write [default: the site's name and the question's, here]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The site's policy (TOML); without one a careful one holds, and what was answered is written
    /// to answered.jsonl here. docs/federation.md lists its keys
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// The secret key to sign the answer with, made by `consilience keygen`
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// The public keys of all sites, as this site knows them (TOML, a line `NAME = \"PUBLIC KEY\"`
    /// each): needed where only sums are told
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
    /// Answer nothing: print all there is to judge, with every design column on these data, the
    /// range of the points and the budget
    #[arg(long)]
    pub look: bool,
}

/// What to show.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// A question or answer file
    pub file: PathBuf,
}

/// What to call the keys.
#[derive(Debug, Args)]
pub struct KeygenArguments {
    /// The secret key goes to NAME.key, the public one to NAME.pub
    pub name: PathBuf,
}
