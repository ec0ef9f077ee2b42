//! Bayesian model choice on data that is split over workers, machines or institutions.
//!
//! A [`Study`](study::Study) says which data, split and models; a [`Plan`](plan::Plan) reads and splits
//! the data and settles the models; running it gives a [`Comparison`](compare::Comparison).
//!
//! ```
//! use consilience::{engine::Silent, plan::Plan, study::StudyFile};
//!
//! let folder = tempfile::tempdir()?;
//! let data = folder.path().join("trial.csv");
//! std::fs::write(&data, "cured,dose\nno,1\nno,2\nyes,2\nno,3\nyes,4\nyes,5\n")?;
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
//! The library never prints, reads the environment or the clock, or seeds itself.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod combine;
pub mod compare;
pub mod data;
pub mod draft;
pub mod engine;
mod error;
pub mod estimate;
pub mod fit;
mod hex;
pub mod kernel;
pub mod math;
pub mod model;
pub mod plan;
pub mod question;
pub mod run;
pub mod sample;
pub mod shard;
pub mod simulate;
pub mod site;
pub mod study;
mod target;
mod warning;

pub use arrow_array;
pub use error::{Error, Place, Result};
pub use target::{Expansion, Target};
pub use warning::{Level, Warning};
