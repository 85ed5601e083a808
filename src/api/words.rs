//! Enums of fixed words. Each word is written once; parsing, printing, serde and the schema follow from it.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::Visitor;

/// A word that its field does not accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not one of {expected:?}")]
pub struct UnknownWord {
    /// The word.
    pub word: String,
    /// The accepted words.
    pub expected: &'static [&'static str],
}

/// Parses a borrowed word without copying it.
pub struct WordVisitor<T>(PhantomData<T>);

impl<T> Default for WordVisitor<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T: FromStr<Err = UnknownWord>> Visitor<'_> for WordVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<T, E> {
        word.parse().map_err(E::custom)
    }
}

/// Declares a `Copy` enum whose variants serialize as words.
macro_rules! words {
    (
        $(#[$attr:meta])*
        pub enum $name:ident {
            $( $(#[$variant_attr:meta])* $variant:ident = $word:literal, )+
        }
    ) => {
        $(#[$attr])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $( $(#[$variant_attr])* $variant, )+
        }

        impl $name {
            /// All words, in order of declaration.
            pub const WORDS: &'static [&'static str] = &[$( $word ),+];

            /// The word as the API writes it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $word, )+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::api::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                match word {
                    $( $word => Ok(Self::$variant), )+
                    _ => Err($crate::api::UnknownWord { word: word.to_owned(), expected: Self::WORDS }),
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str($crate::api::words::WordVisitor::default())
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": Self::WORDS })
            }
        }
    };
}

pub(super) use words;
