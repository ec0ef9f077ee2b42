//! What is typed for runs between sites.

use crate::arguments::{StudyArguments, WishArguments};
use crate::duration::duration;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

pub const ASK_EXAMPLES: &str = "\
Example:
  consilience ask study.toml --run trial.run --sites leeds,york,hull
  … send trial.run/questions/0001-….question to the sites, and then:
  consilience combine trial.run answers/*.answer

Every round is one question file and one answer file per site.
docs/federation.md walks through it.

With a folder that all see, nobody carries files:
  consilience ask study.toml --run trial.run --sites leeds,york,hull
  consilience combine trial.run --watch shared
and at every site `consilience answer --watch shared …`.";

pub const ANSWER_EXAMPLES: &str = "\
Example, at the site leeds:
  consilience show 0001-….question
  consilience answer 0001-….question --data patients.csv --site leeds --look
  consilience answer 0001-….question --data patients.csv --site leeds \\
      --policy policy.toml
  consilience show leeds-0001-….answer

Only the answer file leaves the site; docs/privacy.md lists what is in it,
field by field.

Example, with a folder that the coordinator sees too (or that mail, rsync or a
cloud keeps alike):
  consilience answer --watch shared --data patients.csv --site leeds \\
      --policy policy.toml --for 8h

It answers every question for leeds that appears in shared, once each, and
writes the answers there (or into the folder --out). Each question goes
through the policy as if it were answered by hand: what the policy forbids is
refused and reported, and the watch goes on. Files that are half copied are
tried again.

It ends by itself when the coordinator (`consilience combine RUN --watch
shared`) writes into the folder that the run has ended. Where that does not
reach the site, --for or Ctrl-C ends it. Started again, it goes on where it
was: what has its answer file is not answered again.

Its exit code is 0 if the run is finished (or with --once), 2 if a question
was refused, 3 if one could not be computed or the run has failed, 4 if --for
or Ctrl-C ended it before that.";

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
    #[arg(required_unless_present = "watch", conflicts_with = "watch")]
    pub question: Option<PathBuf>,
    /// Stay and answer every question file that appears in this folder
    #[arg(long, value_name = "DIR")]
    pub watch: Option<PathBuf>,
    /// The site's data: a path or a pattern in quotes; may be given several times
    #[arg(long, value_name = "PATH", required = true)]
    pub data: Vec<String>,
    /// The site's name, as the one who asks knows it
    #[arg(long, value_name = "NAME")]
    pub site: String,
    /// The answer file to write [default: the site's name and the question's, here]; with --watch the folder to write to [default: that which is watched]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The site's policy (TOML); without one a careful one holds, and what was answered is written
    /// to answered.jsonl here. docs/federation.md lists the keys
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
    #[command(flatten)]
    pub watching: WatchingArguments,
}

/// How to watch a folder.
#[derive(Debug, Args)]
pub struct WatchingArguments {
    /// With --watch: look into the folder so often [default: 1s]
    #[arg(long, value_name = "SPAN", value_parser = duration)]
    pub every: Option<Duration>,
    /// With --watch: end after so long, such as 30m, 8h or 2d
    #[arg(long = "for", value_name = "SPAN", value_parser = duration)]
    pub longest: Option<Duration>,
    /// With --watch: answer what is there now, and end
    #[arg(long, conflicts_with_all = ["longest", "stay"])]
    pub once: bool,
    /// With --watch: stay when the run has ended, for the next that asks in this folder
    #[arg(long)]
    pub stay: bool,
}

impl WatchingArguments {
    /// Whether one of them was given.
    pub fn any(&self) -> bool {
        self.every.is_some() || self.longest.is_some() || self.once || self.stay
    }
}

/// What to show.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// A question or answer file
    pub file: PathBuf,
    /// Print all of its numbers, as JSON
    #[arg(long)]
    pub json: bool,
}

/// What to call the keys.
#[derive(Debug, Args)]
pub struct KeygenArguments {
    /// The secret key goes to NAME.key, the public one to NAME.pub
    pub name: PathBuf,
}
