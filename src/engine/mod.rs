//! The engine: a machine that takes what was seen and says what to do. Values in, values out: nothing here has a client, a
//! task, a clock or a registry of metrics of its own; every time is a parameter. What the laboratory drives is what runs in
//! production, and the driver in [`crate::controller`] only carries.
//!
//! | file | what it is |
//! |---|---|
//! | `machine` | [`Engine`]: what is taken in, in which order what follows, when to come back |
//! | [`io`] | what goes in and comes out |
//! | [`kind`], [`evidence`], [`broken`] | what is watched, what a last look has read, what cannot be understood |
//! | `cache` | what has been seen, and since when that view is certain |
//! | `nodes` | what is under way for each node |
//! | `node_writes`, `conditions` | the writes of its taints and annotations, and of its published conditions |
//! | `looks` | last looks: what a decision depends on, read past all watches |
//! | `announce`, `repairs`, `claims` | what is told of it, what follows when it does not get ready, its `NodeClaim` |
//! | `rules` | the rules themselves: finalizers, deletion, status |
//! | `status` | a rule's status |
//! | `closures` | which open nodes a rule may close now |
//! | `patch` | the patches that carry plans out |
//! | `outbox` | what leaves the engine, as it turns up |
//! | `turns` | whose turn it is to be written |
//! | `timers` | what happens when |
//! | [`notice`], `notices` | every event in words, and those that wait to be posted |
//! | `view` | the same cache and the same plans over lists that were read once, for the command line |
//! | `survey` | how the cluster and the rules do, as gauges show it |
//! | `clock`, `certainty`, [`election`] | small machines: two clocks made into one, since when what was seen is certain, who leads |

mod announce;
pub mod broken;
mod cache;
mod certainty;
mod claims;
mod clock;
mod closures;
mod conditions;
pub mod election;
mod error;
pub mod evidence;
pub mod io;
pub mod kind;
mod looks;
mod machine;
mod map;
mod node_writes;
mod nodes;
pub mod notice;
mod notices;
mod outbox;
mod patch;
mod repairs;
mod rules;
mod startups;
mod status;
mod survey;
#[cfg(test)]
mod tests;
mod timers;
mod turns;
mod unreadable;
mod view;

pub use cache::CachedRule;
pub use certainty::{Certainty, SILENCE};
pub use clock::{Clock, Reading};
pub use error::RequestError;
pub use machine::{Engine, Settings};
pub use status::{PASSED_OVER, SUSPENDED, passed_over_message};
pub use survey::{RuleSurvey, Survey};
pub use turns::{
    Backoff, Contention, Outage, Pauses, Rate, Refusals, Repetitions, Retries, Turn, Undone,
    WriteLimits,
};
pub use view::View;
