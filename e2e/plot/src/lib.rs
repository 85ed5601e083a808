//! Charts as values, drawn as SVG, for benchmarks and the dashboard. Pure.

#![allow(
    missing_docs,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    reason = "only the benchmark and the demos draw by it"
)]

mod chart;
mod legend;
pub mod svg;
mod unit;

pub use chart::{Axis, Chart, Scale, Series, Style};
pub use legend::Legend;
pub use unit::Unit;

/// Converts a count for calculations. Counts here are far below 2^32, where this would saturate.
pub fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
