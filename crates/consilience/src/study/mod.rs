//! The study file.
