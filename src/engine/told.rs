//! What was said about an object, a node or a rule: each thing once, and again when it is something else.

use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::map::hash;

/// What there is to say about an object, and when it is said while it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject {
    pub name: &'static str,
    /// For how long it must have stood before it is said, in any words.
    pub after: Duration,
    /// How long other words wait after the last ones.
    pub other: Duration,
    /// When the same words are said again.
    pub again: Duration,
}

impl Subject {
    /// What is said at once, and once in the same words.
    pub(super) const fn new(name: &'static str) -> Self {
        Self {
            name,
            after: Duration::ZERO,
            other: Duration::ZERO,
            again: Duration::MAX,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Told(Vec<Said>);

#[derive(Debug)]
struct Said {
    subject: &'static str,
    /// UID of the rule that it is about; empty for none.
    rule: Arc<str>,
    not_before: Instant,
    /// A hash of the last words, and when they were said.
    words: Option<(u64, Instant)>,
}

impl Told {
    /// When to say this: now (it counts as said) or later; `None` if it is said already. Without words it no longer stands.
    pub(super) fn due(
        &mut self,
        subject: Subject,
        rule: &Arc<str>,
        words: Option<impl Hash>,
        now: Instant,
    ) -> Option<Instant> {
        let mut said = self.0.iter();
        let known = said.position(|it| it.subject == subject.name && it.rule == *rule);
        let Some(words) = words else {
            known.map(|index| self.0.swap_remove(index));
            return None;
        };
        let index = known.unwrap_or_else(|| {
            self.0.push(Said {
                subject: subject.name,
                rule: rule.clone(),
                not_before: now + subject.after,
                words: None,
            });
            self.0.len() - 1
        });
        let said = &mut self.0[index];
        let words = hash(words);
        if let Some((last, at)) = said.words
            && last == words
            && now.duration_since(at) < subject.again
        {
            return None;
        }
        if said.not_before <= now {
            said.words = Some((words, now));
            said.not_before = now + subject.other;
            return Some(now);
        }
        Some(said.not_before)
    }

    /// Whether this was said and stands.
    pub(super) fn has(&self, subject: Subject) -> bool {
        let mut said = self.0.iter().filter(|it| it.words.is_some());
        said.any(|it| it.subject == subject.name)
    }

    /// Forgets what was said of other rules than these.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.0.retain(|it| it.rule.is_empty() || is_kept(&it.rule));
    }
}
