//! `check`: whether what Nodegate needs is there, before it is installed and after.
//!
//! | file | what it does |
//! |---|---|
//! | `facts` | what was asked of the API server |
//! | `item` | how something is, and what to do next |
//! | `installed` | the definition of rules, the policy, the webhook |
//! | `running` | who leads, clocks, rules that cannot go |
//! | `text` | all of it for people |

pub mod facts;
mod installed;
mod item;
mod running;
#[cfg(test)]
mod tests;
mod text;

use serde::Serialize;

use facts::Facts;
pub use item::{Item, ItemHealth};

/// How the cluster is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkup {
    /// What was looked at.
    pub items: Vec<Item>,
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
