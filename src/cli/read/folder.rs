//! Reads lists from a dump: a folder with a file for each kind, and one that describes the dump.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::list::{ListError, ListPage};
use crate::cli::failure::CliError;
use crate::cli::snapshot::{Filter, ResourceKind};

/// The file that describes the dump.
pub(crate) const ABOUT: &str = "dump.json";
/// The version of the dump format. It increases when older binaries could no longer read it.
pub(crate) const FORM: u32 = 1;

/// The description of a dump.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AboutDump {
    pub form: u32,
    /// The version of the binary that wrote it.
    pub nodegate: String,
    pub at: Timestamp,
    /// The kinds that could not be read, and why.
    #[serde(default)]
    pub missing: Vec<Missing>,
}

/// A kind that could not be read.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Missing {
    /// The resource's name in the API.
    pub kind: String,
    pub forbidden: bool,
    pub why: String,
}

pub(crate) struct Folder {
    path: PathBuf,
    about: AboutDump,
}

impl Folder {
    pub(crate) fn open(path: &Path) -> Result<Self, CliError> {
        let file = path.join(ABOUT);
        let unreadable = |why: String| CliError::dump(&file, why);
        let text = std::fs::read_to_string(&file).map_err(|error| {
            unreadable(format!(
                "{error} (`kubectl nodegate dump DIR` writes a dump)"
            ))
        })?;
        let about: AboutDump = serde_json::from_str(&text)
            .map_err(|error| unreadable(format!("this is no dump: {error}")))?;
        if about.form != FORM {
            return Err(unreadable(format!(
                "the dump has form {}, and this is nodegate {}, which reads form {FORM}; use nodegate {}, which has written it",
                about.form,
                env!("CARGO_PKG_VERSION"),
                about.nodegate
            )));
        }
        Ok(Self {
            path: path.into(),
            about,
        })
    }

    pub(crate) fn at(&self) -> Timestamp {
        self.about.at
    }

    /// The objects of a kind that pass the filter.
    pub(crate) fn list(
        &self,
        kind: ResourceKind,
        filter: &Filter,
    ) -> Result<Vec<String>, ListError> {
        let mut missing = self.about.missing.iter();
        if let Some(missing) = missing.find(|it| it.kind == kind.name()) {
            let why = missing.why.clone();
            return Err(if missing.forbidden {
                ListError::Forbidden(why)
            } else {
                ListError::Failed(why)
            });
        }
        let file = self.path.join(kind.file());
        let failed =
            |error: &dyn fmt::Display| ListError::Failed(format!("{}: {error}", file.display()));
        let text = std::fs::read_to_string(&file).map_err(|error| match error.kind() {
            ErrorKind::NotFound => ListError::NotInstalled,
            _ => failed(&error),
        })?;
        let page: ListPage = serde_json::from_str(&text).map_err(|error| failed(&error))?;
        let objects = page.objects().filter(|it| filter.lets_through(it));
        Ok(objects.map(str::to_owned).collect())
    }
}
