//! Data: tables, formulas, the schema that shards agree on, designs and splits.

pub mod table;

pub use table::{Column, Origin, Table};
