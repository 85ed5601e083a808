//! What stands in a field of an object, whatever that is. No form of a field makes decoding fail, so that an object of an
//! unexpected form is nobody else's concern: not that of the list that it came in, nor that of the watch.
//!
//! Whether an odd field is as good as absent, or leaves the whole object without a meaning, is for each kind of object to say.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use jiff::Timestamp;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Why an object cannot be understood: the field in question, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(String);

impl Unreadable {
    /// An object that this is wrong with.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    /// A field that has to be there is not.
    pub(super) fn missing(field: &str) -> Self {
        Self(format!("{field} is missing"))
    }

    /// A field has another form than the API gives it.
    pub(super) fn odd(field: &str) -> Self {
        Self(format!("{field} has a form that the API does not know"))
    }
}

/// What stands in a field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Field<T> {
    /// Nothing, or `null`.
    #[default]
    Absent,
    /// What is expected there.
    Is(T),
    /// Something else.
    Odd,
}

impl<T> Field<T> {
    /// What stands there, where anything odd is as good as absent.
    pub fn if_readable(self) -> Option<T> {
        match self {
            Self::Is(value) => Some(value),
            Self::Absent | Self::Odd => None,
        }
    }

    /// The same without taking it.
    pub fn as_readable(&self) -> Option<&T> {
        match self {
            Self::Is(value) => Some(value),
            Self::Absent | Self::Odd => None,
        }
    }

    /// Whether something else stands there than is expected.
    pub fn is_odd(&self) -> bool {
        matches!(self, Self::Odd)
    }

    /// What stands there, where nothing odd may.
    pub fn or_unreadable(self, field: &str) -> Result<Option<T>, Unreadable> {
        match self {
            Self::Absent => Ok(None),
            Self::Is(value) => Ok(Some(value)),
            Self::Odd => Err(Unreadable::odd(field)),
        }
    }
}

impl<T> Field<Vec<Field<T>>> {
    /// Those elements of a list that are as expected.
    pub fn readable_elements(self) -> impl Iterator<Item = T> {
        let elements = self.if_readable().unwrap_or_default();
        elements.into_iter().filter_map(Field::if_readable)
    }

    /// All elements of a list, none of which may be odd.
    pub fn elements_or_unreadable(self, field: &str) -> Result<Vec<T>, Unreadable> {
        let elements = self.or_unreadable(field)?.unwrap_or_default().into_iter();
        elements
            .map(|element| element.if_readable().ok_or_else(|| Unreadable::odd(field)))
            .collect()
    }
}

/// What a value looks like on the wire. Whatever a type has no method for is not its form.
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

/// A time that lies beyond what can be told here, as the last day of the year 9999 does, is odd.
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

/// Labels, annotations and the like. To the API `null` is an empty text.
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

/// Takes whatever is there.
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

/// Gives these types, all of whose fields take anything, the form of a JSON object.
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

/// Has these wire types decoded from whatever an item of a list is: what is no JSON object is like an empty one. They derive
/// their decoding from a JSON object with `#[serde(remote = "Self")]`.
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
