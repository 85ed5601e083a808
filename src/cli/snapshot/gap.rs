//! Lists that could not be read.

use std::fmt;

use serde::Serialize;

use super::kind::ResourceKind;

/// A list that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gap {
    pub kind: ResourceKind,
    /// Whether it is forbidden; otherwise it failed.
    pub forbidden: bool,
    pub why: String,
}

impl Gap {
    /// Which list was refused.
    pub(crate) fn refusal(&self) -> String {
        let name = self.kind.name();
        if self.forbidden {
            format!("not allowed to list {name}")
        } else {
            format!("cannot list {name} ({})", self.why)
        }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.refusal(), self.kind.tells())
    }
}

/// Which lists were refused, and which command tells the rights for them; `None` without gaps.
pub(crate) fn unread_lists(gaps: &[Gap]) -> Option<String> {
    let lists: Vec<String> = gaps.iter().map(Gap::refusal).collect();
    (!lists.is_empty()).then(|| {
        format!(
            "{} (`kubectl nodegate check` says which rights are missing)",
            lists.join(", ")
        )
    })
}
