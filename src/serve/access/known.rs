//! The API server's answers about tokens, bounded. Pure.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::time::{Duration, Instant};

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

/// How long a token counts as a reader's, or as invalid, before the API server is asked again.
const TOKEN_LIFETIME: Duration = Duration::from_secs(60);
/// How long a permission to read lasts before the API server is asked again.
const ALLOWED_LIFETIME: Duration = Duration::from_secs(300);
/// How long a denial lasts before the API server is asked again.
const DENIED_LIFETIME: Duration = Duration::from_secs(30);
/// The most answers kept of each kind: many times the clients that scrape one process.
const CAPACITY: usize = 512;

/// A token's SHA-256; the tokens themselves are not stored.
pub(super) type TokenHash = [u8; 32];

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AccessRefusal {
    /// The request has no token.
    NoToken,
    /// The API server does not know the token.
    InvalidToken,
    /// The user may not read this.
    Denied { user: String },
    /// Too many requests with unknown tokens are waiting.
    TooMany,
    /// The API server could not be asked.
    Unanswered,
}

impl fmt::Display for AccessRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoToken => f.write_str("a bearer token is needed: send a service account's"),
            Self::InvalidToken => f.write_str("the API server does not accept this token"),
            Self::Denied { user } => write!(
                f,
                "{user} may not get this path: bind ClusterRole nrr-metrics-reader to it"
            ),
            Self::TooMany => f.write_str("too many unknown tokens at a time; try again"),
            Self::Unanswered => f.write_str(
                "the API server could not be asked who you are and what you may do; the controller's log says why",
            ),
        }
    }
}

impl IntoResponse for AccessRefusal {
    fn into_response(self) -> Response {
        let text = format!("{self}\n");
        match self {
            Self::NoToken | Self::InvalidToken => {
                let scheme = [(header::WWW_AUTHENTICATE, "Bearer")];
                (StatusCode::UNAUTHORIZED, scheme, text).into_response()
            }
            Self::Denied { .. } => (StatusCode::FORBIDDEN, text).into_response(),
            Self::TooMany | Self::Unanswered => {
                (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
            }
        }
    }
}

/// The API server's answers about tokens. Each kind has its own bound, so a flood of invalid tokens cannot evict a reader's.
#[derive(Default)]
pub(super) struct KnownTokens {
    readers: Answers<TokenHash, ()>,
    /// Tokens whose users may read; kept longer than `readers`.
    allowed: Answers<TokenHash, ()>,
    /// Tokens whose users may not read, with the user's name.
    denied: Answers<TokenHash, String>,
    /// Tokens that the API server does not accept.
    invalid: Answers<TokenHash, ()>,
    /// Why the API server could not be asked; the log says it once.
    pub(super) problem: Option<String>,
}

impl KnownTokens {
    /// The answer that is already known, if any.
    pub(super) fn answer(
        &self,
        hash: TokenHash,
        now: Instant,
    ) -> Option<Result<(), AccessRefusal>> {
        if self.readers.get(&hash, now).is_some() {
            return Some(Ok(()));
        }
        if let Some(user) = self.denied.get(&hash, now) {
            return Some(Err(AccessRefusal::Denied { user: user.clone() }));
        }
        let invalid = self.invalid.get(&hash, now);
        invalid.map(|()| Err(AccessRefusal::InvalidToken))
    }

    /// Whether the API server last said that the token is a reader's.
    pub(super) fn was_readers(&self, hash: TokenHash) -> bool {
        self.readers.remembers(&hash)
    }

    /// Whether the token's user is known to be allowed to read.
    pub(super) fn is_allowed(&self, hash: TokenHash, now: Instant) -> bool {
        self.allowed.get(&hash, now).is_some()
    }

    pub(super) fn learn(
        &mut self,
        hash: TokenHash,
        answer: &Result<(), AccessRefusal>,
        now: Instant,
    ) {
        match answer {
            Ok(()) => {
                self.readers.put(hash, (), now + TOKEN_LIFETIME, now);
                if self.allowed.get(&hash, now).is_none() {
                    self.allowed.put(hash, (), now + ALLOWED_LIFETIME, now);
                }
            }
            Err(AccessRefusal::Denied { user }) => {
                self.readers.forget(&hash);
                let until = now + DENIED_LIFETIME;
                self.denied.put(hash, user.clone(), until, now);
            }
            Err(AccessRefusal::InvalidToken) => {
                self.readers.forget(&hash);
                self.invalid.put(hash, (), now + TOKEN_LIFETIME, now);
            }
            Err(AccessRefusal::NoToken | AccessRefusal::TooMany | AccessRefusal::Unanswered) => {}
        }
    }
}

/// Answers by question, each until it expires. When full, the one that expires first goes.
struct Answers<K, V>(HashMap<K, (V, Instant)>);

impl<K, V> Default for Answers<K, V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash + Clone, V> Answers<K, V> {
    fn get(&self, question: &K, now: Instant) -> Option<&V> {
        let (answer, until) = self.0.get(question)?;
        (now < *until).then_some(answer)
    }

    /// Whether there was an answer, even an expired one.
    fn remembers(&self, question: &K) -> bool {
        self.0.contains_key(question)
    }

    fn forget(&mut self, question: &K) {
        self.0.remove(question);
    }

    fn put(&mut self, question: K, answer: V, until: Instant, now: Instant) {
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

    const SECOND: Duration = Duration::from_secs(1);

    fn hash(number: u16) -> TokenHash {
        let mut hash = TokenHash::default();
        hash[..2].copy_from_slice(&number.to_be_bytes());
        hash
    }

    #[test]
    fn a_refusal_has_the_status_that_a_client_can_act_on() {
        let user = "system:serviceaccount:a:b".to_owned();
        for (refusal, expected) in [
            (AccessRefusal::NoToken, 401),
            (AccessRefusal::InvalidToken, 401),
            (AccessRefusal::Denied { user }, 403),
            (AccessRefusal::TooMany, 503),
            (AccessRefusal::Unanswered, 503),
        ] {
            assert_eq!(refusal.into_response().status().as_u16(), expected);
        }
    }

    #[test]
    fn a_flood_of_useless_tokens_does_not_evict_a_readers() {
        let now = Instant::now();
        let mut known = KnownTokens::default();
        let reader = hash(u16::MAX);
        known.learn(reader, &Ok(()), now);
        let user = "somebody".to_owned();
        for refusal in [AccessRefusal::InvalidToken, AccessRefusal::Denied { user }] {
            for number in 0..2000 {
                known.learn(hash(number), &Err(refusal.clone()), now);
            }
            let last = known.answer(hash(1999), now);
            assert_eq!(last, Some(Err(refusal)));
        }
        assert_eq!(known.answer(reader, now), Some(Ok(())));
        // When the answer expires, the API server is asked again, but the token does not count as unknown.
        let later = now + TOKEN_LIFETIME;
        assert_eq!(known.answer(reader, later), None);
        assert!(known.was_readers(reader));
        // That holds until the API server says otherwise.
        known.learn(reader, &Err(AccessRefusal::Unanswered), later);
        assert!(known.was_readers(reader));
        known.learn(reader, &Err(AccessRefusal::InvalidToken), later);
        assert!(!known.was_readers(reader));
    }

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
