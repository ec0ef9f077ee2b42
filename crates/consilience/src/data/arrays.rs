//! Arrow's arrays on their way to columns: from Parquet files, and from tables in memory.

use super::part::ColumnPart;
use super::spelling::Spelling;
use super::table::{Column, ColumnKind, MISSING};
use crate::{Error, Place, Result};
use arrow_array::cast::AsArray;
use arrow_array::types;
use arrow_array::{Array, LargeStringArray, RecordBatch, StringArray, StringViewArray};
use arrow_schema::{DataType, Field};
use std::path::Path;

/// The largest integer up to which all are exact in an f64.
const EXACT: u64 = 1 << 53;

/// What the type of this field stands for, if for anything.
pub(super) fn kind(field: &Field) -> Option<ColumnKind> {
    let plain = match field.data_type() {
        DataType::Dictionary(_, values) => values,
        other => other,
    };
    use DataType::*;
    Some(match plain {
        Boolean => ColumnKind::Logical,
        Utf8 | LargeUtf8 | Utf8View => ColumnKind::Text,
        Float32 => ColumnKind::Single,
        Null | Float16 | Float64 => ColumnKind::Number,
        Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) => ColumnKind::Number,
        other if other.is_integer() => ColumnKind::Number,
        _ => return None,
    })
}

/// A column without rows, of the kind that the type of this field stands for.
pub(super) fn empty(file: &Path, field: &Field) -> Result<ColumnPart> {
    let unknown = || {
        let message = format!(
            "the type {} cannot be used; write the column as numbers, text or logicals, or name the columns to read and leave it out",
            field.data_type()
        );
        Error::input_at(Place::file(file).column(field.name()), message)
    };
    kind(field).map(ColumnPart::typed).ok_or_else(unknown)
}

/// Adds a batch, before which so many rows stand in the file, to columns that have these places in it.
pub(super) fn add(
    columns: &mut [ColumnPart],
    places: &[usize],
    batch: &RecordBatch,
    (file, before): (&Path, u64),
    spelling: &Spelling,
) -> Result<()> {
    for (column, &i) in columns.iter_mut().zip(places) {
        add_array(column, batch.column(i), spelling).map_err(|(row, message)| {
            let row = Some(before + row as u64 + 1);
            let name = batch.schema().field(i).name().clone();
            Error::input_at(Place { row, ..Place::file(file).column(name) }, message)
        })?;
    }
    Ok(())
}

/// Adds the rows of an array; if one cannot be used, that row and why.
fn add_array(
    column: &mut ColumnPart,
    array: &dyn Array,
    spelling: &Spelling,
) -> std::result::Result<(), (usize, String)> {
    let dictionary = array.as_any_dictionary_opt();
    let values = dictionary.map_or(array, |d| d.values().as_ref());
    let keys = dictionary.filter(|d| !d.values().is_empty()).map(|d| d.normalized_keys());
    // Where the value of a row stands in `values`; none if it is missing.
    let nulls = array.logical_nulls();
    let index = |row: usize| match &nulls {
        Some(nulls) if nulls.is_null(row) => None,
        _ => Some(keys.as_ref().map_or(row, |keys| keys[row])),
    };
    let rows = 0..array.len();
    let (column, words) = column.grow(array.len());
    match column {
        Column::Single(all) => {
            let numbers = values.as_primitive::<types::Float32Type>().values();
            let is_na = |x: f32| spelling.is_na_number(f64::from(x));
            let plain = |x: &f32| x.is_finite() && !is_na(*x);
            if nulls.is_none() && keys.is_none() && numbers.iter().all(plain) {
                all.extend_from_slice(numbers);
                return Ok(());
            }
            for row in rows {
                all.push(match index(row) {
                    None => f32::NAN,
                    Some(i) if is_na(numbers[i]) => f32::NAN,
                    Some(i) if numbers[i].is_finite() => numbers[i],
                    Some(i) => return Err((row, complaint(values, i))),
                });
            }
        }
        Column::Number(all) => {
            let numbers = numbers(values);
            for row in rows {
                all.push(match index(row) {
                    None => f64::NAN,
                    Some(i) if spelling.is_na_number(numbers[i]) => f64::NAN,
                    Some(i) if !numbers[i].is_nan() => numbers[i],
                    Some(i) => return Err((row, complaint(values, i))),
                });
            }
        }
        Column::Logical(all) => {
            let values = values.as_boolean();
            all.extend(rows.map(|r| index(r).map_or(MISSING, |i| u32::from(values.value(i)))));
        }
        Column::Text { codes, .. } => {
            let strings = Strings::new(values);
            // A level gets its code with its first row, so that none is without rows.
            let mut known = vec![MISSING; if keys.is_some() { values.len() } else { 0 }];
            let mut code_of = |word: &str| match spelling.is_na(word) {
                true => MISSING,
                false => words.code(word),
            };
            for row in rows {
                let code = match index(row) {
                    None => MISSING,
                    Some(i) => match known.get_mut(i) {
                        None => code_of(strings.value(i)),
                        Some(code) => {
                            if *code == MISSING {
                                *code = code_of(strings.value(i));
                            }
                            *code
                        }
                    },
                };
                codes.push(code);
            }
        }
    }
    Ok(())
}

/// The strings of an array of any layout.
enum Strings<'a> {
    Small(&'a StringArray),
    Large(&'a LargeStringArray),
    View(&'a StringViewArray),
}

impl<'a> Strings<'a> {
    fn new(array: &'a dyn Array) -> Strings<'a> {
        match array.data_type() {
            DataType::LargeUtf8 => Strings::Large(array.as_string()),
            DataType::Utf8View => Strings::View(array.as_string_view()),
            _ => Strings::Small(array.as_string()),
        }
    }

    fn value(&self, i: usize) -> &'a str {
        match self {
            Strings::Small(array) => array.value(i),
            Strings::Large(array) => array.value(i),
            Strings::View(array) => array.value(i),
        }
    }
}

/// The values of an array as numbers; NaN for those that no finite f64 stands for.
fn numbers(array: &dyn Array) -> Vec<f64> {
    use types::*;
    fn map<T: ArrowPrimitiveType>(array: &dyn Array, f: impl Fn(T::Native) -> f64) -> Vec<f64> {
        array.as_primitive::<T>().values().iter().map(|&v| f(v)).collect()
    }
    let finite = |x: f64| if x.is_finite() { x } else { f64::NAN };
    match array.data_type() {
        DataType::Int8 => map::<Int8Type>(array, f64::from),
        DataType::Int16 => map::<Int16Type>(array, f64::from),
        DataType::Int32 => map::<Int32Type>(array, f64::from),
        DataType::Int64 => {
            map::<Int64Type>(array, |v| if v.unsigned_abs() <= EXACT { v as f64 } else { f64::NAN })
        }
        DataType::UInt8 => map::<UInt8Type>(array, f64::from),
        DataType::UInt16 => map::<UInt16Type>(array, f64::from),
        DataType::UInt32 => map::<UInt32Type>(array, f64::from),
        DataType::UInt64 => {
            map::<UInt64Type>(array, |v| if v <= EXACT { v as f64 } else { f64::NAN })
        }
        DataType::Float16 => map::<Float16Type>(array, |v| finite(v.to_f64())),
        DataType::Float64 => map::<Float64Type>(array, finite),
        DataType::Decimal32(_, s) => map::<Decimal32Type>(array, |v| decimal(i128::from(v), *s)),
        DataType::Decimal64(_, s) => map::<Decimal64Type>(array, |v| decimal(i128::from(v), *s)),
        DataType::Decimal128(_, s) => map::<Decimal128Type>(array, |v| decimal(v, *s)),
        DataType::Decimal256(..) => {
            let array = array.as_primitive::<Decimal256Type>();
            (0..array.len()).map(|i| array.value_as_string(i).parse().unwrap_or(f64::NAN)).collect()
        }
        // Null: all of them are missing, so these numbers are not looked at.
        _ => vec![0.0; array.len()],
    }
}

/// The number nearest to `digits` / 10^`scale`.
fn decimal(digits: i128, scale: i8) -> f64 {
    const TENS: [f64; 10] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
    match usize::try_from(scale).ok().and_then(|scale| TENS.get(scale)) {
        // Both are exact, so the quotient is rounded once.
        Some(ten) if digits.unsigned_abs() <= u128::from(EXACT) => digits as f64 / ten,
        // The standard library's parser rounds once however many digits there are.
        _ => format!("{digits}e{}", -i32::from(scale)).parse().unwrap_or(f64::NAN),
    }
}

/// What is wrong with a value for which there is no number.
fn complaint(array: &dyn Array, i: usize) -> String {
    use types::*;
    let value = match array.data_type() {
        DataType::Int64 => array.as_primitive::<Int64Type>().value(i).to_string(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(i).to_string(),
        DataType::Float16 => array.as_primitive::<Float16Type>().value(i).to_string(),
        DataType::Float32 => array.as_primitive::<Float32Type>().value(i).to_string(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(i).to_string(),
        _ => "the value".to_string(),
    };
    if array.data_type().is_integer() {
        format!(
            "the integer {value} is beyond ±2^53 and cannot be represented exactly; store the column as text"
        )
    } else {
        super::inputs::not_finite(&value, "store a null")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_rounded_once() {
        assert_eq!(decimal(123_456, 2), 1234.56);
        assert_eq!(decimal(-1, 1), -0.1);
        assert_eq!(decimal(7, -3), 7000.0);
        assert_eq!(decimal(123_456_789_012_345_678_901_234_567, 20), 1_234_567.890_123_456_7);
        assert_eq!(decimal(i128::MAX, 38), 1.701_411_834_604_692_3);
    }
}
