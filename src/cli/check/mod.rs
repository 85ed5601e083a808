//! `check`: whether what Nodegate needs is there, before it is installed and after.
//!
//! | file | what it does |
//! |---|---|
//! | `facts` | what was asked of the API server |
//! | `installed` | the definition of rules, the policy, the webhook |
//! | `running` | who leads, clocks, rules that cannot go |
//! | `text` | all of it for people |

pub mod facts;
mod installed;
mod running;
#[cfg(test)]
mod tests;
mod text;

use serde::Serialize;

use super::explain::Next;
use facts::Facts;

/// How the cluster is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkup {
    /// What was looked at.
    pub items: Vec<Item>,
}

/// Something that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// What it is.
    pub what: &'static str,
    /// How it is.
    pub health: ItemHealth,
    /// Why.
    pub message: String,
    /// What to do next, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Next>,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ItemHealth {
    /// As it should be.
    Ok,
    /// It may not do.
    Warning,
    /// It does not do.
    Failed,
    /// Nobody may say.
    Unknown,
}

impl Item {
    fn new(what: &'static str, health: ItemHealth, message: impl Into<String>) -> Self {
        Self {
            what,
            health,
            message: message.into(),
            next: None,
        }
    }

    fn next(self, say: &str, command: impl Into<String>) -> Self {
        Self {
            next: Some(Next::new(say, command)),
            ..self
        }
    }
}

/// Looks at what was asked.
#[must_use]
pub fn check(facts: &Facts) -> Checkup {
    let items = vec![
        running::api_server(facts),
        running::clock(facts),
        running::rights(facts),
        installed::definition(facts),
        installed::birth(facts),
        installed::webhook(facts),
        running::leader(facts),
        running::deletions(facts),
    ];
    Checkup { items }
}
