//! Data: tables, formulas, the schema that shards agree on, designs and splits.

mod arrays;
mod arrow;
mod chunks;
mod codebook;
mod copies;
mod copy_writer;
mod csv;
#[cfg(test)]
mod csv_tests;
mod cut;
mod describe;
mod design;
mod effects;
mod eval;
mod expr;
mod facts;
mod files;
mod formula;
mod inputs;
mod kmeans;
pub(crate) mod level;
pub mod misread;
mod number;
mod pairs;
mod parquet;
mod part;
#[cfg(test)]
mod part_tests;
mod poly;
pub mod read;
mod recipe;
mod records;
mod schema;
mod scratch;
pub mod sentinel;
mod shard_data;
mod shard_file;
pub mod source;
mod spelling;
mod spline;
pub mod split;
mod split_by;
pub mod table;
mod tables;
mod terms;
#[cfg(test)]
mod testing;
mod union;

pub use codebook::{Codebook, ColumnType, Entry};
pub use cut::Intervals;
pub use describe::{Request, describe};
pub use design::Design;
pub use effects::{Effects, MAX_NODES};
pub use expr::{Binary, Expr, Function, Pairing, Unary};
pub use facts::{ColumnFact, Fact, GramFact, LevelCount, Levels, MAX_LEVELS, Moments, Word};
pub use formula::Formula;
pub use kmeans::ClusterOn;
pub(crate) use number::{literal, parse_number, r_number};
pub use poly::Basis;
pub use recipe::{
    INTERCEPT, Ingredient, MAX_COLUMNS, Recipe, RecipeColumn, Response, ResponseKind, Variable,
};
pub(crate) use schema::agree_or_blame;
pub use schema::{Ask, agree};
pub use scratch::Stored;
pub(crate) use scratch::{Gathering, Scratch};
pub use shard_data::ShardData;
pub(crate) use shard_file::{read_shard, write_shard};
pub use shard_file::{shard_of_bytes, shard_to_bytes};
pub use spline::{SplineBasis, SplineSpec};
pub use split_by::SplitBy;
pub use table::{Column, Origin, Table};
pub use tables::{BatchReader, Tables};
pub use terms::{MAX_TERMS, Term, Terms};
pub use union::{Places, Shared, union};
