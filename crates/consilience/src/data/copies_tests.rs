//! Converted copies.
