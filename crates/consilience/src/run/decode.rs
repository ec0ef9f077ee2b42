//! Reading bodies that may be hostile: a few bytes can stand for a large value (an empty list, a missing
//! number), so what a value takes in memory is counted while it is read, and bounded.

use serde::Deserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};
use std::cell::Cell;
use std::fmt;

/// What a body may take in memory beyond its own length. Numbers, which fill large bodies, take what
/// their bytes take; what takes more, such as names and levels, is never this much in honest ones.
const SPARE: usize = 48 << 20;
/// What a piece of text takes beside its bytes, at least.
const TEXT: usize = 32;
/// What a field of a structure takes, more or less.
const FIELD: usize = 24;

/// Reads a postcard body to its end, or says what is wrong with it.
pub(super) fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    let meter = Meter { left: Cell::new(SPARE + body.len()), paid: Cell::new(0) };
    let mut reader = postcard::Deserializer::from_bytes(body);
    let value = T::deserialize(Metered { inner: &mut reader, meter: &meter });
    match value.and_then(|value| Ok((value, reader.finalize()?))) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(format!("{} bytes of its content belong to nothing", rest.len())),
        Err(_) if meter.left.get() == 0 => {
            Err("its content would take far more memory than its bytes".into())
        }
        Err(error) => Err(format!("its content cannot be read ({error})")),
    }
}

/// Counts what is taken.
struct Meter {
    left: Cell<usize>,
    /// What was taken for the element of a list that is being read, and is still to be filled.
    paid: Cell<usize>,
}

impl Meter {
    /// Takes so many bytes of what is left.
    fn charge<E: Error>(&self, bytes: usize) -> Result<(), E> {
        let rest = self.left.get().saturating_sub(bytes);
        self.left.set(rest);
        if rest > 0 { Ok(()) } else { Err(E::custom("too large")) }
    }

    /// Takes what a structure of so many fields needs: from its place in a list, if it is there and not
    /// elsewhere in memory.
    fn structure<E: Error>(&self, fields: usize) -> Result<(), E> {
        let paid = self.paid.get().min(FIELD * fields);
        self.paid.set(self.paid.get() - paid);
        self.charge(FIELD * fields - paid)
    }

    /// Takes room for an element of a list and reads it.
    fn element<T, E: Error>(
        &self,
        read: impl FnOnce() -> Result<T, E>,
        size: usize,
    ) -> Result<T, E> {
        self.charge(size)?;
        let outer = self.paid.replace(size);
        let value = read();
        self.paid.set(outer);
        value
    }
}

/// Somebody who reads (a deserializer, a visitor, a seed or an access), and what is left to be taken.
struct Metered<'a, T> {
    inner: T,
    meter: &'a Meter,
}

impl<'a, T> Metered<'a, T> {
    fn of<U>(&self, inner: U) -> Metered<'a, U> {
        Metered { inner, meter: self.meter }
    }
}

macro_rules! pass_on {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            let visitor = self.of(visitor);
            self.inner.$method(visitor)
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Metered<'_, D> {
    type Error = D::Error;

    pass_on! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32
        deserialize_i64 deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32
        deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char
        deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf
        deserialize_option deserialize_unit deserialize_identifier deserialize_ignored_any
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = Listing(self.of(visitor));
        self.inner.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = Listing(self.of(visitor));
        self.inner.deserialize_map(visitor)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.of(visitor);
        self.inner.deserialize_unit_struct(name, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.of(visitor);
        self.inner.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.of(visitor);
        self.inner.deserialize_tuple(len, visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.of(visitor);
        self.inner.deserialize_tuple_struct(name, len, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.meter.structure(fields.len())?;
        let visitor = self.of(visitor);
        self.inner.deserialize_struct(name, fields, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.of(visitor);
        self.inner.deserialize_enum(name, variants, visitor)
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! visit_plain {
    ($($method:ident: $type:ty)*) => {
        $(fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        })*
    };
}

/// Visits anything but lists, whose elements take room of their own.
impl<'de, V: Visitor<'de>> Visitor<'de> for Metered<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.inner.expecting(f)
    }

    visit_plain! {
        visit_bool: bool visit_i8: i8 visit_i16: i16 visit_i32: i32 visit_i64: i64 visit_i128: i128
        visit_u8: u8 visit_u16: u16 visit_u32: u32 visit_u64: u64 visit_u128: u128 visit_f32: f32
        visit_f64: f64 visit_char: char
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<V::Value, E> {
        self.meter.charge(text.len().max(TEXT))?;
        self.inner.visit_str(text)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<V::Value, E> {
        self.meter.charge(text.len().max(TEXT))?;
        self.inner.visit_borrowed_str(text)
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<V::Value, E> {
        self.meter.charge(bytes.len().max(TEXT))?;
        self.inner.visit_bytes(bytes)
    }

    fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<V::Value, E> {
        self.meter.charge(bytes.len().max(TEXT))?;
        self.inner.visit_borrowed_bytes(bytes)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, reader: D) -> Result<V::Value, D::Error> {
        let reader = self.of(reader);
        self.inner.visit_some(reader)
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, reader: D) -> Result<V::Value, D::Error> {
        let reader = self.of(reader);
        self.inner.visit_newtype_struct(reader)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, fields: A) -> Result<V::Value, A::Error> {
        let fields = self.of(fields);
        self.inner.visit_seq(fields)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        let variant = self.of(variant);
        self.inner.visit_enum(variant)
    }
}

/// Visits a list or a map of any length.
struct Listing<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for Listing<Metered<'_, V>> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.inner.expecting(f)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<V::Value, A::Error> {
        let elements = Listing(self.0.of(elements));
        self.0.inner.visit_seq(elements)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        let entries = self.0.of(entries);
        self.0.inner.visit_map(entries)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Listing<Metered<'_, A>> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let seed = Metered { inner: seed, meter: self.0.meter };
        let (inner, meter) = (&mut self.0.inner, self.0.meter);
        meter.element(|| inner.next_element_seed(seed), size_of::<S::Value>())
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.inner.size_hint()
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Metered<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.inner.next_element_seed(Metered { inner: seed, meter: self.meter })
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Metered<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let (inner, meter) = (&mut self.inner, self.meter);
        let seed = Metered { inner: seed, meter };
        meter.element(|| inner.next_key_seed(seed), size_of::<K::Value>())
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let (inner, meter) = (&mut self.inner, self.meter);
        let seed = Metered { inner: seed, meter };
        meter.element(|| inner.next_value_seed(seed), size_of::<S::Value>())
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Metered<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<S::Value, D::Error> {
        let reader = self.of(reader);
        self.inner.deserialize(reader)
    }
}

impl<'a, 'de, A: EnumAccess<'de>> EnumAccess<'de> for Metered<'a, A> {
    type Error = A::Error;
    type Variant = Metered<'a, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let (value, variant) = self.inner.variant_seed(seed)?;
        Ok((value, Metered { inner: variant, meter: self.meter }))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Metered<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        let seed = self.of(seed);
        self.inner.newtype_variant_seed(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        let visitor = self.of(visitor);
        self.inner.tuple_variant(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let visitor = self.of(visitor);
        self.inner.struct_variant(fields, visitor)
    }
}
