//! Lists from a dump: a folder with a file for each kind, and one that says when it was written, and by which version.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::page::{Page, Refusal, Version, is_meant};
use crate::cli::failure::Failure;
use crate::cli::snapshot::{Filter, Kind};

/// The file that says what the others are.
pub const ABOUT: &str = "dump.json";
/// The version of the form that dumps have. It grows when an older binary could not read them.
pub const FORM: u32 = 1;

/// What a dump says about itself.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AboutDump {
    /// The version of its form.
    pub form: u32,
    /// The version of the binary that has written it.
    pub nodegate: String,
    /// When.
    pub at: Timestamp,
    /// The kinds that were not read, with why.
    #[serde(default)]
    pub missing: Vec<Missing>,
}

/// A kind that was not read.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Missing {
    /// The resource, as the API calls it.
    pub kind: String,
    /// Whether it was forbidden.
    pub forbidden: bool,
    /// Why.
    pub why: String,
}

/// A dump.
pub struct Folder {
    path: PathBuf,
    about: AboutDump,
}

impl Folder {
    /// The dump in this folder.
    ///
    /// # Errors
    /// When it is none, or one that this binary does not understand.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let file = path.join(ABOUT);
        let unreadable = |why: String| Failure::Dump {
            path: file.clone(),
            why,
        };
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

    /// When it was written.
    pub fn at(&self) -> Timestamp {
        self.about.at
    }

    /// Shows each object of a kind that the filter lets through.
    pub fn each(
        &self,
        kind: Kind,
        filter: &Filter,
        mut take: impl FnMut(&str),
    ) -> Result<Version, Refusal> {
        let mut missing = self.about.missing.iter();
        if let Some(missing) = missing.find(|it| it.kind == kind.name()) {
            let why = missing.why.clone();
            return Err(if missing.forbidden {
                Refusal::Forbidden(why)
            } else {
                Refusal::Failed(why)
            });
        }
        let file = self.path.join(kind.file());
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Refusal::NotInstalled);
            }
            Err(error) => return Err(Refusal::Failed(format!("{}: {error}", file.display()))),
        };
        let page: Page = serde_json::from_str(&text)
            .map_err(|error| Refusal::Failed(format!("{}: {error}", file.display())))?;
        for item in page.items.iter().map(|item| item.get()) {
            if is_meant(item, |facts| filter.lets_through(facts)) {
                take(item);
            }
        }
        Ok(None)
    }
}
