//! What keys do: where somebody has got to, and what comes of a key there.

use std::sync::Arc;

use super::closed::{Closed, Fleet};
use crate::cli::page::Line;

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// One that writes this.
    Char(char),
    /// Up.
    Up,
    /// Down.
    Down,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// To the beginning.
    Home,
    /// To the end.
    End,
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Backspace.
    Backspace,
    /// Whoever presses it wants to leave: Ctrl-C.
    Interrupt,
}

/// What has to be done for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Nothing but drawing.
    Draw,
    /// The explanation of this node is to be read.
    Explain(Arc<str>),
    /// It is over.
    Quit,
}

/// How nodes are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    /// Those first that have been closed longest.
    #[default]
    Longest,
    /// Those first that were closed last.
    Latest,
    /// By name.
    Node,
    /// By rule.
    Rule,
    /// By reason.
    Why,
}

impl Sort {
    /// The next one.
    const fn next(self) -> Self {
        match self {
            Self::Longest => Self::Latest,
            Self::Latest => Self::Node,
            Self::Node => Self::Rule,
            Self::Rule => Self::Why,
            Self::Why => Self::Longest,
        }
    }

    /// The words for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Longest => "longest first",
            Self::Latest => "latest first",
            Self::Node => "by node",
            Self::Rule => "by rule",
            Self::Why => "by reason",
        }
    }
}

/// The explanation of a node that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The node.
    pub node: Arc<str>,
    /// What there is to say, once it has been read.
    pub lines: Option<Vec<Line>>,
    /// The first line that is shown.
    pub first: usize,
}

/// Where somebody has got to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    /// How nodes are sorted.
    pub sort: Sort,
    /// What has to be in the name, the rules or the reason of what is shown.
    pub filter: String,
    /// Whether the filter is being typed.
    pub is_typing: bool,
    /// The node that is marked, and its place when it was.
    cursor: (Option<Arc<str>>, usize),
    /// The explanation that is shown instead of the nodes.
    pub opened: Option<Opened>,
}

impl State {
    /// The nodes that are shown, in their order.
    #[must_use]
    pub fn shown<'a>(&self, fleet: &'a Fleet) -> Vec<&'a Closed> {
        let wanted = self.filter.to_lowercase();
        let is_wanted = |text: &str| text.to_lowercase().contains(&wanted);
        let mut shown: Vec<&Closed> = fleet
            .closed
            .iter()
            .filter(|it| {
                wanted.is_empty()
                    || is_wanted(&it.node)
                    || is_wanted(&it.why)
                    || is_wanted(it.state.word())
                    || it.rules.iter().any(|rule| is_wanted(rule))
            })
            .collect();
        match self.sort {
            // They come in this order.
            Sort::Longest => {}
            Sort::Latest => shown.reverse(),
            Sort::Node => shown.sort_by(|a, b| a.node.cmp(&b.node)),
            Sort::Rule => shown.sort_by(|a, b| a.rules.cmp(&b.rules)),
            Sort::Why => shown.sort_by(|a, b| a.why.cmp(&b.why)),
        }
        shown
    }

    /// The place of the node that is marked among those that are shown. Where it is gone, the one that has come into its place
    /// is.
    #[must_use]
    pub fn place(&self, shown: &[&Closed]) -> usize {
        let (node, place) = &self.cursor;
        let there = node
            .as_ref()
            .and_then(|node| shown.iter().position(|it| it.node == *node));
        there.unwrap_or_else(|| (*place).min(shown.len().saturating_sub(1)))
    }

    /// Takes in a key, where a page has this many lines.
    pub fn press(&mut self, key: Key, fleet: &Fleet, page: usize) -> Act {
        match key {
            Key::Interrupt => Act::Quit,
            _ if self.is_typing => self.typed(key),
            _ if self.opened.is_some() => self.read_on(key, page),
            key => self.chosen(key, fleet, page),
        }
    }

    /// Takes in the explanation of a node, unless somebody has gone on since it was asked for.
    pub fn explained(&mut self, node: &str, lines: Vec<Line>) {
        if let Some(opened) = self.opened.as_mut().filter(|it| *it.node == *node) {
            opened.lines = Some(lines);
        }
    }

    fn typed(&mut self, key: Key) -> Act {
        match key {
            Key::Char(letter) => self.filter.push(letter),
            Key::Backspace => drop(self.filter.pop()),
            Key::Enter => self.is_typing = false,
            Key::Escape => {
                self.is_typing = false;
                self.filter.clear();
            }
            _ => {}
        }
        Act::Draw
    }

    fn read_on(&mut self, key: Key, page: usize) -> Act {
        let Some(opened) = &mut self.opened else {
            return Act::Draw;
        };
        let count = opened.lines.as_ref().map_or(0, Vec::len);
        let last = count.saturating_sub(page);
        match key {
            Key::Char('q') | Key::Escape | Key::Enter | Key::Backspace => self.opened = None,
            Key::Char('r') => return Act::Explain(opened.node.clone()),
            key => opened.first = moved(opened.first, key, page).min(last),
        }
        Act::Draw
    }

    fn chosen(&mut self, key: Key, fleet: &Fleet, page: usize) -> Act {
        match key {
            Key::Char('q') => return Act::Quit,
            Key::Char('s') => self.sort = self.sort.next(),
            Key::Char('/') => self.is_typing = true,
            Key::Escape => self.filter.clear(),
            Key::Enter => {
                let shown = self.shown(fleet);
                if let Some(it) = shown.get(self.place(&shown)) {
                    self.opened = Some(Opened {
                        node: it.node.clone(),
                        lines: None,
                        first: 0,
                    });
                    return Act::Explain(it.node.clone());
                }
            }
            key => {
                let shown = self.shown(fleet);
                let last = shown.len().saturating_sub(1);
                let place = moved(self.place(&shown), key, page).min(last);
                self.cursor = (shown.get(place).map(|it| it.node.clone()), place);
            }
        }
        Act::Draw
    }
}

/// Where a key leads from here.
fn moved(place: usize, key: Key, page: usize) -> usize {
    match key {
        Key::Up | Key::Char('k') => place.saturating_sub(1),
        Key::Down | Key::Char('j') => place + 1,
        Key::PageUp => place.saturating_sub(page),
        Key::PageDown | Key::Char(' ') => place + page,
        Key::Home | Key::Char('g') => 0,
        Key::End | Key::Char('G') => usize::MAX,
        _ => place,
    }
}
