//! The start of one node as bars, and those of many as a table.

use std::iter::once;

use jiff::Timestamp;
use textwrap::core::display_width;

use super::many::{Figures, PARTS};
use super::{ComponentStart, Phase, Startup, Startups, seconds};
use crate::page::{Block, Line, Page, Render, notes};
use nodegate_core::text::counted;

/// The columns of bars: at least, without a terminal, and at most.
const LEAST: usize = 24;
const USUAL: usize = 42;
const MOST: usize = 100;
/// The columns between cells, and those of a duration.
const BESIDE: usize = 3 * 3 + 5;
const FORGOTTEN: &str = "no Event of its release is left, and what has restarted since is unknown";
/// How many parts of a start a table has that is not wide.
const NARROW: usize = 5;

impl Startup {
    fn took(&self, at: Timestamp) -> String {
        Page::lasting(seconds((self.created, at)))
    }

    /// Bars on an axis, with notes beside them, or below if the page is too narrow.
    fn bars(&self, page: &Page) -> Vec<Block> {
        let all = || self.components.iter();
        let widest = |of: fn(&ComponentStart) -> String| {
            let widths = all().map(|it| display_width(&of(it)));
            widths.max().unwrap_or_default()
        };
        let width = page.width.unwrap_or(usize::MAX).saturating_sub(BESIDE);
        let width = width.saturating_sub(widest(|it| it.words.clone()));
        let beside = width.checked_sub(widest(ComponentStart::note));
        let beside = beside.filter(|columns| *columns >= LEAST);
        let columns = beside.unwrap_or(width).clamp(LEAST, MOST);
        let columns = page.width.map_or(USUAL, |_| columns);
        let second = |at| usize::try_from(seconds((self.created, at))).unwrap_or_default();
        let ends = all().flat_map(|it| it.phases.values().map(|it| it[1]));
        let length = ends
            .chain(self.released)
            .map(second)
            .max()
            .unwrap_or_default();
        // The seconds of ten columns.
        let scale = (length * 10).div_ceil(columns - 1).max(1);
        let steps = [60, 5, 1].into_iter().find(|step| scale > *step);
        let scale = scale.next_multiple_of(steps.unwrap_or(1));
        let marks = (0..=length).step_by(scale);
        let marks = marks.map(|at| Page::lasting(i64::try_from(at).unwrap_or_default()));
        let marks: Vec<_> = marks.map(|at| format!("{at:<10}")).collect();
        let marks = ["", "", &marks.concat(), ""].map(|head| Line::new().faint(head));
        let bars = all().map(|it| {
            let mut bar = vec![" "; columns];
            for (phase, ends) in &it.phases {
                let [from, until] = ends.map(|at| second(at) * 10 / scale);
                let (character, _) = phase.words().1.split_once(' ').unwrap_or_default();
                bar[from..until.max(from + 1)].fill(character);
            }
            let took = it.done.map_or("-".into(), |at| self.took(at));
            let note = beside.map_or_else(String::new, |_| it.note());
            let took = format!("{took:>5}");
            let (words, bar) = (Line::new().strong(&*it.words), bar.concat());
            vec![words, took.into(), Line::new().bar(bar), note.into()]
        });
        let table = Block::Table(once(marks.to_vec()).chain(bars).collect());
        let below = all().filter(|it| beside.is_none() && !it.notes.is_empty());
        let below = below.map(|it| format!("{}: {}", it.words, it.note()).into());
        once(table).chain(below).collect()
    }
}

impl Render for Startup {
    const KIND: &'static str = "Startup";

    fn blocks(&self, page: &Page) -> Vec<Block> {
        use Phase::{Prepared, Scheduled, Started, Waiting};
        let head = Line::about(format!("node/{}", self.node));
        let age = page.age(self.created);
        let head = match self.released.map(|at| (self.took(at), page.age(at))) {
            Some((took, ago)) => {
                let took = format!(" {took} after it was created, {ago} ago");
                head.good("released").plain(took)
            }
            None if self.held => head.bad("held").plain(format!(", created {age} ago")),
            None => head.plain(format!("created {age} ago: {FORGOTTEN}")),
        };
        let mut all = self.components.iter();
        let last = all.find(|it| Some(&it.component) == self.last.as_ref());
        let last = last.map(|it| Line::from("last: ").strong(&*it.words).into());
        let legend = [Scheduled, Prepared, Started, Waiting].map(|it| it.words().1);
        let legend = Line::new().faint(legend.join("  ")).into();
        let blocks = once(head.into()).chain(self.bars(page)).chain(last);
        blocks.chain([legend]).chain(notes(&self.notes)).collect()
    }
}

impl Render for Startups {
    const KIND: &'static str = "Startups";

    fn blocks(&self, page: &Page) -> Vec<Block> {
        let released = self.nodes.iter().filter(|it| it.released.is_some()).count();
        let held = self.nodes.iter().filter(|it| it.held).count();
        let rest = self.nodes.len() - released - held;
        let nodes = counted(self.nodes.len(), "node");
        let head = format!(
            "{nodes} that joined last: {released} released, {held} held, {rest} without an Event of the release"
        );
        let shown = if page.wide { PARTS.len() } else { NARROW };
        let parts = PARTS.into_iter().take(shown);
        let heads = ["component", "last"].into_iter().chain(parts.clone());
        let head_of = |head: &str| Line::new().faint(head.to_uppercase());
        let heads = heads.map(head_of).collect();
        let rows = self.components.iter().map(|it| {
            let cell = |all: &[i64; 2]| all.map(Page::lasting).join("/");
            let cells = parts
                .clone()
                .map(|part| it.parts.get(part).map_or("-".into(), cell));
            let last = once(it.last.to_string()).chain(cells).map(Line::from);
            once(Line::new().strong(&*it.component))
                .chain(last)
                .collect()
        });
        let table = Block::Table(once(heads).chain(rows).collect());
        let table = (!self.components.is_empty()).then_some(table);
        let most = self.components.first().filter(|it| it.last > 0);
        let known = self.nodes.iter().filter(|it| it.last.is_some()).count();
        let most = most.map(|it| it.sentence(known).into());
        let blocks = once(head.into()).chain(table);
        blocks.chain(most).chain(notes(&self.notes)).collect()
    }
}

impl Figures {
    /// What would be gained without the component, or its wait for a probe.
    fn sentence(&self, nodes: usize) -> String {
        let median = |part| self.parts.get(part).map(|it| it[0]);
        let gain = median("gain").unwrap_or_default();
        let probe = median("probe").map_or_else(String::new, |wait| {
            let [wait, less] = [wait, wait.min(gain)].map(Page::lasting);
            format!("without its wait for the next probe (median at most {wait}) these would be up to {less} faster; ")
        });
        let (last, nodes, gain) = (self.last, counted(nodes, "node"), Page::lasting(gain));
        let was = format!("{} was last on {last} of {nodes}", self.component);
        format!("{was}; {probe}if it took no time, up to {gain} (median)")
    }
}
