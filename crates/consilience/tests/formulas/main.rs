//! Formulas: their text, and what shards agree on for them.

mod agreement;
mod bases;
mod written;
