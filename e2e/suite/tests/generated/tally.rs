//! What was tried.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::{Result, ensure};
use serde_json::{Map, Value};

/// Counts of what was tried, and how it went.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    rounds: usize,
    at_once: usize,
    mended: usize,
    refused: usize,
    spoilt: usize,
    spoilt_refused: usize,
    edits: usize,
    edits_refused: usize,
    undone: usize,
    compared: usize,
    compared_roughly: usize,
    turned_down: usize,
    /// The fields of accepted specs.
    fields: BTreeSet<String>,
}

impl Tally {
    pub(crate) fn round(&mut self) {
        self.rounds += 1;
    }

    pub(crate) fn created(&mut self, spec: &Value, is_spoilt: bool, times_mended: usize) {
        match (is_spoilt, times_mended) {
            (true, _) => self.spoilt += 1,
            (false, 0) => self.at_once += 1,
            (false, _) => self.mended += 1,
        }
        let fields = spec.as_object();
        self.fields
            .extend(fields.into_iter().flat_map(Map::keys).cloned());
    }

    pub(crate) fn refused(&mut self, is_spoilt: bool) {
        if is_spoilt {
            self.spoilt += 1;
            self.spoilt_refused += 1;
        } else {
            self.refused += 1;
        }
    }

    pub(crate) fn edited(&mut self, is_accepted: bool) {
        self.edits += 1;
        self.edits_refused += usize::from(!is_accepted);
    }

    pub(crate) fn turned_down(&mut self, rules: usize) {
        self.turned_down += rules;
    }

    pub(crate) fn undone(&mut self, edits: usize, compared: usize, roughly: bool) {
        self.undone += edits;
        self.compared += compared;
        self.compared_roughly += usize::from(roughly);
    }

    /// The rounds have tried something.
    pub(crate) fn is_telling(&self) -> Result<()> {
        let accepted = self.at_once + self.mended;
        ensure!(
            accepted > self.refused && self.compared > 0,
            "the API server accepts too little of what is made: {self}"
        );
        Ok(())
    }

    /// These fields, without those that an accepted rule had.
    pub(crate) fn missing<'a>(&self, fields: &[&'a str]) -> Vec<&'a str> {
        let missing = fields.iter().filter(|field| !self.fields.contains(**field));
        missing.copied().collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rounds,
            at_once,
            mended,
            refused,
            spoilt,
            spoilt_refused,
            ..
        } = self;
        write!(
            f,
            "{rounds} rounds; {at_once} rules accepted at once, {mended} after they were mended, \
             {refused} refused; {spoilt} spoilt, {spoilt_refused} of them refused; {} edits, {} refused; {} undone, {} rules \
             compared in full, {} times all taints; {} times a rule turned down by the controller",
            self.edits,
            self.edits_refused,
            self.undone,
            self.compared,
            self.compared_roughly,
            self.turned_down
        )
    }
}
