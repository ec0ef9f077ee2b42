//! Columns as Arrow's arrays, to be written.

use super::table::{Column, MISSING};
use arrow_array::{ArrayRef, BooleanArray, Float32Array, Float64Array, StringArray};
use std::sync::Arc;

/// A column's values, null where one is missing.
pub(super) fn array(column: Column) -> ArrayRef {
    match column {
        Column::Number(values) if !values.iter().any(|v| v.is_nan()) => {
            Arc::new(Float64Array::from(values))
        }
        Column::Number(values) => Arc::new(Float64Array::from_iter(
            values.into_iter().map(|v| (!v.is_nan()).then_some(v)),
        )),
        Column::Single(values) if !values.iter().any(|v| v.is_nan()) => {
            Arc::new(Float32Array::from(values))
        }
        Column::Single(values) => Arc::new(Float32Array::from_iter(
            values.into_iter().map(|v| (!v.is_nan()).then_some(v)),
        )),
        Column::Text { codes, levels } => {
            let word = |code: u32| levels.get(code as usize).map(String::as_str);
            Arc::new(StringArray::from_iter(codes.into_iter().map(word)))
        }
        Column::Logical(codes) => Arc::new(BooleanArray::from_iter(
            codes.into_iter().map(|c| (c != MISSING).then_some(c == 1)),
        )),
    }
}
