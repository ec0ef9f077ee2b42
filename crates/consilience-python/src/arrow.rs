//! Tables of Python's libraries, by the Arrow PyCapsule interface: without a copy and without knowing the library.

// A capsule holds a raw pointer, and only `unsafe` code can take what it points to. This is the one module of the
// project that has any.
#![allow(unsafe_code)]

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch, RecordBatchReader, cast::AsArray};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use consilience::data::BatchReader;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};
use std::sync::Arc;

/// What a capsule with an Arrow stream holds, taken out of it: a second time there is nothing.
pub fn reader(capsule: &Bound<'_, PyCapsule>) -> PyResult<BatchReader> {
    let stream =
        capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: the interface says that a capsule of this name holds a pointer to a valid ArrowArrayStream, and PyO3 has
    // checked the name and that the pointer is not null. `from_raw` moves the stream out and leaves a released one
    // behind, as the interface asks, so that the capsule's destructor does not release it again. The GIL is held, so
    // that nobody else takes it meanwhile.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
    let inner = RecordBatchStreamReader::try_new(stream)
        .map_err(|error| PyValueError::new_err(format!("the table cannot be read: {error}")))?;
    Ok(Box::new(WithoutNan::new(inner)))
}

/// A table in which NaN is a missing value, as it is in pandas.
struct WithoutNan<R> {
    inner: R,
    schema: SchemaRef,
}

impl<R: RecordBatchReader> WithoutNan<R> {
    fn new(inner: R) -> WithoutNan<R> {
        let nullable = |field: &Arc<Field>| field.as_ref().clone().with_nullable(true);
        let fields: Vec<Field> = inner.schema().fields().iter().map(nullable).collect();
        WithoutNan { inner, schema: Arc::new(Schema::new(fields)) }
    }

    fn clean(&self, batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
        let clean = |array: &ArrayRef| -> ArrayRef {
            match array.data_type() {
                DataType::Float64 => {
                    without(array, |x: f64| x.is_nan(), array.as_primitive::<Float64Type>())
                }
                DataType::Float32 => {
                    without(array, |x: f32| x.is_nan(), array.as_primitive::<Float32Type>())
                }
                DataType::Float16 => {
                    without(array, |x| f32::from(x).is_nan(), array.as_primitive::<Float16Type>())
                }
                _ => array.clone(),
            }
        };
        // A batch that does not keep to the schema is for the library to refuse.
        if batch.num_columns() != self.schema.fields().len() {
            return Ok(batch);
        }
        let columns = batch.columns().iter().map(clean).collect();
        RecordBatch::try_new(self.schema.clone(), columns)
    }
}

/// The array without values that are NaN.
fn without<T: arrow_array::ArrowPrimitiveType>(
    array: &ArrayRef,
    is_nan: impl Fn(T::Native) -> bool,
    values: &PrimitiveArray<T>,
) -> ArrayRef {
    if !values.values().iter().any(|x| is_nan(*x)) {
        return array.clone();
    }
    let kept = values.iter().map(|value| value.filter(|x| !is_nan(*x)));
    Arc::new(PrimitiveArray::<T>::from_iter(kept))
}

impl<R: RecordBatchReader> Iterator for WithoutNan<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.inner.next()?;
        Some(batch.and_then(|batch| self.clean(batch)))
    }
}

impl<R: RecordBatchReader> RecordBatchReader for WithoutNan<R> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
