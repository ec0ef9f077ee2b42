//! The `consilience` program.

fn main() {}
