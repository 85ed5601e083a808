//! The door: counts what is decoded of an object, and stops at the budget of its kind. What is skipped costs nothing.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

/// What a value costs beside its text, in bytes: about what it takes to keep it, and to look at it for each node.
const VALUE: usize = 256;

/// A part of a decoder that spends from what is left of a budget.
pub(super) struct Spending<'b, T>(pub(super) T, pub(super) &'b Cell<usize>);

impl<T> Spending<'_, T> {
    /// Pays for a value with so many bytes of text.
    fn pay<E: Error>(&self, bytes: usize) -> Result<(), E> {
        let left = self.1.get().checked_sub(VALUE + bytes);
        self.1
            .set(left.ok_or_else(|| E::custom("more than is read of one object"))?);
        Ok(())
    }
}

fn free<T>(inner: T, _: &Cell<usize>) -> T {
    inner
}

macro_rules! forward {
    ($($wrap:ident: $method:ident($($name:ident: $type:ty),*);)+) => {$(
        fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method($($name,)* $wrap(visitor, self.1))
        }
    )+};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Spending<'_, D> {
    type Error = D::Error;

    forward! {
        Spending: deserialize_any();
        Spending: deserialize_option();
        Spending: deserialize_newtype_struct(name: &'static str);
        Spending: deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        free: deserialize_identifier();
        free: deserialize_ignored_any();
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct
    }
}

macro_rules! pay {
    ($($method:ident($value:ident: $type:ty) $bytes:expr;)+) => {$(
        fn $method<E: Error>(self, $value: $type) -> Result<V::Value, E> {
            self.pay($bytes)?;
            self.0.$method($value)
        }
    )+};
}

macro_rules! enter {
    ($($wrap:ident: $method:ident($access:ident);)+) => {$(
        fn $method<A: $access<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
            self.pay(0)?;
            self.0.$method($wrap(inner, self.1))
        }
    )+};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Spending<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    pay! {
        visit_bool(it: bool) 0;
        visit_i64(it: i64) 0;
        visit_u64(it: u64) 0;
        visit_f64(it: f64) 0;
        visit_str(it: &str) it.len();
        visit_borrowed_str(it: &'de str) it.len();
        visit_string(it: String) it.len();
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.pay(0)?;
        self.0.visit_unit()
    }

    enter! {
        Spending: visit_some(Deserializer);
        Spending: visit_newtype_struct(Deserializer);
        Spending: visit_seq(SeqAccess);
        Spending: visit_map(MapAccess);
        free: visit_enum(EnumAccess);
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Spending<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Spending(deserializer, self.1))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Spending<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Spending(seed, self.1))
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Spending<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(Spending(seed, self.1))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Spending(seed, self.1))
    }
}
