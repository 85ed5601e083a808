//! The user's position, and the effect of keys on it.

use std::sync::Arc;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::closed::{Closed, Fleet};
use crate::cli::page::Line;

/// The action that a key requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    Draw,
    /// Load the explanation of this node.
    Explain(Arc<str>),
    Quit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Sort {
    /// Closed longest first.
    #[default]
    Longest,
    /// Closed most recently first.
    Latest,
    Node,
    Rule,
    Why,
}

impl Sort {
    const fn next(self) -> Self {
        match self {
            Self::Longest => Self::Latest,
            Self::Latest => Self::Node,
            Self::Node => Self::Rule,
            Self::Rule => Self::Why,
            Self::Why => Self::Longest,
        }
    }

    /// The order as words for people.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Longest => "longest first",
            Self::Latest => "latest first",
            Self::Node => "by node",
            Self::Rule => "by rule",
            Self::Why => "by reason",
        }
    }
}

/// The explanation on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opened {
    pub node: Arc<str>,
    /// The explanation; `None` until it is loaded.
    pub lines: Option<Vec<Line>>,
    /// The first visible line.
    pub first: usize,
}

/// The user's position.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TopState {
    pub sort: Sort,
    /// Text that the name, state, rules or reason of a node must contain.
    pub filter: String,
    pub is_typing: bool,
    /// The selected node, and its index when it was selected.
    cursor: (Option<Arc<str>>, usize),
    /// The explanation shown instead of the nodes.
    pub opened: Option<Opened>,
}

impl TopState {
    /// The visible nodes, sorted.
    pub(crate) fn shown<'a>(&self, fleet: &'a Fleet) -> Vec<&'a Closed> {
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
            // Already in this order.
            Sort::Longest => {}
            Sort::Latest => shown.reverse(),
            Sort::Node => shown.sort_by(|a, b| a.node.cmp(&b.node)),
            Sort::Rule => shown.sort_by(|a, b| a.rules.cmp(&b.rules)),
            Sort::Why => shown.sort_by(|a, b| a.why.cmp(&b.why)),
        }
        shown
    }

    /// The index of the selected node among the visible ones. If it is gone, the node now at its index is selected.
    pub(crate) fn place(&self, shown: &[&Closed]) -> usize {
        let (node, place) = &self.cursor;
        let there = node
            .as_ref()
            .and_then(|node| shown.iter().position(|it| it.node == *node));
        there.unwrap_or_else(|| (*place).min(shown.len().saturating_sub(1)))
    }

    /// Handles a key; `page` is the number of lines on a page.
    pub(crate) fn press(&mut self, key: KeyEvent, fleet: &Fleet, page: usize) -> Act {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control => Act::Quit,
            KeyCode::Char(_) if is_control => Act::Draw,
            code if self.is_typing => self.typed(code),
            code if self.opened.is_some() => self.read_on(code, page),
            code => self.chosen(code, fleet, page),
        }
    }

    /// Shows the loaded explanation, unless the user has moved on.
    pub(crate) fn explained(&mut self, node: &str, lines: Vec<Line>) {
        if let Some(opened) = self.opened.as_mut().filter(|it| *it.node == *node) {
            opened.lines = Some(lines);
        }
    }

    fn typed(&mut self, key: KeyCode) -> Act {
        match key {
            KeyCode::Char(letter) => self.filter.push(letter),
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            _ => {}
        }
        Act::Draw
    }

    fn read_on(&mut self, key: KeyCode, page: usize) -> Act {
        let Some(opened) = &mut self.opened else {
            return Act::Draw;
        };
        let count = opened.lines.as_ref().map_or(0, Vec::len);
        let last = count.saturating_sub(page);
        match key {
            KeyCode::Char('q') | KeyCode::Esc | KeyCode::Enter | KeyCode::Backspace => {
                self.opened = None;
            }
            KeyCode::Char('r') => return Act::Explain(opened.node.clone()),
            key => opened.first = moved(opened.first, key, page).min(last),
        }
        Act::Draw
    }

    fn chosen(&mut self, key: KeyCode, fleet: &Fleet, page: usize) -> Act {
        match key {
            KeyCode::Char('q') => return Act::Quit,
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Enter => {
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

fn moved(place: usize, key: KeyCode, page: usize) -> usize {
    match key {
        KeyCode::Up | KeyCode::Char('k') => place.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => place + 1,
        KeyCode::PageUp => place.saturating_sub(page),
        KeyCode::PageDown | KeyCode::Char(' ') => place + page,
        KeyCode::Home | KeyCode::Char('g') => 0,
        KeyCode::End | KeyCode::Char('G') => usize::MAX,
        _ => place,
    }
}
