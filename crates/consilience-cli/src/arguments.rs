//! What is typed.

use crate::experiment::{EXPERIMENT_HELP, ExperimentArguments};
use crate::machine::MachineArguments;
use crate::manual::{COMPLETIONS_EXAMPLES, CompletionsArguments, MAN_EXAMPLES, ManArguments};
use crate::plot::{PLOT_HELP, PageArguments, PlotArguments};
use crate::run::arguments::{
    COMBINE_HELP, CombineArguments, SPLIT_EXAMPLES, SplitArguments, StatusArguments, WorkArguments,
};
use crate::sites::arguments::{
    ANSWER_EXAMPLES, ASK_EXAMPLES, AnswerArguments, AskArguments, KeygenArguments, ShowArguments,
};
use crate::slurm::{EngineArguments, StepArguments};
use crate::sweep::arguments::{SWEEP_EXAMPLES, SweepArguments};
use clap::{Args, Parser, Subcommand};
use consilience::plan::Extras;
use consilience::simulate::alleles;
use consilience::study::{Combine, Kernel, Local, Overrides, SelectBy, Sizes, SplitBy, Study};
use consilience::{Error, draft};
use std::path::PathBuf;

/// Bayesian model choice on data that is split over shards: which model do the data support, with
/// what probability, and how sure is that answer?
#[derive(Debug, Parser)]
#[command(name = "consilience", version, propagate_version = true, max_term_width = 80, after_help = EXIT_CODES)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Start with `consilience init DATA.csv`, which writes a study file with
comments, then `consilience compare` it.

Exit codes:
  0  fine
  1  the run finished, but a warning says that its result is unreliable
  2  wrong usage or input
  3  failure on the way
  4  not finished: answers of others are awaited (combine), or questions
     (answer --watch)";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compute every model's log evidence and compare the models
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArguments),
    /// Choose among all subsets of candidate terms: how likely does each belong in the model?
    #[command(after_help = SELECT_EXAMPLES)]
    Select(SelectArguments),
    /// How many splits do the data bear? Runs a study over numbers of shards, partitions and combinations
    #[command(after_help = SWEEP_EXAMPLES)]
    Sweep(Box<SweepArguments>),
    /// Run the six experiments of Buchholz, Ahfock & Richardson, with figures
    #[command(after_help = EXPERIMENT_HELP)]
    Experiment(ExperimentArguments),
    /// Choose by votes and by every combination, side by side
    #[command(after_help = BASELINES_EXAMPLES)]
    Baselines(BaselinesArguments),
    /// Draw a figure of a result
    #[command(after_help = PLOT_HELP)]
    Plot(PlotArguments),
    /// Check a study and its data and say what would be run, without running it
    Check(StudyArguments),
    /// Write a study file with comments for a data file
    #[command(after_help = INIT_EXAMPLES)]
    Init(InitArguments),
    /// Write the codebook of a study's data: with it as [schema], shards need not be asked about columns
    #[command(after_help = SCHEMA_EXAMPLES)]
    Schema(SchemaArguments),
    /// Write simulated data of any size, to try things on
    #[command(after_help = SIMULATE_EXAMPLES)]
    Simulate(SimulateArguments),
    /// Split a study's data into a run directory, for workers on this or other machines
    #[command(after_help = SPLIT_EXAMPLES)]
    Split(SplitArguments),
    /// Answer the open questions of a run directory's shards
    Work(WorkArguments),
    /// Combine the answers in a run directory: ask the next round, or print the result
    #[command(after_help = COMBINE_HELP)]
    Combine(CombineArguments),
    /// Show how far a run is: rounds, shards answered, missing, failed
    Status(StatusArguments),
    /// Ask sites whose data stay with them: makes a question file to send to them
    #[command(after_help = ASK_EXAMPLES)]
    Ask(AskArguments),
    /// At a site: answer a question file with the site's own data
    #[command(after_help = ANSWER_EXAMPLES)]
    Answer(AnswerArguments),
    /// Say in plain words what a question or answer file holds
    Show(ShowArguments),
    /// Make a pair of keys with which a site signs its answers
    Keygen(KeygenArguments),
    /// Print a script by which a shell completes commands and flags
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArguments),
    /// Print the manual page, or write one for every command
    #[command(after_help = MAN_EXAMPLES)]
    Man(ManArguments),
    /// One step of a detached Slurm run, for the jobs themselves
    #[command(hide = true)]
    SlurmStep(StepArguments),
}

const COMPARE_EXAMPLES: &str = "\
Examples:
  consilience compare examples/flights.toml
  consilience compare examples/flights.toml --shards 200 --split-seed 3
  consilience compare examples/flights.toml --combine normal --local importance
  consilience compare examples/flights.toml --parameters --posterior draws
  consilience compare examples/flights.toml --prior-scale 0.5,1,2,5
  consilience compare examples/flights.toml --leave-one-out
  consilience compare examples/flights.toml --report flights.html
  consilience compare examples/flights.toml --json | jq '.models[].log_evidence'
  consilience compare examples/flights.toml --engine slurm \\
      --slurm-args '--partition=short'

The result is a table of log evidences with standard errors, log Bayes factors
against the best model with Kass and Raftery's words for them, and posterior
model probabilities with 95% intervals (from the standard errors); below it
stands what should be known about them. With --json the same comes as one JSON
document (docs/json.md describes it).";

const SELECT_EXAMPLES: &str = "\
The study has [select] in the place of [[model]]:
  [select]
  outcome = \"late\"
  family = \"logistic\"
  candidates = \"dep_delay + carrier + carrier:dep_delay\"  # \".\": all columns
  # always = \"1\"            # terms that every model has
  # heredity = \"strong\"   # interactions only with their main effects; weak, none
  # prior = \"beta-binomial(1, P)\"   # uniform, bernoulli(0.2), sizes(1, 2, 1)
  # method = \"auto\"         # enumerate, search, reversible-jump, jump-shares
  # top = 20                # models to list
  # se_target = 0.005       # error of an inclusion probability to aim at

Examples:
  consilience select examples/select.toml
  consilience select examples/select.toml --top 5 \\
      --models 'glu + bmi, glu + bmi + age'
  consilience select examples/select.toml --report select.html
  consilience select examples/select.toml --json |
      jq '.inclusion[] | {term, probability, se}'

The result is the probability of every candidate and of the likeliest models,
each with its standard error, the probability of all models that are not
listed, and coefficients averaged over all models. docs/select.md teaches it
on real data.";

const BASELINES_EXAMPLES: &str = "\
Majority vote and Borda count rank the models on every shard and count; the
product of local probabilities multiplies them over the shards; upsampling has
every shard stand for all of the data and takes the mean, the median or the
mean of logs. Beside them stand the combinations: normal, normal-uncorrected,
cmc-is, augmented (logistic and probit models with normal priors) and exact.
Votes lose to the truth as shards get smaller: this command shows when. The
exit code is 1 where the table marks a method as unreliable.

Examples:
  consilience baselines examples/flights.toml
  consilience baselines study.toml --shards 50 --json";

const INIT_EXAMPLES: &str = "\
Examples:
  consilience init patients.csv
  consilience init patients.csv --outcome cured --out cured.toml
  consilience init 'parts/*.parquet' --out - | less";

const SCHEMA_EXAMPLES: &str = "\
Before anything is computed shards are asked which levels factors have, and
what the mean and sd are that scale() and others need: a round or more. A
study that states this under [schema] asks nothing of the kind; its rows are
checked against it on the way. The command prints such a [schema], with all
digits, so that results have the same bits:

  [schema]
  carrier = { levels = [\"9E\", \"AA\", \"DL\"] }   # the reference first
  dep_delay = { type = \"number\" }
  # for scale(distance)
  distance = { type = \"number\", mean = 1048.37, sd = 735.91 }
  # the outcome
  late = { type = \"number\", mean = 0.4, sd = 0.49, observations = 327346 }

Levels may be put in another order and rare ones taken out of the data; mean
and sd may come from earlier data: they define what scale() is. A [schema]
that the study has already is not looked at. Of a run directory the answers
are taken that its shards have given. docs/study.md describes every key.

Examples:
  consilience schema study.toml
  consilience schema study.toml >> study.toml
  consilience schema study.toml --out schema.toml
  consilience schema run/";

const SIMULATE_EXAMPLES: &str = "\
higgs: collisions of the shape of the UCI HIGGS data set. A label, 21
measurements (momenta, angles, b-tags) and seven masses computed from them,
with an error; the label depends on the masses, so that of the two models in
examples/higgs.toml the one of the masses is right. Parquet files have names;
.csv and .csv.gz have no header line, as HIGGS.csv.gz has none.

alleles: an outcome y and doses 0, 1, 2 of the rare allele at linked loci, of
which one in twenty has an effect, for sparse regression.

toy: the paper's Gaussian toy. An outcome y and covariates x1 to x15 at
correlation 0.9; the coefficients are drawn with the seed. The six models of
examples/toy.toml are hard to tell apart.

rjmcmc: the paper's data for reversible jump. A binary y and features x1 to x5
at correlation 0.9, of which x3 has a small effect in the second half of the
rows and none in the first.

Examples:
  consilience simulate higgs --rows 1000000 --out higgs.parquet
  consilience compare examples/higgs.toml --data higgs.parquet
  consilience simulate alleles --rows 132353 --columns 100 --out alleles.parquet
  consilience compare examples/alleles.toml --data alleles.parquet
  consilience simulate toy --seed 3 --out toy.parquet
  consilience compare examples/toy.toml --data toy.parquet";

/// A study, and what to change in it.
#[derive(Debug, Args)]
pub struct StudyArguments {
    /// The study file (TOML)
    pub study: PathBuf,
    /// Data instead of the study's: a path or a glob, relative to here; may be given several times
    #[arg(long, value_name = "PATH")]
    pub data: Vec<String>,
    /// Number of shards
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    pub shards: Option<u64>,
    /// What decides the shard of a row: random, outcome, cluster, file or column:NAME
    #[arg(long, value_name = "RULE")]
    pub by: Option<SplitBy>,
    /// How many rows each shard gets: equal, or multinomial (every row at random; by random only)
    #[arg(long, value_name = "KIND")]
    pub sizes: Option<Sizes>,
    /// Seed of the Monte Carlo draws
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Seed of the split into shards
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    pub split_seed: Option<u64>,
    /// How shards are combined: exact (a few rounds), normal (one round, approximate), normal-uncorrected (the same with the bias of estimated moments left in), cmc-is (two rounds) or augmented (one round; logistic and probit)
    #[arg(long, value_name = "METHOD")]
    pub combine: Option<Combine>,
    /// How a shard's own evidence is computed: auto, none, quadrature, laplace, importance, nuts+bridge, nuts+warp3, nuts+importance, gibbs+chib, gibbs+bridge or laplace-metropolis
    #[arg(long, value_name = "METHOD")]
    pub local: Option<Local>,
    /// Monte Carlo draws, at most; of a chain those that are kept
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    pub draws: Option<u64>,
    /// Draws of a chain before those that are kept (nuts+… and gibbs+…)
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    pub warmup: Option<u64>,
    /// NUTS chains on every shard
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    pub chains: Option<u64>,
    #[command(flatten)]
    pub machine: MachineArguments,
    /// Instructions to compute with: auto (the best of this CPU) or portable (slower; the same bits on every machine)
    #[arg(long, value_name = "KIND")]
    pub kernel: Option<Kernel>,
}

/// How to compare.
#[derive(Debug, Args)]
pub struct CompareArguments {
    #[command(flatten)]
    pub study: StudyArguments,
    #[command(flatten)]
    pub output: OutputArguments,
    /// Also write the JSON document to DIR/result.json
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub draws: DrawsArguments,
    #[command(flatten)]
    pub wishes: WishArguments,
    #[command(flatten)]
    pub engine: EngineArguments,
}

/// How to choose.
#[derive(Debug, Args)]
pub struct SelectArguments {
    #[command(flatten)]
    pub study: StudyArguments,
    #[command(flatten)]
    pub select: NamingArguments,
    /// How the models are looked through: auto, enumerate, search, reversible-jump or jump-shares
    #[arg(long, value_name = "METHOD")]
    pub method: Option<SelectBy>,
    /// How many models to list
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    pub top: Option<u64>,
    /// Print one JSON document instead of the tables
    #[arg(long)]
    pub json: bool,
    /// Also write the JSON document to DIR/result.json
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub page: PageArguments,
    /// No progress bar
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub engine: EngineArguments,
}

/// Models that are named.
#[derive(Debug, Args)]
pub struct NamingArguments {
    /// Of a study with [select]: also compute these models, each by its terms, and their Bayes factors against the first
    #[arg(long, value_name = "TERMS,…", value_delimiter = ',')]
    pub models: Vec<String>,
}

/// What to print, and what to write beside it.
#[derive(Debug, Args)]
pub struct OutputArguments {
    /// Print one JSON document instead of the table
    #[arg(long)]
    pub json: bool,
    /// Print the log Bayes factors of all pairs of models
    #[arg(long)]
    pub bayes_factors: bool,
    /// Print every model's parameters given all the data, and their averages over the models
    #[arg(long)]
    pub parameters: bool,
    /// Write draws of every model's parameters given all the data to DIR/MODEL.parquet (columns chain, draw and one per parameter). With combine = normal they are made of the shards' draws, which must be kept (--keep-draws)
    #[arg(long, value_name = "DIR")]
    pub posterior: Option<PathBuf>,
    /// Add every shard's own posterior mean and covariance of the parameters to the JSON document, and the CPU seconds that it took (on threads). For combine = normal, or with --local: exact itself has no posteriors of shards
    #[arg(long)]
    pub shard_details: bool,
    #[command(flatten)]
    pub page: PageArguments,
    /// No progress bar
    #[arg(long, short)]
    pub quiet: bool,
}

/// What to keep of the shards' chains.
#[derive(Debug, Args)]
pub struct DrawsArguments {
    /// Keep the draws of every shard's chains as Parquet files in DIR (needs local = nuts+… or gibbs+…)
    #[arg(long, value_name = "DIR", conflicts_with = "prior_scale")]
    pub keep_draws: Option<PathBuf>,
}

/// What to compute beside the comparison.
#[derive(Debug, Args)]
pub struct WishArguments {
    /// Compare again with the scale (sd) of every coefficient's prior times each FACTOR, such as 0.5,2,5: does the ranking move? Priors of standard deviations of groups' effects go with them; those of the intercept, log_sd and log_dispersion stay
    #[arg(long, value_name = "FACTOR,…", value_delimiter = ',', value_parser = factor, allow_negative_numbers = true)]
    pub prior_scale: Vec<f64>,
    /// Show how far each shard pulls the log Bayes factors: the comparison without it (needs combine = exact)
    #[arg(long)]
    pub leave_one_out: bool,
}

impl WishArguments {
    /// What is wished of a run of this study, which must be able to grant it; how many shards that
    /// takes is seen later. The folder for draws is made, and has its whole path: those who write to it
    /// may start elsewhere.
    pub fn of(&self, study: &Study, draws: Option<&DrawsArguments>) -> consilience::Result<Extras> {
        let mut extras = self.with(draws);
        extras.check(study, usize::MAX)?;
        if let Some(folder) = &mut extras.draws {
            draft::make_folder(folder)?;
            let whole = folder.canonicalize();
            *folder = whole.map_err(|source| Error::Io { path: folder.clone(), source })?;
        }
        Ok(extras)
    }

    /// The same as they were written.
    pub fn with(&self, draws: Option<&DrawsArguments>) -> Extras {
        Extras {
            prior_scales: self.prior_scale.clone(),
            leave_one_out: self.leave_one_out,
            posterior: false,
            shard_details: false,
            draws: draws.and_then(|draws| draws.keep_draws.clone()),
        }
    }
}

/// How to show the ways to choose.
#[derive(Debug, Args)]
pub struct BaselinesArguments {
    #[command(flatten)]
    pub study: StudyArguments,
    /// Print one JSON document instead of the table
    #[arg(long)]
    pub json: bool,
    /// No progress bar
    #[arg(long, short)]
    pub quiet: bool,
}

/// What to write a study for.
#[derive(Debug, Args)]
pub struct InitArguments {
    /// The data: csv, tsv, csv.gz or parquet; several files as a pattern in quotes
    pub data: PathBuf,
    /// The outcome's column [default: guessed from names and values]
    #[arg(long, value_name = "COLUMN")]
    pub outcome: Option<String>,
    /// The study file to write, or - for stdout [default: the data's name with .toml, here;
    /// study.toml for a pattern]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long)]
    pub force: bool,
}

/// What to write a codebook of.
#[derive(Debug, Args)]
pub struct SchemaArguments {
    #[command(flatten)]
    pub study: StudyArguments,
    /// The file to write [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long)]
    pub force: bool,
    /// No progress bar
    #[arg(long, short)]
    pub quiet: bool,
}

/// What to simulate.
#[derive(Debug, Args)]
pub struct SimulateArguments {
    /// What the data look like
    pub what: Simulation,
    /// Number of rows [default: 10000 of toy, 4000 of rjmcmc]
    #[arg(long, value_name = "N", value_parser = rows, allow_negative_numbers = true)]
    pub rows: Option<u64>,
    /// Number of loci of alleles [default: 100]
    #[arg(long, value_name = "P", value_parser = loci, allow_negative_numbers = true)]
    pub columns: Option<usize>,
    /// The file to write: .parquet, .csv or .csv.gz
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Seed: the same gives the same rows, and fewer rows are the first of more
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true, default_value_t = 1)]
    pub seed: u64,
    /// Replace the file if it is there
    #[arg(long)]
    pub force: bool,
    /// No progress bar
    #[arg(long, short)]
    pub quiet: bool,
}

/// What can be simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Simulation {
    /// Collisions as in the UCI HIGGS data set
    Higgs,
    /// Allele doses of people, and a trait that a few of them move
    Alleles,
    /// Gaussian regression on 15 covariates that hardly differ
    Toy,
    /// Logistic regression on 5 features that hardly differ
    Rjmcmc,
}

impl StudyArguments {
    /// The flags as changes to a study.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            data: (!self.data.is_empty()).then(|| self.data.clone()),
            shards: self.shards.map(count),
            by: self.by.clone(),
            sizes: self.sizes,
            seed: self.seed,
            split_seed: self.split_seed,
            combine: self.combine,
            local: self.local,
            draws: self.draws.map(count),
            warmup: self.warmup.map(count),
            chains: self.chains.map(count),
            kernel: self.kernel,
            home: home(),
            ..Overrides::default()
        }
    }
}

/// The user's home folder, for `~` in paths.
pub fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute())
}

/// So many threads, or one for every core.
pub fn threads_or_all(threads: Option<u64>) -> usize {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    threads.map_or_else(all, count)
}

/// More threads than this only get in each other's way; far more are refused by the system.
const MOST_THREADS: u64 = 1024;

/// A whole number. The standard library's word on others ("invalid digit") helps nobody.
pub fn whole(text: &str) -> Result<u64, String> {
    use std::num::IntErrorKind::PosOverflow;
    text.parse().map_err(|error: std::num::ParseIntError| match error.kind() {
        PosOverflow => format!("it can be at most {}", u64::MAX),
        _ => "a whole number is needed, 0 or more".to_string(),
    })
}

/// A number of rows: what one file can hold, and at least one.
fn rows(text: &str) -> Result<u64, String> {
    let range = 1..=u64::from(u32::MAX) - 1;
    let wrong = || format!("a whole number is needed, 1 to {}", range.end());
    text.parse().ok().filter(|n| range.contains(n)).ok_or_else(wrong)
}

/// A number of loci.
fn loci(text: &str) -> Result<usize, String> {
    let range = 1..=alleles::MOST;
    let wrong = || format!("a whole number is needed, 1 to {}", range.end());
    text.parse().ok().filter(|n| range.contains(n)).ok_or_else(wrong)
}

/// A positive number.
fn factor(text: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok().filter(|f: &f64| f.is_finite() && *f > 0.0);
    number.ok_or_else(|| "positive numbers are needed, with commas between them".to_string())
}

pub fn threads(text: &str) -> Result<u64, String> {
    let range = 1..=MOST_THREADS;
    let wrong = || format!("a whole number is needed, 1 to {MOST_THREADS}");
    text.parse().ok().filter(|n| range.contains(n)).ok_or_else(wrong)
}

/// A number as a count; what does not fit is too large for any limit anyway.
pub fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
