//! A list: its objects, its pages and its errors.

use std::fmt;

use futures::stream::LocalBoxStream;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cli::failure::CliError;
use crate::cli::snapshot::ResourceKind;

/// The objects of a list, as JSON. It ends with the list, or with an error.
pub(super) type Objects<'a> = LocalBoxStream<'a, Result<String, ListError>>;

/// Why a list could not be read.
#[derive(Debug, Clone)]
pub(crate) enum ListError {
    Forbidden(String),
    NotInstalled,
    Failed(String),
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden(why) | Self::Failed(why) => f.write_str(why),
            Self::NotInstalled => f.write_str("the cluster has no such resource"),
        }
    }
}

impl ListError {
    /// The error of a command that requires this list.
    pub(crate) fn of(self, kind: ResourceKind) -> CliError {
        match self {
            Self::NotInstalled if kind == ResourceKind::Rules => CliError::NoRules,
            Self::Forbidden(why) => CliError::Forbidden {
                kind: kind.name(),
                why,
            },
            refusal => CliError::List {
                kind: kind.name(),
                why: refusal.to_string(),
            },
        }
    }
}

/// A page of a list, with its objects not yet decoded.
#[derive(Deserialize)]
pub(super) struct ListPage<'a> {
    #[serde(default)]
    pub metadata: PageMeta,
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
pub(super) struct PageMeta {
    /// The token of the next page.
    #[serde(rename = "continue")]
    pub token: Option<String>,
}

impl ListPage<'_> {
    pub(super) fn objects(&self) -> impl Iterator<Item = &str> {
        self.items.iter().map(|item| item.get())
    }
}
