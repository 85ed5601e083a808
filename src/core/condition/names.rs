//! A list of objects for messages: names up to a limit, then a number.

use std::fmt::{self, Formatter};

/// How many are named. Longer messages would not be read, and Events are limited to 1,024 bytes.
const NAMED: usize = 10;

/// One or more objects, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names<T> {
    first: T,
    others: Vec<T>,
    more: usize,
}

impl<T> Names<T> {
    pub const fn one(name: T) -> Self {
        Self {
            first: name,
            others: Vec::new(),
            more: 0,
        }
    }

    /// These names; `None` if there are none.
    pub fn of(names: impl IntoIterator<Item = T>) -> Option<Self> {
        let mut names = names.into_iter();
        Some(Self {
            first: names.next()?,
            others: names.by_ref().take(NAMED - 1).collect(),
            more: names.count(),
        })
    }

    /// The names that are kept.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl<T: fmt::Display> Names<T> {
    /// Writes a sentence: a noun, the names, a verb in its singular or plural form, and the rest.
    pub fn write(&self, f: &mut Formatter<'_>, of: &str, is: [&str; 2], rest: &str) -> fmt::Result {
        let (plural, is) = match *self.others {
            [] => ("", is[0]),
            _ => ("s", is[1]),
        };
        write!(f, "{of}{plural} {self}{is}{rest}")
    }
}

impl<T: fmt::Display> fmt::Display for Names<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        for other in &self.others {
            write!(f, ", {other}")?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, " (+{more} more)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_named_up_to_a_bound() {
        for (count, expected) in [
            (1, "1"),
            (2, "1, 2"),
            (10, "1, 2, 3, 4, 5, 6, 7, 8, 9, 10"),
            (12, "1, 2, 3, 4, 5, 6, 7, 8, 9, 10 (+2 more)"),
        ] {
            assert_eq!(Names::of(1..=count).unwrap().to_string(), expected);
        }
        assert_eq!(Names::of(1..1), None);
        assert_eq!(Names::of([7]), Some(Names::one(7)));
    }
}
