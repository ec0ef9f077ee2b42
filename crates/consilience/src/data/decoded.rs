//! Arrays of Parquet files on their way to columns.

use super::part::{Codes, Kind, Part};
use super::table::MISSING;
use crate::{Error, Place, Result};
use arrow_array::cast::AsArray;
use arrow_array::types;
use arrow_array::{Array, LargeStringArray, StringArray, StringViewArray};
use arrow_schema::DataType;

/// The largest integer up to which all are exact in an f64.
const EXACT: u64 = 1 << 53;

/// A column while it is read.
pub(super) struct Decoded {
    place: Place,
    values: Values,
}

enum Values {
    Number(Vec<f64>),
    Single(Vec<f32>),
    Logical(Vec<u32>),
    Text(Codes),
}

impl Decoded {
    /// The column, empty, of the kind that its type stands for.
    pub fn new(data_type: &DataType, place: Place) -> Result<Decoded> {
        let plain = match data_type {
            DataType::Dictionary(_, values) => values,
            other => other,
        };
        let values = match plain {
            DataType::Boolean => Values::Logical(Vec::new()),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                Values::Text(Codes::default())
            }
            DataType::Null | DataType::Decimal256(..) => Values::Number(Vec::new()),
            DataType::Float32 => Values::Single(Vec::new()),
            DataType::Float16 | DataType::Float64 => Values::Number(Vec::new()),
            DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) => {
                Values::Number(Vec::new())
            }
            other if other.is_integer() => Values::Number(Vec::new()),
            _ => {
                let message = format!(
                    "the type {data_type} cannot be used; write the column as numbers, text or logicals, or name the columns to read and leave it out"
                );
                return Err(Error::input_at(place, message));
            }
        };
        Ok(Decoded { place, values })
    }

    /// Adds an array before which so many rows stand in the file.
    pub fn add(&mut self, array: &dyn Array, before: u64) -> Result<()> {
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
        let place = |row: usize| Place { row: Some(before + row as u64 + 1), ..self.place.clone() };
        match &mut self.values {
            Values::Single(all) => {
                let numbers = values.as_primitive::<types::Float32Type>().values();
                if nulls.is_none() && keys.is_none() && numbers.iter().all(|x| x.is_finite()) {
                    all.extend_from_slice(numbers);
                    return Ok(());
                }
                for row in rows {
                    let number = index(row).map(|i| (i, numbers[i]));
                    if let Some((i, number)) = number
                        && !number.is_finite()
                    {
                        return Err(Error::input_at(place(row), complaint(values, i)));
                    }
                    all.push(number.map_or(f32::NAN, |(_, number)| number));
                }
            }
            Values::Number(all) => {
                let numbers = numbers(values);
                for row in rows {
                    let number = index(row).map(|i| (i, numbers[i]));
                    if let Some((i, number)) = number
                        && number.is_nan()
                    {
                        return Err(Error::input_at(place(row), complaint(values, i)));
                    }
                    all.push(number.map_or(f64::NAN, |(_, number)| number));
                }
            }
            Values::Logical(all) => {
                let values = values.as_boolean();
                all.extend(rows.map(|r| index(r).map_or(MISSING, |i| u32::from(values.value(i)))));
            }
            Values::Text(all) => {
                let strings = Strings::new(values);
                // A level gets its code with its first row, so that none is without rows.
                let mut known = vec![MISSING; if keys.is_some() { values.len() } else { 0 }];
                for row in rows {
                    let code = match index(row) {
                        None => MISSING,
                        Some(i) => match known.get_mut(i) {
                            None => all.code(strings.value(i)),
                            Some(code) => {
                                if *code == MISSING {
                                    *code = all.code(strings.value(i));
                                }
                                *code
                            }
                        },
                    };
                    all.push(code);
                }
            }
        }
        Ok(())
    }

    /// The parts of a column behind each other, so many rows. There is at least one.
    pub fn join(parts: Vec<Decoded>, rows: usize) -> Decoded {
        let mut parts = parts.into_iter();
        let mut all = parts.next().expect("a file with rows has a row group");
        let mut rest = parts.peekable();
        if rest.peek().is_none() {
            return all;
        }
        let more = rows.saturating_sub(all.rows());
        match &mut all.values {
            Values::Number(all) => all.reserve_exact(more),
            Values::Single(all) => all.reserve_exact(more),
            Values::Logical(all) => all.reserve_exact(more),
            Values::Text(_) => {}
        }
        for part in rest {
            match (&mut all.values, part.values) {
                (Values::Number(all), Values::Number(values)) => all.extend_from_slice(&values),
                (Values::Single(all), Values::Single(values)) => all.extend_from_slice(&values),
                (Values::Logical(all), Values::Logical(values)) => all.extend_from_slice(&values),
                (Values::Text(all), Values::Text(values)) => all.append(values),
                _ => unreachable!("a column has one type"),
            }
        }
        all
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        match &self.values {
            Values::Number(values) => values.len(),
            Values::Single(values) => values.len(),
            Values::Logical(values) => values.len(),
            Values::Text(codes) => codes.len(),
        }
    }

    /// The kind that the type stands for.
    pub fn kind(&self) -> Kind {
        match &self.values {
            Values::Number(_) => Kind::Number,
            Values::Single(_) => Kind::Single,
            Values::Logical(_) => Kind::Logical,
            Values::Text(_) => Kind::Text,
        }
    }

    /// The same, unless all values are missing: then it may be of any kind.
    pub fn known_kind(&self) -> Kind {
        let all_missing = match &self.values {
            Values::Number(values) => values.iter().all(|v| v.is_nan()),
            Values::Single(values) => values.iter().all(|v| v.is_nan()),
            Values::Logical(codes) => codes.iter().all(|&c| c == MISSING),
            Values::Text(codes) => codes.has_no_levels(),
        };
        if all_missing { Kind::Unknown } else { self.kind() }
    }

    /// The whole column; spelled out if it is to be text.
    pub fn finish(self, as_text: bool) -> Part {
        match self.values {
            Values::Number(v) if as_text => {
                spell(v.into_iter().map(|x| (!x.is_nan()).then(|| x.to_string())))
            }
            Values::Single(v) if as_text => {
                spell(v.into_iter().map(|x| (!x.is_nan()).then(|| f64::from(x).to_string())))
            }
            Values::Logical(v) if as_text => {
                spell(v.into_iter().map(|c| (c != MISSING).then(|| (c == 1).to_string())))
            }
            Values::Number(v) => Part::numbers(v),
            Values::Single(v) => Part::singles(v),
            Values::Logical(v) => Part::logicals(v),
            Values::Text(v) => Part::texts(v),
        }
    }
}

fn spell(values: impl Iterator<Item = Option<String>>) -> Part {
    let mut codes = Codes::default();
    for value in values {
        let code = value.map_or(MISSING, |value| codes.code(&value));
        codes.push(code);
    }
    Part::texts(codes)
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
        format!("`{value}` is not a finite number; store a null if it is missing")
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
