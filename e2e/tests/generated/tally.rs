//! What was tried.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Result, ensure};

pub(crate) const ROUNDS: &str = "rounds";
const AT_ONCE: &str = "rules accepted at once";
const MENDED: &str = "rules accepted after they were mended";
const REFUSED: &str = "rules refused";
pub(crate) const EDITS: &str = "edits";
pub(crate) const EDITS_REFUSED: &str = "edits refused";
pub(crate) const UNDONE: &str = "edits undone";
pub(crate) const COMPARED: &str = "rules compared in full";
pub(crate) const COMPARED_ROUGHLY: &str = "times all taints compared";
pub(crate) const TURNED_DOWN: &str = "times a rule turned down by the controller";

/// How often each thing was tried, or came of it.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    counts: BTreeMap<&'static str, usize>,
}

impl Tally {
    pub(crate) fn add(&mut self, what: &'static str, count: usize) {
        *self.counts.entry(what).or_default() += count;
    }

    /// A rule was accepted after this many changes.
    pub(crate) fn created(&mut self, is_spoilt: bool, times_mended: usize) {
        let what = match (is_spoilt, times_mended) {
            (true, _) => "spoilt rules accepted",
            (false, 0) => AT_ONCE,
            (false, _) => MENDED,
        };
        self.add(what, 1);
    }

    pub(crate) fn refused(&mut self, is_spoilt: bool) {
        let what = if is_spoilt {
            "spoilt rules refused"
        } else {
            REFUSED
        };
        self.add(what, 1);
    }

    /// The rounds have tried something.
    pub(crate) fn is_telling(&self) -> Result<()> {
        let count = |what| self.counts.get(what).copied().unwrap_or_default();
        let accepted = count(AT_ONCE) + count(MENDED);
        ensure!(
            accepted > count(REFUSED) && count(COMPARED) > 0,
            "the API server accepts too little of what is made: {self}"
        );
        Ok(())
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.counts.iter();
        let counts = counts.map(|(what, count)| format!("{count} {what}"));
        f.write_str(&counts.collect::<Vec<_>>().join(", "))
    }
}
