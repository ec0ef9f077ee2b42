//! Bayesian model choice on data that is split over workers, machines or institutions.
//!
//! A [`Study`] says which data, split and models; a [`Plan`] reads and splits the data and settles the models
//! with the shards of an [`Engine`]; running it gives a [`Comparison`].
//!
//! **Compare a file.** A [`StudyFile`] is a study with the place where it was written, for errors.
//!
//! ```
//! use consilience::{Plan, Silent, StudyFile};
//!
//! let folder = tempfile::tempdir()?;
//! std::fs::write(folder.path().join("trial.csv"), "cured,dose\nno,1\nno,2\nyes,2\nno,3\nyes,4\nyes,5\n")?;
//! let text = r#"
//!     [data]
//!     path = "trial.csv"
//!     [split]
//!     shards = 2
//!     [[model]]
//!     formula = "cured ~ dose"
//!     family = "logistic"
//!     [[model]]
//!     formula = "cured ~ 1"
//!     family = "logistic"
//! "#;
//! let study = StudyFile::parse(text, &folder.path().join("trial.toml"))?;
//! let result = Plan::new(study, 1, &Silent)?.run(&Silent)?;
//! let [with, without] = [&result.models[0], &result.models[1]];
//! assert!((with.probability + without.probability - 1.0).abs() < 1e-12);
//! println!("{} ± {:?}", with.log_evidence.value, with.log_evidence.se);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Compare a table in memory**: Arrow's record batches, split here or, as a table per shard, before.
//!
//! ```
//! use consilience::arrow_array::{ArrayRef, Float64Array, RecordBatch};
//! use consilience::{Family, Plan, Silent, Study, Tables};
//! use std::sync::Arc;
//!
//! let column = |values: Vec<f64>| -> ArrayRef { Arc::new(Float64Array::from(values)) };
//! let table = RecordBatch::try_from_iter([
//!     ("late", column(vec![0.0, 0.0, 1.0, 0.0, 1.0, 1.0])),
//!     ("rain", column(vec![0.1, 0.0, 2.5, 0.4, 1.9, 3.0])),
//! ])?;
//! let study = Study::new()
//!     .shards(2)
//!     .model("late ~ rain", Family::Logistic)
//!     .model("late ~ 1", Family::Logistic);
//! let plan = Plan::of_tables(study, Tables::whole(vec![table])?, 1, &Silent)?;
//! assert_eq!(plan.run(&Silent)?.best.name, "late ~ rain");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **An engine of one's own** carries questions to shards and answers back, wherever they are. It may also
//! return sums over shards and nothing else: `exact` needs no more.
//!
//! ```
//! use consilience::{Answers, Answered, Engine, Question, Result, Shard};
//!
//! /// Shards that answer one after the other, of which only sums are seen.
//! struct OneByOne(Vec<Shard>);
//!
//! impl Engine for OneByOne {
//!     fn shards(&self) -> usize {
//!         self.0.len()
//!     }
//!
//!     fn ask(&self, questions: &[Question], answered: &Answered) -> Result<Vec<Answers>> {
//!         let mut all = Vec::new();
//!         for question in questions {
//!             let mut each = Vec::new();
//!             for shard in &self.0 {
//!                 each.push(question.answer(shard)?);
//!                 if answered().is_break() {
//!                     return Err(consilience::Error::Stopped);
//!                 }
//!             }
//!             all.push(match question.merge(each.clone())? {
//!                 Some(sum) => Answers::Sum(sum),
//!                 None => Answers::Each(each),
//!             });
//!         }
//!         Ok(all)
//!     }
//! }
//! # use consilience::{Foreign, Model, Plan, Prior, Silent, Target};
//! # struct Line;
//! # impl Target for Line {
//! #     fn dim(&self) -> usize { 1 }
//! #     fn log_density_gradient(&self, t: &[f64], g: &mut [f64]) -> f64 { g[0] = -t[0]; -0.5 * t[0] * t[0] }
//! # }
//! # let shards = (0..3).map(|s| {
//! #     let mut shard = Shard::without_rows(s);
//! #     shard.learn("line", Foreign::new(std::sync::Arc::new(Line), 1.0)?);
//! #     Ok(shard)
//! # }).collect::<Result<Vec<Shard>>>()?;
//! # let model = Model::foreign("line", &[("a", Prior::Normal { mean: 0.0, sd: 1.0 })]);
//! # let result = Plan::of_models(OneByOne(shards), vec![model], Default::default())?.run(&Silent)?;
//! # assert!((result.models[0].log_evidence.value + 0.5 * 4f64.ln()).abs() < 0.05);
//! # Ok::<(), consilience::Error>(())
//! ```
//!
//! **A model of one's own** is a log likelihood with its gradient, made of a shard's rows; parameters and
//! priors are named beside it. `examples/own_model.rs` compares one with a regression of ours.
//!
//! ```
//! use consilience::{Foreign, Model, Plan, Prior, Shard, Silent, Target, Threads};
//! use std::sync::Arc;
//!
//! /// Waiting times that are exponential with rate e^θ.
//! struct Exponential(Vec<f64>);
//!
//! impl Target for Exponential {
//!     fn dim(&self) -> usize {
//!         1
//!     }
//!
//!     fn log_density_gradient(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
//!         let (n, total) = (self.0.len() as f64, self.0.iter().sum::<f64>());
//!         gradient[0] = n - theta[0].exp() * total;
//!         n * theta[0] - theta[0].exp() * total
//!     }
//! }
//!
//! let shards = [vec![0.3, 1.2, 0.1], vec![2.2, 0.4]].into_iter().enumerate().map(|(s, times)| {
//!     // Rows stay where they are: the shard only has the likelihood.
//!     let mut shard = Shard::without_rows(s);
//!     let rows = times.len() as f64;
//!     shard.learn("exponential", Foreign::new(Arc::new(Exponential(times)), rows)?);
//!     Ok(shard)
//! });
//! let engine = Threads::new(shards.collect::<consilience::Result<_>>()?, 1)?;
//! let model = Model::foreign("exponential", &[("log rate", Prior::Normal { mean: 0.0, sd: 1.0 })]);
//! let result = Plan::of_models(engine, vec![model], Default::default())?.run(&Silent)?;
//! assert!((result.models[0].log_evidence.value + 5.2).abs() < 0.5);
//! # Ok::<(), consilience::Error>(())
//! ```
//!
//! The library never prints, reads the environment or the clock, or seeds itself.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

// What stands in these is for the program, tests and benches: it may change from one version to the next.
#[doc(hidden)]
pub mod combine;
#[doc(hidden)]
pub mod compare;
#[doc(hidden)]
pub mod data;
#[doc(hidden)]
pub mod draft;
#[doc(hidden)]
pub mod engine;
mod error;
#[doc(hidden)]
pub mod estimate;
#[doc(hidden)]
pub mod fit;
mod halt;
mod hex;
#[doc(hidden)]
pub mod kernel;
#[doc(hidden)]
pub mod math;
#[doc(hidden)]
pub mod model;
#[doc(hidden)]
pub mod plan;
#[doc(hidden)]
pub mod question;
#[doc(hidden)]
pub mod run;
#[doc(hidden)]
pub mod sample;
#[doc(hidden)]
pub mod select;
#[doc(hidden)]
pub mod shard;
#[doc(hidden)]
pub mod simulate;
#[doc(hidden)]
pub mod site;
#[doc(hidden)]
pub mod space;
#[doc(hidden)]
pub mod study;
#[doc(hidden)]
pub mod sweep;
mod target;
mod warning;

pub use arrow_array;
pub use compare::{Comparison, ModelResult};
pub use data::Tables;
pub use engine::{Answered, Engine, Observer, Silent, Threads};
pub use error::{Error, Place, Result};
pub use halt::Halt;
pub use model::{Family, Foreign, Model, Prior};
pub use plan::{Extras, Plan};
pub use question::{Answers, Question};
pub use run::Run;
pub use select::Selection;
pub use shard::Shard;
pub use study::{ModelSpec, Select, Study, StudyFile};
pub use target::{Expansion, Target};
pub use warning::{Level, Warning};
