//! Parts of an object whose every field matters: decoded as a whole, or kept as the decoder's error.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The deepest nesting of such a part. At twice that, the decoder of a whole list would fail.
const DEPTH: u8 = 64;

/// Decodes the part, or returns the error. Like the API, it treats `null` as absent.
pub(super) fn whole<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Result<T, String>, D::Error> {
    let value = Part { depth: DEPTH }.deserialize(deserializer)?;
    Ok(serde_path_to_error::deserialize(value).map_err(|error| error.to_string()))
}

/// Collects any JSON value, without nulls and anything nested too deep.
#[derive(Clone, Copy)]
struct Part {
    /// How many more levels are accepted.
    depth: u8,
}

impl Part {
    fn deeper(self) -> Option<Self> {
        let depth = self.depth.checked_sub(1)?;
        Some(Self { depth })
    }
}

impl<'de> DeserializeSeed<'de> for Part {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(flag.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        if let Some(deeper) = self.deeper() {
            while let Some(element) = list.next_element_seed(deeper)? {
                elements.push(element);
            }
        } else {
            while list.next_element::<IgnoredAny>()?.is_some() {}
        }
        Ok(elements.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        if let Some(deeper) = self.deeper() {
            while let Some(name) = object.next_key::<String>()? {
                let value = object.next_value_seed(deeper)?;
                if !value.is_null() {
                    fields.insert(name, value);
                }
            }
        } else {
            while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        }
        Ok(fields.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str) -> Value {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let read = whole(&mut deserializer).expect("nothing is wrong with the rest");
        deserializer.end().expect("all of it is taken");
        read.expect("any value will do")
    }

    #[test]
    fn a_part_is_read_without_what_is_null() {
        let read = part(r#"{"a": null, "b": [1, null, {"c": null, "d": "e"}], "f": -1.5}"#);
        let expected = serde_json::json!({"b": [1, null, {"d": "e"}], "f": -1.5});
        assert_eq!(read, expected);
    }

    #[test]
    fn however_deep_a_part_is_the_rest_can_be_read() {
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
            let text = format!("{}1{}", open.repeat(1000), close.repeat(1000));
            part(&text);
        }
    }
}
