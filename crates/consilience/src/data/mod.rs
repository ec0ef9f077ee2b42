//! Data: tables, formulas, the schema that shards agree on, designs and splits.

mod csv;
mod files;
mod parquet;
mod part;
pub mod read;
mod records;
pub mod table;

pub use table::{Column, Origin, Table};
