//! What travels and what is read: files of runs, sites, attacks, tables and sweeps.

mod attacks;
mod bad_files;
#[path = "../common/mod.rs"]
mod common;
mod masks;
mod model_matrix;
mod sweep;
mod tables;
