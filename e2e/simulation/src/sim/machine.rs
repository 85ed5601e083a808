//! The program that a process runs: the engine, or something simpler in tests of the simulation.

use std::time::Instant;

use nodegate::engine::Engine;
use nodegate::engine::io::{Effect, Input, Now};

use super::settings::Settings;

pub trait Machine {
    /// Takes in events and returns the effects to carry out.
    fn take(&mut self, inputs: Vec<Input>, now: Now) -> Vec<Effect>;

    /// When to call [`Self::take`] again at the latest, by the monotonic clock.
    fn next_wake(&self) -> Option<Instant>;

    fn has_synced(&self) -> bool;

    /// Whether no request is under way.
    fn is_idle(&self) -> bool;

    /// Fills the gauges; the simulation only checks that this works.
    fn survey(&self, _now: Now) {}
}

/// Creates a process's machine at its start.
pub type Start<'a> = &'a dyn Fn(&Settings, Now) -> Box<dyn Machine>;

pub fn engine(settings: &Settings, now: Now) -> Box<dyn Machine> {
    Box::new(Engine::new(settings, now))
}

impl Machine for Engine {
    fn take(&mut self, inputs: Vec<Input>, now: Now) -> Vec<Effect> {
        Engine::take(self, inputs, now)
    }

    fn next_wake(&self) -> Option<Instant> {
        Engine::next_wake(self)
    }

    fn has_synced(&self) -> bool {
        Engine::has_synced(self)
    }

    fn is_idle(&self) -> bool {
        Engine::is_idle(self)
    }

    fn survey(&self, now: Now) {
        let _ = Engine::survey(self, now);
    }
}
