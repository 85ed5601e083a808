//! What a process runs: the engine, or in tests of the simulation something simpler.

use std::time::Instant;

use nodegate::engine::Engine;
use nodegate::engine::io::{Effect, Input, Now};

use super::settings::Settings;

/// What a process runs.
pub trait Machine {
    /// Takes in what has happened, and says what is to be done.
    fn take(&mut self, inputs: Vec<Input>, now: Now) -> Vec<Effect>;

    /// When it is to be asked again at the latest, by the monotonic clock.
    fn next_wake(&self) -> Option<Instant>;

    /// Whether every watch has shown all there is.
    fn has_synced(&self) -> bool;

    /// Whether nothing is under way.
    fn is_idle(&self) -> bool;

    /// Tells how things are, as gauges show it; of interest is only that it can.
    fn survey(&self, _now: Now) {}
}

/// Makes what a process runs as it starts.
pub type Start<'a> = &'a dyn Fn(&Settings, Now) -> Box<dyn Machine>;

/// Starts the engine.
#[must_use]
pub fn engine(settings: &Settings, now: Now) -> Box<dyn Machine> {
    Box::new(Engine::new(settings.into(), now))
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
