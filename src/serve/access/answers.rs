//! Answers that are remembered for a while, within a bound.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Instant;

/// How many answers are kept: many times the clients that scrape one process.
const CAPACITY: usize = 512;

/// Answers by question, each until its time is over. When there are too many, the one that ends first goes.
#[derive(Debug)]
pub struct Answers<K, V>(HashMap<K, (V, Instant)>);

impl<K, V> Default for Answers<K, V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash + Clone, V> Answers<K, V> {
    /// The answer, if it is known and still counts.
    pub fn get(&self, question: &K, now: Instant) -> Option<&V> {
        let (answer, until) = self.0.get(question)?;
        (now < *until).then_some(answer)
    }

    /// Whether there was an answer, though it may count no more.
    pub fn remembers(&self, question: &K) -> bool {
        self.0.contains_key(question)
    }

    /// Gives an answer up.
    pub fn forget(&mut self, question: &K) {
        self.0.remove(question);
    }

    /// Remembers an answer until then.
    pub fn put(&mut self, question: K, answer: V, until: Instant, now: Instant) {
        if self.0.len() >= CAPACITY {
            self.0.retain(|_, (_, until)| now < *until);
        }
        if self.0.len() >= CAPACITY && !self.0.contains_key(&question) {
            let first = self.0.iter().min_by_key(|(_, (_, until))| *until);
            if let Some(first) = first.map(|(question, _)| question.clone()) {
                self.0.remove(&first);
            }
        }
        self.0.insert(question, (answer, until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn an_answer_counts_until_its_time_is_over() {
        let now = Instant::now();
        let mut answers = Answers::default();
        answers.put("q", 1, now + SECOND, now);
        assert_eq!(answers.get(&"q", now), Some(&1));
        assert_eq!(answers.get(&"q", now + SECOND), None);
        answers.put("q", 2, now + 3 * SECOND, now + SECOND);
        assert_eq!(answers.get(&"q", now + 2 * SECOND), Some(&2));
        assert_eq!(answers.get(&"other", now), None);
    }

    #[test]
    fn there_is_a_bound_and_what_ends_first_goes_first() {
        let now = Instant::now();
        let mut answers = Answers::default();
        let steps = u32::try_from(2 * CAPACITY).unwrap();
        for question in 0..steps {
            answers.put(question, (), now + (question + 1) * SECOND, now);
            assert!(answers.0.len() <= CAPACITY);
        }
        assert_eq!(answers.get(&0, now), None);
        assert_eq!(answers.get(&(steps - 1), now), Some(&()));
        let later = now + 3 * steps * SECOND;
        answers.put(0, (), later + SECOND, later);
        assert_eq!(answers.0.len(), 1);
    }
}
