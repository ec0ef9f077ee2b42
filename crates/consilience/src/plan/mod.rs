//! From a study to something that can run: data read and split, schema agreed, models settled.

mod codebook;
mod derive;
mod extras;
mod fitting;
mod foreign;
mod gather;
mod levels;
mod nodes;
mod open;
mod outline;
mod points;
mod room;
mod select;
mod settle;
mod tables;
mod units;

pub use crate::combine::Extras;
pub(crate) use codebook::{codebook_on, doubt};
pub(crate) use derive::{Learned, derive};
pub(crate) use gather::{Complete, RowsOf, read_complete};
pub use gather::{Gathered, GatheredRows};
pub use outline::Outline;
pub use room::{LEAST_MEMORY, Room};

use crate::combine::{Setting, Ways, baselines, combine, ways};
use crate::compare::{Baselines, Comparison, PartitionReport, Provenance, VERSION, sweep};
use crate::data::{Formula, Tables, Term};
use crate::engine::{Clock, Engine, Observer, Session, Threads, Traffic};
use crate::model::Tie;
use crate::shard::Shard;
use crate::study::{Combine, Study, StudyFile};
use crate::{Error, Level, Place, Result, Warning};
use std::path::PathBuf;
use std::sync::Arc;

/// A study whose shards have agreed on its models: ready to run.
#[derive(Debug)]
pub struct Plan<E = Threads> {
    /// The study.
    pub study: Study,
    /// The data files.
    pub files: Vec<PathBuf>,
    /// How the rows are split.
    pub partition: PartitionReport,
    /// One per model: the study's in its order, then those that were added.
    pub settings: Vec<Setting>,
    /// The models' formulas as they were read.
    pub formulas: Vec<String>,
    /// Of a study with `[select]`, all terms that models may have, and whether each is a candidate.
    pub terms: Vec<(Term, bool)>,
    /// What the user should know before anything has run.
    pub warnings: Vec<Warning>,
    engine: E,
    traffic: Traffic,
    /// What the run delivers beside the comparison.
    extras: Extras,
}

impl Plan {
    /// Reads, checks and splits a study's data and settles its models, on this many threads.
    pub fn new(
        study: impl Into<StudyFile>,
        threads: usize,
        observer: &dyn Observer,
    ) -> Result<Plan> {
        Plan::within(study, threads, &Room::default(), observer)
    }

    /// The same with a bound on memory. The result has the same bits.
    pub fn within(
        study: impl Into<StudyFile>,
        threads: usize,
        room: &Room,
        observer: &dyn Observer,
    ) -> Result<Plan> {
        let (gathered, engine) = Plan::gathered(study.into(), threads, room, observer)?;
        Plan::on(gathered, engine, observer)
    }

    /// A study's data, read and split, and its shards.
    fn gathered(
        study: StudyFile,
        threads: usize,
        room: &Room,
        observer: &dyn Observer,
    ) -> Result<(Gathered, Threads)> {
        let pool = crate::engine::pool(room.threads(threads))?;
        let mut gathered = pool.install(|| Gathered::new(study, room, observer))?;
        let engine = in_memory(&mut gathered, pool, room);
        Ok((gathered, engine))
    }

    /// The same with data in memory, one table or one per shard; see [`Tables`]. The study needs no
    /// `[data] path`. The same rows give the same bits as they do in files.
    ///
    /// ```
    /// use consilience::arrow_array::{ArrayRef, Float64Array, RecordBatch};
    /// use consilience::data::Tables;
    /// use consilience::model::Family;
    /// use consilience::{engine::Silent, plan::Plan, study::Study};
    /// use std::sync::Arc;
    ///
    /// let y: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.5, 2.9, 4.2]));
    /// let x: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0, 4.0]));
    /// let batch = RecordBatch::try_from_iter([("y", y), ("x", x)]).unwrap();
    /// let study = Study::new().shards(2).model("y ~ x", Family::Gaussian);
    /// let plan = Plan::of_tables(study, Tables::whole(vec![batch])?, 1, &Silent)?;
    /// assert_eq!(plan.run(&Silent)?.partition.rows, 4);
    /// # Ok::<(), consilience::Error>(())
    /// ```
    pub fn of_tables(
        study: impl Into<StudyFile>,
        tables: Tables,
        threads: usize,
        observer: &dyn Observer,
    ) -> Result<Plan> {
        Plan::of_tables_within(study, tables, threads, &Room::default(), observer)
    }

    /// The same with a bound on the memory that likelihoods take, and a way to stop. The result has the same bits.
    pub fn of_tables_within(
        study: impl Into<StudyFile>,
        tables: Tables,
        threads: usize,
        room: &Room,
        observer: &dyn Observer,
    ) -> Result<Plan> {
        let study = study.into();
        let pool = crate::engine::pool(room.threads(threads))?;
        let gathered = pool.install(|| Gathered::of_tables(study, tables, room))?;
        Plan::in_memory(gathered, pool, room, observer)
    }

    /// With a clock, by which the CPU time of every shard's answers is taken from now on; see [`Threads::spent`].
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Plan {
        Plan { engine: self.engine.with_clock(clock), ..self }
    }

    fn in_memory(
        mut gathered: Gathered,
        pool: rayon::ThreadPool,
        room: &Room,
        observer: &dyn Observer,
    ) -> Result<Plan> {
        let engine = in_memory(&mut gathered, pool, room);
        Plan::on(gathered, engine, observer)
    }
}

/// The shards of data at hand, which are taken out of them.
fn in_memory(gathered: &mut Gathered, pool: rayon::ThreadPool, room: &Room) -> Threads {
    let threads = pool.current_num_threads();
    let shards = std::mem::take(&mut gathered.shards);
    let budget = Arc::new(room.budget(threads));
    let shard = |(index, data)| {
        Shard::new(index, data).with_budget(budget.clone()).until(room.halt.clone())
    };
    Threads::on(pool, shards.into_iter().enumerate().map(shard).collect())
}

impl<E: Engine> Plan<E> {
    /// Settles a study's models with the shards of an engine. Only they are asked: the rows that
    /// were gathered, if any are left in it, are not looked at.
    pub fn on(gathered: Gathered, engine: E, observer: &dyn Observer) -> Result<Plan<E>> {
        let Gathered { outline, files, partition, mut warnings, .. } = gathered;
        let Outline { study, lines, formulas, terms, candidates, .. } = outline;
        let chosen = study.select.is_some();
        let all_terms = terms.iter().take(usize::from(chosen)).flat_map(|t| &t.terms).enumerate();
        let all_terms =
            all_terms.map(|(t, term)| (term.clone(), candidates.contains(&t))).collect();
        let (settings, far_off, asked, traffic) = {
            let session = Session::new(&engine, observer);
            let mut agree = || -> Result<(Vec<Setting>, Vec<Warning>, Vec<String>)> {
                let (recipes, asked) = settle::agreed(&study, &terms, &session)?;
                let models = settle::settle(&study, &recipes)?;
                let surveyed = settle::survey(&study, models, &session);
                let (settings, far_off) =
                    surveyed.map_err(|error| codebook::doubt(error, &study))?;
                warnings.extend(levels::many_levels(&study, &terms, &recipes, &settings)?);
                Ok((settings, far_off, asked))
            };
            let (settings, far_off, asked) = agree().map_err(|error| lines.locate(error))?;
            (settings, far_off, asked, session.traffic())
        };
        warnings.extend(codebook::incomplete(&study, &asked));
        warnings.extend(far_off);
        warnings.extend(improper(&settings));
        let formulas = formulas.iter().map(Formula::to_string).collect();
        Ok(Plan {
            study,
            files,
            partition,
            settings,
            formulas,
            terms: all_terms,
            warnings,
            engine,
            traffic,
            extras: Extras::default(),
        })
    }

    /// What makes the results of this plan; its data files are read for it, to the end.
    pub fn provenance(&self) -> Result<Provenance> {
        Provenance::of_files(&self.study, &self.files)
    }

    /// Where the shards are.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// Computes every model's evidence and compares them.
    pub fn run(&self, observer: &dyn Observer) -> Result<Comparison> {
        self.run_on(&self.engine, observer)
    }

    /// Combines by each of these methods, over the same fits, and votes if that is wanted.
    pub(crate) fn ways(
        &self,
        methods: &[Combine],
        votes: bool,
        observer: &dyn Observer,
    ) -> Result<Ways> {
        refuse_select(&self.study)?;
        ways(&self.engine, observer, self.traffic, &self.settings, methods, votes)
    }

    /// Chooses by votes and upsampled evidences, and by every combination that suits the models.
    pub fn baselines(&self, observer: &dyn Observer) -> Result<Baselines> {
        refuse_select(&self.study)?;
        let (methods, traffic) = baselines(&self.engine, observer, self.traffic, &self.settings)?;
        let models = self.settings.iter().map(|s| s.model.name.clone()).collect();
        Ok(Baselines {
            version: VERSION,
            models,
            methods,
            partition: self.partition.clone(),
            traffic,
            seconds: None,
        })
    }

    /// The same on another engine that has the same shards. The result has the same bits.
    pub fn run_on(&self, engine: &dyn Engine, observer: &dyn Observer) -> Result<Comparison> {
        refuse_select(&self.study)?;
        let session = Session::resume(engine, observer, self.traffic);
        // All priors at once: they share rounds, and the shards' likelihoods.
        let settings = [self.settings.clone(), self.scaled_settings()].concat();
        let mut evidences = combine(&session, &settings)
            .map_err(|error| codebook::doubt_numbers(error, &self.study))?;
        let scaled = evidences.split_off(self.settings.len());
        nodes::check(&session, &self.settings, &mut evidences)?;
        self.use_shard_draws(&mut evidences)?;
        let probabilities = self.probabilities();
        let mut comparison = Comparison::new(
            &self.settings,
            &self.formulas,
            &probabilities,
            evidences,
            self.partition.clone(),
            self.warnings.clone(),
            session.traffic(),
        );
        if !self.extras.prior_scales.is_empty() {
            let scales = sweep(&comparison, self.by_scale(scaled));
            comparison.with_sensitivity(scales);
        }
        comparison.conclude();
        Ok(comparison)
    }
}

/// Notes that evidences are known up to a factor.
fn improper(settings: &[Setting]) -> Option<Warning> {
    // All models have the same flat priors, or are not compared.
    let Setting { model, joint, .. } = settings.iter().find(|s| s.joint.has(Tie::Flat))?;
    let flat = (0..model.parameters.len()).filter(|&j| joint.tie(j) == Tie::Flat);
    let key = |j: usize| if j < model.coefficients().len() { "intercept" } else { "log_sd" };
    let (flat, quoted): (Vec<&str>, Vec<String>) =
        flat.map(|j| (key(j), format!("`{}`", key(j)))).unzip();
    let (have, proper) = match flat[..] {
        [_] => ("has a flat prior", "a proper prior"),
        _ => ("have flat priors", "proper priors"),
    };
    let message = format!(
        "{} {have}, as beside g-priors elsewhere: an evidence is known up to a factor that all models here share, so that Bayes factors and probabilities are right and the evidences themselves say nothing",
        flat.join(" and ")
    );
    let advice = format!(
        "give {} {proper} under [prior] if evidences are to be compared with those of other studies",
        quoted.join(" and ")
    );
    Some(Warning::new(Level::Note, "improper-prior", message, advice))
}

/// A study with `[select]` names no models to compare.
fn refuse_select(study: &Study) -> Result<()> {
    if study.select.is_none() {
        return Ok(());
    }
    Err(Error::input_at(
        Place::key("select"),
        "this study chooses among all models that [select] has; run `consilience select`, or name models by [[model]]",
    ))
}
