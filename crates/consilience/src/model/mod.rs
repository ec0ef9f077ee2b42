//! Models: likelihood families, priors, and the subposterior that a shard works with.

pub mod family;
pub mod prior;

pub use family::Family;
pub use prior::Prior;
