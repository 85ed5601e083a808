//! A list that mostly has one item, and then needs no allocation.

use std::ops::Index;

/// Some items, in order. The first is kept in place, the others on the heap.
///
/// A small vector of a library would do, were it covariant: what is kept here borrows from the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Few<T> {
    first: Option<T>,
    others: Vec<T>,
}

impl<T> Few<T> {
    /// Adds an item at the end.
    pub fn push(&mut self, item: T) {
        match self.first {
            None => self.first = Some(item),
            Some(_) => self.others.push(item),
        }
    }

    /// Makes room for so many items more at a time.
    pub fn reserve(&mut self, items: usize) {
        let on_the_heap = items.saturating_sub(usize::from(self.first.is_none()));
        self.others.reserve(on_the_heap);
    }

    /// The items, in order.
    pub fn iter(&self) -> <&Self as IntoIterator>::IntoIter {
        self.into_iter()
    }

    /// The items, in order, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.first.iter_mut().chain(&mut self.others)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self {
            first: None,
            others: Vec::new(),
        }
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut items = items.into_iter();
        Self {
            first: items.next(),
            others: items.collect(),
        }
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.others)
    }
}

impl<'a, T> IntoIterator for &'a Few<T> {
    type Item = &'a T;
    type IntoIter = std::iter::Chain<std::option::Iter<'a, T>, std::slice::Iter<'a, T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.iter().chain(&self.others)
    }
}

impl<T> Index<usize> for Few<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        match (index, &self.first) {
            (0, Some(first)) => first,
            _ => &self.others[index.wrapping_sub(1)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_stay_in_order_however_many_there_are() {
        for count in 0..4 {
            let expected: Vec<usize> = (0..count).collect();
            let mut pushed = Few::default();
            for item in 0..count {
                pushed.push(item);
            }
            let collected: Few<usize> = (0..count).collect();
            assert_eq!(pushed, collected);
            assert_eq!((pushed.len(), pushed.is_empty()), (count, count == 0));
            assert_eq!(pushed.iter().copied().collect::<Vec<_>>(), expected);
            assert!((0..count).all(|index| pushed[index] == index));
            assert_eq!(pushed.into_iter().collect::<Vec<_>>(), expected);
        }
    }
}
