//! The engine: a machine that takes what was seen and says what to do. Values in, values out: nothing here has a client, a
//! task, a clock or a registry of metrics of its own; every time is a parameter. What the laboratory drives is what runs in
//! production, and the driver in [`crate::controller`] only carries.
//!
//! `machine` is the way in and out: it takes [`io::Input`]s, keeps what they show in the `cache`, reconciles one node after another
//! (`node_writes`, `conditions`, `live_reads`, `claims`, `rules`), and answers [`io::Effect`]s. When which request may be made, and
//! made again, the `pacer` says. What people are told is worded in [`notice`].

mod announce;
pub mod broken;
mod cache;
mod certainty;
mod claims;
mod clock;
mod closures;
mod conditions;
mod effects;
pub mod election;
pub mod error;
pub mod evidence;
pub mod io;
pub mod kind;
mod live_reads;
mod machine;
mod map;
mod node_writes;
mod nodes;
pub mod notice;
mod notices;
mod pacer;
mod patch;
mod repairs;
mod rules;
mod startups;
mod status;
mod survey;
#[cfg(test)]
mod tests;
mod timers;
mod unreadable;
mod view;
pub mod watch_cursor;

pub use cache::CachedRule;
pub use certainty::{Certainty, MAX_AGE};
pub use clock::{Clock, Reading};
pub use error::RequestError;
pub use machine::{Engine, Settings};
pub use pacer::{Backoff, Pauses, Rate};
pub use status::{PASSED_OVER, SUSPENDED, passed_over_message};
pub use survey::{RuleSurvey, Survey};
pub use view::View;
