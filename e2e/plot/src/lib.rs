//! Charts as values, and drawn as SVG: those of the benchmarks and those of the dashboard. Pure.
//!
//! ```text
//! chart   scales, ticks and curves
//! unit    how values are written
//! legend  what the curves are called, in as many lines as that takes
//! svg     draws them, for a light and for a dark ground
//! ```

mod chart;
mod legend;
pub mod svg;
mod unit;

pub use chart::{Axis, Chart, Scale, Series, Style};
pub use legend::Legend;
pub use unit::Unit;

/// A count as a number to calculate with. Counts here are far below the 2^32 where this would saturate.
#[must_use]
pub fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
