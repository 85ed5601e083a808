//! The engine: it takes in watch events and answers, and returns requests. It has no client, task, clock or metrics registry of
//! its own, and every time is a parameter, so the simulation drives the code that runs in production; the controller
//! only carries data in and out. Start at `machine`, whose [`io::Input`]s and [`io::Effect`]s are its whole interface.

#![allow(missing_docs, reason = "a doc says what the name does not")]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests may begin at any time")
)]

mod announce;
mod attempt;
mod cache;
mod clock;
mod conditions;
mod count;
pub mod election;
pub mod error;
mod forecast;
mod freshness;
pub mod io;
mod machine;
mod map;
mod node_writes;
mod nodes;
pub mod notice;
mod outbox;
mod pacer;
mod patch;
mod repairs;
mod rules;
mod schedule;
mod settings;
mod startups;
mod status;
mod survey;
#[cfg(test)]
#[path = "../core/testing/mod.rs"]
mod testing;
#[cfg(test)]
mod tests;
mod told;
mod unreadable;

pub use cache::{Broken, CachedRule, Readers, Stored};
pub use count::{Count, RuleCount, Stage};
pub use freshness::MAX_AGE;

pub use error::RequestError;
pub use forecast::{Forecast, foresee};
pub use machine::Engine;
pub use pacer::{LONGEST_WAIT, Rate};
pub use settings::Settings;
pub use startups::{component as startup_component, named as startup_name};
pub use status::{
    HELD_BACK, MET_BY_NO_NODE, REMARKS, SELECTS_NO_NODE, holding, says, says_all_suspended,
};
pub use survey::{GAUGES, Reading};

#[cfg(test)]
mod circles {
    #[test]
    fn rooms_use_each_other_in_no_circle() {
        let circles = crate::testing::rooms::circles(env!("CARGO_MANIFEST_DIR").as_ref());
        assert!(circles.is_empty(), "{circles:#?}");
    }
}
