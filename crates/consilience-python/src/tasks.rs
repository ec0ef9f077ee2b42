//! The long work: comparisons, choices among many models, sweeps.

use crate::arrow::reader;
use crate::columns::{columns, doubles, numbers};
use crate::engine::Engine;
use crate::errors::raise;
use crate::own::{Likelihood, Own};
use crate::spec::{Task, from_json};
use crate::work::{Watch, run};
use consilience::compare::{Comparison, PartitionReport};
use consilience::data::{Tables, shard_to_bytes};
use consilience::engine::Observer;
use consilience::math::Matrix;
use consilience::plan::{Gathered, GatheredRows, Plan};
use consilience::run::{Remote, study_hash};
use consilience::simulate::{Format, Simulated, write as write_simulated};
use consilience::sweep::{CellStore, Folder, OnThreads, Sweep, Watch as Watches};
use consilience::{Error, Halt, Model, Place, Result, Shard, Threads, Warning, draft};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// Tables as capsules: one, or one per shard.
type Capsules<'py> = Option<(bool, Vec<Bound<'py, PyCapsule>>)>;

/// Models of one's own: name, parameters with their priors, and what makes the likelihood of a shard.
type Owns = Vec<(String, Vec<(String, String)>, Py<PyAny>)>;

fn tables(capsules: Capsules) -> PyResult<Option<Tables>> {
    let Some((whole, capsules)) = capsules else { return Ok(None) };
    let mut readers = capsules.iter().map(reader).collect::<PyResult<Vec<_>>>()?;
    Ok(Some(match readers.pop() {
        Some(only) if whole => Tables::Whole(only),
        last => {
            readers.extend(last);
            Tables::Shards(readers)
        }
    }))
}

/// Compares models: the JSON document, and the draws of posteriors that were asked for, by models.
#[pyfunction]
#[pyo3(signature = (task, capsules, own, shards, engine, progress))]
pub fn compare<'py>(
    py: Python<'py>,
    task: &str,
    capsules: Capsules<'py>,
    own: Owns,
    shards: usize,
    engine: Option<Bound<'py, PyAny>>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<(String, Bound<'py, PyDict>)> {
    let tables = tables(capsules)?;
    let task: Task = from_json(task).map_err(|error| raise(py, error))?;
    let made = own.into_iter().map(|(name, parameters, bind)| Own::new(&name, &parameters, bind));
    let own = made.collect::<Result<Vec<Own>>>().map_err(|error| raise(py, error))?;
    let engine = engine.map(Bound::unbind);
    let threads = task.threads;
    let result = run(py, threads, progress.as_ref(), |watch| {
        let object = engine.map(|object| Engine { object, shards, watch: watch.clone() });
        let comparison = match (object, task.own_only) {
            (Some(engine), _) => on_engine(task, own, engine, watch)?,
            (None, true) => own_alone(task, own, shards, watch)?.run(&**watch)?,
            (None, false) => here(task, tables, own, watch)?.run(&**watch)?,
        };
        let json = serde_json::to_string(&comparison).map_err(|e| Error::numeric(e.to_string()))?;
        Ok((json, comparison))
    });
    let (json, comparison) = result?;
    let draws = PyDict::new(py);
    for model in &comparison.models {
        let Some(sample) = &model.posterior else { continue };
        let numbers = sample.chains.iter().flat_map(|chain| chain.thetas.data().iter().copied());
        draws.set_item(&model.name, doubles(py, numbers))?;
    }
    Ok((json, draws))
}

/// A model's log likelihood at points: numbers of a point one after the other, each of a parameter that is named; or so many as
/// the model has, in its order.
#[pyfunction]
#[pyo3(signature = (task, capsules, own, shards, model, names, points))]
#[expect(clippy::too_many_arguments, reason = "Python's side names each")]
pub fn log_likelihood<'py>(
    py: Python<'py>,
    task: &str,
    capsules: Capsules<'py>,
    own: Owns,
    shards: usize,
    model: Option<String>,
    names: (usize, Option<Vec<String>>),
    points: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let tables = tables(capsules)?;
    let task: Task = from_json(task).map_err(|error| raise(py, error))?;
    let made = own.into_iter().map(|(name, parameters, bind)| Own::new(&name, &parameters, bind));
    let own = made.collect::<Result<Vec<Own>>>().map_err(|error| raise(py, error))?;
    let (wide, names) = names;
    let points = numbers(points);
    let found = run(py, task.threads, None, |watch| {
        let plan = match task.own_only {
            true => own_alone(task, own, shards, watch)?,
            false => here(task, tables, own, watch)?,
        };
        let model = match (model, &plan.settings[..]) {
            (Some(name), _) => name,
            (None, [only]) => only.model.name.clone(),
            (None, all) => {
                let names: Vec<String> =
                    all.iter().map(|s| format!("`{}`", s.model.name)).collect();
                let message =
                    format!("there are several models; name one of {} by model=", names.join(", "));
                return Err(Error::input(message));
            }
        };
        let known = plan.settings.iter().find(|s| s.model.name == model);
        let places = match (known, names) {
            (Some(setting), Some(names)) => in_order(&setting.model, &names)?,
            _ => (0..wide).collect(),
        };
        let rows = points.chunks_exact(wide.max(1));
        let count = rows.len();
        let ordered = rows.flat_map(|row| places.iter().map(|place| row[*place])).collect();
        plan.log_likelihood(&model, Matrix::from_rows(count, places.len(), ordered), &**watch)
    })?;
    Ok(doubles(py, found.into_iter()))
}

/// Where each of a model's free parameters stands among names. Those that are held fixed may be named too.
fn in_order(model: &Model, names: &[String]) -> Result<Vec<usize>> {
    let wrong = |what: String| Err(Error::input(format!("model `{}` {what}", model.name)));
    let known = |name: &String| model.parameters.iter().any(|p| p.name == *name);
    if let Some(name) = names.iter().find(|name| !known(name)) {
        let all: Vec<String> = model.free().map(|p| format!("`{}`", p.name)).collect();
        return wrong(format!("has no parameter `{name}`; it has {}", all.join(", ")));
    }
    let mut places = Vec::new();
    for parameter in model.free() {
        match names.iter().position(|name| *name == parameter.name) {
            Some(place) => places.push(place),
            None => {
                return wrong(format!(
                    "has the parameter `{}`, of which the points say nothing",
                    parameter.name
                ));
            }
        }
    }
    Ok(places)
}

/// On this process's threads.
fn here(task: Task, tables: Option<Tables>, own: Vec<Own>, watch: &Arc<Watch>) -> Result<Plan> {
    let room = task.room(watch.halt.clone())?;
    let threads = room.threads(task.threads);
    let observer: &dyn Observer = &**watch;
    let study = task.study.study()?;
    let mut plan = match tables {
        Some(tables) => Plan::of_tables_within(study, tables, threads, &room, observer)?,
        None => Plan::within(study, threads, &room, observer)?,
    };
    let shares = shares(&plan);
    for Own { model, bind } in own {
        let dim = model.dim();
        plan.add_model(model, |shard| {
            let index = shard.index();
            let made = Python::attach(|py| {
                bind.call1(py, (index, columns(py, shard)?, shares.len(), shares[index]))
            });
            Ok(Likelihood::new(made.map_err(|e| watch.keep(e))?, dim, watch.clone()))
        })?;
    }
    plan.deliver(&task.extras.into())?;
    Ok(plan)
}

/// Every shard's share of the priors, which models of one's own have as the study's first model does.
fn shares(plan: &Plan) -> Vec<f64> {
    plan.settings.first().and_then(|setting| setting.shares()).unwrap_or_default()
}

/// Only models of one's own, whose rows Python has.
fn own_alone(task: Task, own: Vec<Own>, shards: usize, watch: &Arc<Watch>) -> Result<Plan> {
    let options = task.study.study()?.study.evidence;
    let mut known = Vec::new();
    let mut counts = vec![0; shards];
    for (index, count) in counts.iter_mut().enumerate() {
        let mut shard = Shard::without_rows(index);
        for Own { model, bind } in &own {
            let made = Python::attach(|py| -> PyResult<(f64, Py<PyAny>)> {
                let share = 1.0 / shards as f64;
                let made = bind.call1(py, (index, py.None(), shards, share))?;
                Ok((made.getattr(py, "rows")?.extract(py)?, made))
            });
            let (rows, made) = made.map_err(|error| watch.keep(error))?;
            *count = rows as usize;
            let likelihood = Likelihood::new(made, model.dim(), watch.clone());
            shard.learn(model.likelihood_name(), likelihood.foreign(rows)?);
        }
        known.push(shard.until(Some(watch.halt.clone())));
    }
    let models = own.into_iter().map(|own| own.model).collect();
    let mut plan = Plan::of_models(Threads::new(known, task.threads)?, models, options)?;
    plan.partition = PartitionReport::given(&counts, 0);
    plan.deliver(&task.extras.into())?;
    Ok(plan)
}

/// On shards that an engine of Python's reaches.
fn on_engine(task: Task, own: Vec<Own>, engine: Engine, watch: &Arc<Watch>) -> Result<Comparison> {
    let study = task.study.study()?;
    let partition = task.partition.unwrap_or_else(|| PartitionReport::given(&[], 0));
    let remote = Remote::new(engine, &study_hash(&study.study), &partition.hash);
    let mut plan = if task.own_only {
        let models = own.into_iter().map(|own| own.model).collect();
        let mut plan = Plan::of_models(remote, models, study.study.evidence)?;
        plan.partition = partition;
        plan
    } else {
        let names = task.names.unwrap_or_default();
        let mut gathered = Gathered::elsewhere(study, names, partition)?;
        let mut said = together(task.said);
        said.retain(|warning| !gathered.warnings.contains(warning));
        // Where they stand if the rows are here.
        let after = gathered.outline.notes.len();
        gathered.warnings.splice(after..after, said);
        let mut plan = Plan::on(gathered, remote, &**watch)?;
        own.into_iter().try_for_each(|own| plan.add_known(own.model))?;
        plan
    };
    plan.deliver(&task.extras.into())?;
    plan.run(&**watch)
}

/// What was said of several parts of the data. The same of several parts is said once, with their rows added up.
fn together(said: Vec<Vec<Warning>>) -> Vec<Warning> {
    let parts = said.len();
    let mut all: Vec<(Vec<usize>, Warning)> = Vec::new();
    for (part, warnings) in said.into_iter().enumerate() {
        for warning in warnings {
            match all.iter_mut().find(|(_, known)| of_rows(known) == of_rows(&warning)) {
                Some((those, known)) => {
                    those.push(part);
                    add_rows(known, &warning);
                }
                None => all.push((vec![part], warning)),
            }
        }
    }
    let where_said = |(those, warning): (Vec<usize>, Warning)| match those[..] {
        [only] if parts > 1 => warning.shard(only),
        _ => warning,
    };
    all.into_iter().map(where_said).collect()
}

/// A warning without the number of rows that it tells: its code, and what stands before and behind that number. All of its
/// words stand before where it tells none.
fn of_rows(warning: &Warning) -> (&str, &str, Option<&str>) {
    let count = warning.value.unwrap_or_default();
    let cut = |word: &str| warning.message.split_once(&format!(" in {count} {word}, "));
    match cut("rows").or_else(|| cut("row")) {
        Some((head, tail)) => (&warning.code, head, Some(tail)),
        None => (&warning.code, &warning.message, None),
    }
}

/// Adds the rows that a warning tells of to the same about others.
fn add_rows(known: &mut Warning, more: &Warning) {
    let (_, head, tail) = of_rows(known);
    if let (Some(tail), Some(a), Some(b)) = (tail, known.value, more.value) {
        known.message = format!("{head} in {} rows, {tail}", a + b);
        known.value = Some(a + b);
    }
}

/// Each shard's rows as bytes, the partition as JSON, the names of all columns, and what is to be known of the rows, as JSON.
type Parted<'py> = (Vec<Bound<'py, PyBytes>>, String, Vec<String>, String);

/// Splits a table as a study says.
#[pyfunction]
#[pyo3(signature = (task, capsules))]
pub fn split<'py>(py: Python<'py>, task: &str, capsules: Capsules<'py>) -> PyResult<Parted<'py>> {
    let tables = tables(capsules)?;
    let task: Task = from_json(task).map_err(|error| raise(py, error))?;
    let (shards, partition, names, said) = run(py, task.threads, None, |watch| {
        let room = task.room(watch.halt.clone())?;
        let study = task.study.study()?;
        let gathered = match tables {
            Some(tables) => Gathered::of_tables(study, tables, &room)?,
            None => Gathered::new(study, &room, &**watch)?,
        };
        let shards = gathered.shards.iter().map(shard_to_bytes).collect::<Result<Vec<_>>>()?;
        let text =
            |json: serde_json::Result<String>| json.map_err(|e| Error::numeric(e.to_string()));
        let partition = text(serde_json::to_string(&gathered.partition))?;
        let said = text(serde_json::to_string(&gathered.warnings))?;
        Ok((shards, partition, gathered.names, said))
    })?;
    Ok((shards.iter().map(|bytes| PyBytes::new(py, bytes)).collect(), partition, names, said))
}

/// Chooses among all models of a study with `[select]`: the JSON document.
#[pyfunction]
#[pyo3(signature = (task, capsules, progress))]
pub fn select<'py>(
    py: Python<'py>,
    task: &str,
    capsules: Capsules<'py>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<String> {
    let tables = tables(capsules)?;
    let task: Task = from_json(task).map_err(|error| raise(py, error))?;
    run(py, task.threads, progress.as_ref(), |watch| {
        let room = task.room(watch.halt.clone())?;
        let threads = room.threads(task.threads);
        let mut study = task.study.study()?;
        let Some(select) = &mut study.study.select else {
            let message = "this study names its models, which `compare` compares; a choice among all subsets of terms needs `select`";
            return Err(Error::input_at(Place::default(), message));
        };
        select.method = task.method.unwrap_or(select.method);
        select.top = task.top.unwrap_or(select.top);
        study.check()?;
        let plan = match tables {
            Some(tables) => Plan::of_tables_within(study, tables, threads, &room, &**watch)?,
            None => Plan::within(study, threads, &room, &**watch)?,
        };
        let selection = plan.select_and_name(&task.named, &**watch)?;
        serde_json::to_string(&selection).map_err(|e| Error::numeric(e.to_string()))
    })
}

/// Who watches a sweep: its cells are the rounds.
struct Cells<'a>(&'a Watch);

impl Watches for Cells<'_> {
    fn cells(&self, done: usize, all: usize) {
        self.0.cells(done as u64, all as u64);
    }

    fn within(&self) -> &dyn Observer {
        self.0
    }
}

/// Splits data in many ways: the JSON document.
#[pyfunction]
#[pyo3(signature = (task, capsules, progress))]
pub fn sweep<'py>(
    py: Python<'py>,
    task: &str,
    capsules: Capsules<'py>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<String> {
    let tables = tables(capsules)?;
    let mut task: Task = from_json(task).map_err(|error| raise(py, error))?;
    run(py, task.threads, progress.as_ref(), |watch| {
        let room = task.room(watch.halt.clone())?;
        let threads = room.threads(task.threads);
        let Some(spec) = task.sweep.take() else {
            return Err(Error::input("there is nothing to sweep; name numbers of shards"));
        };
        let study = task.study.study()?;
        let (shards, repeats, votes) = (spec.shards, spec.repeats, spec.votes);
        let (by, combine, reference) = (spec.by, spec.combine, spec.reference);
        let sweep = Sweep { shards, repeats, by, combine, votes, reference };
        sweep.check(&study)?;
        let rows = match tables {
            Some(tables) => GatheredRows::of_tables(study.clone(), tables, threads, &room)?,
            None => GatheredRows::read(study.clone(), threads, &room, &**watch)?,
        };
        let kept: Box<dyn CellStore> = match &spec.out {
            Some(folder) => {
                draft::make_folder(folder)?;
                Box::new(Folder::new(folder, &study, &rows.hashes()?)?)
            }
            None => Box::new(()),
        };
        let bench = OnThreads::new(rows, threads, room, None);
        let document = sweep.run(&study, &bench, &*kept, &Cells(watch))?;
        serde_json::to_string(&document).map_err(|e| Error::numeric(e.to_string()))
    })
}

/// Writes simulated data to a file.
#[pyfunction]
#[pyo3(signature = (what, rows, seed, loci, path, threads))]
pub fn simulate(
    py: Python<'_>,
    what: &str,
    rows: u64,
    seed: u64,
    loci: usize,
    path: PathBuf,
    threads: usize,
) -> PyResult<()> {
    let what = match what {
        "higgs" => Simulated::Higgs,
        "alleles" => Simulated::Alleles(loci),
        "toy" => Simulated::Toy,
        "rjmcmc" => Simulated::Rjmcmc(rows),
        other => {
            let message = format!(
                "`{other}` cannot be simulated; name one of \"higgs\", \"alleles\", \"toy\", \"rjmcmc\""
            );
            return Err(raise(py, Error::input(message)));
        }
    };
    run(py, threads, None, |watch| {
        let format = Format::of(&path)?;
        let written = draft::write_with(&path, |file| {
            let file = Until { file, halt: &watch.halt };
            write_simulated(file, format, what, rows, seed, &mut |_| ())
        });
        if watch.halt.is_called() { Err(Error::Stopped) } else { written }
    })
}

/// A file that takes no more once the work is called off: then it is not there at all.
struct Until<'a> {
    file: &'a mut File,
    halt: &'a Halt,
}

impl Write for Until<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.halt.is_called() {
            return Err(io::Error::other("the work was called off"));
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
