//! A field of an object, well-formed or not. Malformed fields never make decoding fail, so a malformed object affects neither
//! the list that contains it nor its watch.
//!
//! Each kind of object decides whether a malformed field counts as absent or makes the object unreadable.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use jiff::Timestamp;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Why an object is unreadable: the field and its problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(String);

impl Unreadable {
    /// An unreadable object with this problem.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    /// A required field is missing.
    pub(super) fn missing(field: &str) -> Self {
        Self(format!("{field} is missing"))
    }

    /// A field is malformed.
    pub(super) fn odd(field: &str) -> Self {
        Self(format!("{field} has a form that the API does not know"))
    }
}

/// The content of a field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Field<T> {
    /// Absent, or `null`.
    #[default]
    Absent,
    /// Well-formed.
    Is(T),
    /// Malformed.
    Odd,
}

impl<T> Field<T> {
    /// The value; a malformed one counts as absent.
    pub(super) fn if_readable(self) -> Option<T> {
        match self {
            Self::Is(value) => Some(value),
            Self::Absent | Self::Odd => None,
        }
    }

    /// The same, by reference.
    pub(super) fn as_readable(&self) -> Option<&T> {
        match self {
            Self::Is(value) => Some(value),
            Self::Absent | Self::Odd => None,
        }
    }

    /// Whether it is malformed.
    pub(super) fn is_odd(&self) -> bool {
        matches!(self, Self::Odd)
    }

    /// The value, or an error if it is malformed.
    pub(super) fn or_unreadable(self, field: &str) -> Result<Option<T>, Unreadable> {
        match self {
            Self::Absent => Ok(None),
            Self::Is(value) => Ok(Some(value)),
            Self::Odd => Err(Unreadable::odd(field)),
        }
    }
}

impl<T> Field<Vec<Field<T>>> {
    /// The well-formed elements of a list.
    pub(super) fn readable_elements(self) -> impl Iterator<Item = T> {
        let elements = self.if_readable().unwrap_or_default();
        elements.into_iter().filter_map(Field::if_readable)
    }

    /// The elements of a list, or an error if any is malformed.
    pub(super) fn elements_or_unreadable(self, field: &str) -> Result<Vec<T>, Unreadable> {
        let elements = self.or_unreadable(field)?.unwrap_or_default().into_iter();
        elements
            .map(|element| element.if_readable().ok_or_else(|| Unreadable::odd(field)))
            .collect()
    }
}

/// Converts JSON values. A JSON type without a method here is malformed for this type.
pub(super) trait Form: Sized {
    fn of_text(_: &str) -> Option<Self> {
        None
    }

    fn of_string(text: String) -> Option<Self> {
        Self::of_text(&text)
    }

    fn of_flag(_: bool) -> Option<Self> {
        None
    }

    fn of_integer(_: i64) -> Option<Self> {
        None
    }

    fn of_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn of_object<'de, A: MapAccess<'de>>(mut object: A) -> Result<Option<Self>, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

impl Form for String {
    fn of_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }

    fn of_string(text: String) -> Option<Self> {
        Some(text)
    }
}

impl Form for bool {
    fn of_flag(flag: bool) -> Option<Self> {
        Some(flag)
    }
}

impl Form for i64 {
    fn of_integer(number: i64) -> Option<Self> {
        Some(number)
    }
}

/// A time that `jiff` cannot represent, such as the last day of the year 9999, counts as malformed.
impl Form for Timestamp {
    fn of_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl<T: Form> Form for Vec<Field<T>> {
    fn of_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        let mut elements = Vec::with_capacity(list.size_hint().unwrap_or_default().min(64));
        while let Some(element) = list.next_element()? {
            elements.push(element);
        }
        Ok(Some(elements))
    }
}

/// Labels, annotations and the like. Like the API, it takes `null` for an empty text.
impl Form for BTreeMap<String, String> {
    fn of_object<'de, A: MapAccess<'de>>(mut object: A) -> Result<Option<Self>, A::Error> {
        let mut entries = Self::new();
        let mut is_odd = false;
        while let Some((key, value)) = object.next_entry::<String, Field<String>>()? {
            is_odd |= value == Field::Odd;
            entries.insert(key, value.if_readable().unwrap_or_default());
        }
        Ok((!is_odd).then_some(entries))
    }
}

impl<'de, T: Form> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Anything(PhantomData))
    }
}

/// Accepts any JSON value.
struct Anything<T>(PhantomData<T>);

impl<T> Anything<T> {
    fn found(value: Option<T>) -> Field<T> {
        value.map_or(Field::Odd, Field::Is)
    }
}

impl<'de, T: Form> Visitor<'de> for Anything<T> {
    type Value = Field<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_unit<E>(self) -> Result<Field<T>, E> {
        Ok(Field::Absent)
    }

    fn visit_none<E>(self) -> Result<Field<T>, E> {
        Ok(Field::Absent)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Field<T>, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Field<T>, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Field<T>, E> {
        Ok(Self::found(T::of_flag(flag)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Field<T>, E> {
        Ok(Self::found(T::of_integer(number)))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Field<T>, E> {
        Ok(Self::found(
            i64::try_from(number).ok().and_then(T::of_integer),
        ))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Field<T>, E> {
        Ok(Field::Odd)
    }

    fn visit_str<E>(self, text: &str) -> Result<Field<T>, E> {
        Ok(Self::found(T::of_text(text)))
    }

    fn visit_string<E>(self, text: String) -> Result<Field<T>, E> {
        Ok(Self::found(T::of_string(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Field<T>, A::Error> {
        Ok(Self::found(T::of_list(list)?))
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Field<T>, A::Error> {
        Ok(Self::found(T::of_object(object)?))
    }
}

/// Implements [`Form`] for structs that decode from a JSON object and accept anything in their fields.
macro_rules! objects {
    ($($name:ident),+ $(,)?) => {$(
        impl $crate::object::field::Form for $name {
            fn of_object<'de, A: serde::de::MapAccess<'de>>(
                object: A,
            ) -> Result<Option<Self>, A::Error> {
                let object = serde::de::value::MapAccessDeserializer::new(object);
                Self::deserialize(object).map(Some)
            }
        }
    )+};
}

/// Implements decoding of list items from any JSON value; one that is not an object counts as an empty object. The types derive
/// their decoding from an object with `#[serde(remote = "Self")]`.
macro_rules! items {
    ($($name:ident),+ $(,)?) => {
        $crate::object::field::objects!($($name),+);
        $(
            impl<'de> Deserialize<'de> for $name {
                fn deserialize<D: serde::Deserializer<'de>>(
                    deserializer: D,
                ) -> Result<Self, D::Error> {
                    let item = $crate::object::field::Field::<Self>::deserialize(deserializer)?;
                    Ok(item.if_readable().unwrap_or_default())
                }
            }
        )+
    };
}

pub(super) use {items, objects};

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn field<T: Form>(value: Value) -> Field<T> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_is_expected_is_told_from_what_is_odd_and_from_nothing() {
        use Field::{Absent, Is, Odd};
        assert_eq!(field::<String>(json!("a")), Is("a".into()));
        assert_eq!(field::<bool>(json!(true)), Is(true));
        assert_eq!(field::<i64>(json!(-3)), Is(-3));
        let new_year = "2026-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(
            field::<Timestamp>(json!("2026-01-01T00:00:00Z")),
            Is(new_year)
        );
        for odd in [
            json!("9999-12-31T23:59:59Z"),
            json!("soon"),
            json!(1.5),
            json!(u64::MAX),
            json!([1, {"a": []}]),
            json!({"a": {"b": null}}),
        ] {
            assert_eq!(field::<Timestamp>(odd.clone()), Odd, "{odd}");
            assert_eq!(field::<i64>(odd.clone()), Odd, "{odd}");
        }
        assert_eq!(field::<String>(Value::Null), Absent);
        assert_eq!(field::<Vec<Field<i64>>>(Value::Null), Absent);
    }

    #[test]
    fn a_list_is_read_element_by_element() {
        let list = || field::<Vec<Field<String>>>(json!(["a", 1, null, "b"]));
        assert_eq!(list().readable_elements().collect::<Vec<_>>(), ["a", "b"]);
        let complaint = list().elements_or_unreadable("spec.list").unwrap_err();
        assert_eq!(
            complaint.to_string(),
            "spec.list has a form that the API does not know"
        );
        let whole = field::<Vec<Field<String>>>(json!(["a", "b"]));
        assert_eq!(whole.elements_or_unreadable("x").unwrap(), ["a", "b"]);
    }

    #[test]
    fn a_map_of_texts_has_nothing_else_in_it() {
        let map = |value| field::<BTreeMap<String, String>>(value).if_readable();
        let expected = BTreeMap::from([("a".into(), "b".into()), ("c".into(), String::new())]);
        assert_eq!(map(json!({"a": "b", "c": null})), Some(expected));
        assert_eq!(map(json!({"a": 1, "c": "d"})), None);
        assert_eq!(map(json!(["a"])), None);
    }
}
