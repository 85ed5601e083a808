//! Access to metrics: a request carries a bearer token, and the API server says whose it is (`TokenReview`) and what that user
//! may do (`SubjectAccessReview`). If the API server cannot be asked, the request is refused. controller-runtime guards metrics
//! the same way.

mod known;
mod review;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use kube::Client;
use ring::digest::{SHA256, digest};
use tokio::sync::Semaphore;
use tracing::{debug, info, warn};

use super::places::Places;
use super::server::Peer;
use known::{AccessRefusal, KnownTokens, TokenHash};
use review::{Reviewer, Unanswered};

/// How long one request may wait for the API server. Scrapes usually time out after 10 s.
const DEADLINE: Duration = Duration::from_secs(5);
/// How many requests with unknown tokens may ask the API server at a time.
const STRANGERS: usize = 8;
/// How many requests with an expired reader's token may ask at a time. Unknown tokens cannot take these places.
const READERS: usize = 4;
/// How many requests with unknown tokens may wait for an answer: fewer than a server's connections, since waiting ones keep
/// theirs.
const WAITING: usize = 32;
/// How many of them may come from one address.
const WAITING_EACH: usize = 4;

/// Admits a request if the API server lets its user read the path. Clones share the known answers.
#[derive(Clone)]
pub(super) struct AccessGuard(Arc<Inner>);

struct Inner {
    reviewer: Reviewer,
    /// Where unknown tokens wait for an answer.
    queue: Places,
    strangers: Semaphore,
    readers: Semaphore,
    known: Mutex<KnownTokens>,
}

impl AccessGuard {
    /// The client's user must be allowed to create token reviews and subject access reviews.
    pub(super) fn new(client: &Client) -> Self {
        Self(Arc::new(Inner {
            reviewer: Reviewer::new(client),
            queue: Places::new(WAITING, WAITING_EACH),
            strangers: Semaphore::new(STRANGERS),
            readers: Semaphore::new(READERS),
            known: Mutex::default(),
        }))
    }

    /// Passes a request on or refuses it: a layer for `axum::middleware::from_fn_with_state`.
    pub(super) async fn check(
        State(access): State<Self>,
        Extension(Peer(peer)): Extension<Peer>,
        request: Request,
        next: Next,
    ) -> Response {
        let path = request.uri().path();
        let token = bearer(request.headers());
        match access.0.admit(token, peer, path).await {
            Ok(()) => next.run(request).await,
            Err(refusal) => {
                debug!(%peer, "refused to serve {path}: {refusal}");
                refusal.into_response()
            }
        }
    }
}

impl Inner {
    /// Whether the user with this token may get the path. Only one path exists, so answers are remembered by token alone.
    async fn admit(
        &self,
        token: Option<&str>,
        peer: IpAddr,
        path: &str,
    ) -> Result<(), AccessRefusal> {
        let token = token.ok_or(AccessRefusal::NoToken)?;
        let hash = hash(token);
        let now = Instant::now();
        let (answer, is_readers) = {
            let known = self.known();
            (known.answer(hash, now), known.was_readers(hash))
        };
        if let Some(answer) = answer {
            return answer;
        }
        let asked = async {
            if is_readers {
                let _turn = self.readers.acquire().await;
                return self.ask(token, hash, path).await;
            }
            let _place = self.queue.take(peer).ok_or(AccessRefusal::TooMany)?;
            let _turn = self.strangers.acquire().await;
            self.ask(token, hash, path).await
        };
        let answer = tokio::time::timeout(DEADLINE, asked).await;
        let answer = answer.unwrap_or_else(|_| {
            self.note(Some(&Unanswered::TooLate(DEADLINE)));
            Err(AccessRefusal::Unanswered)
        });
        self.known().learn(hash, &answer, Instant::now());
        answer
    }

    async fn ask(&self, token: &str, hash: TokenHash, path: &str) -> Result<(), AccessRefusal> {
        // Another request may have asked meanwhile.
        if let Some(answer) = self.known().answer(hash, Instant::now()) {
            return answer;
        }
        let user = self.told(self.reviewer.user_of(token).await)?;
        let user = user.ok_or(AccessRefusal::InvalidToken)?;
        let is_allowed = self.known().is_allowed(hash, Instant::now());
        if is_allowed || self.told(self.reviewer.may_get(&user, path).await)? {
            return Ok(());
        }
        let user = user.username.unwrap_or_default();
        Err(AccessRefusal::Denied { user })
    }

    fn told<T>(&self, answer: Result<T, Unanswered>) -> Result<T, AccessRefusal> {
        self.note(answer.as_ref().err());
        answer.map_err(|_| AccessRefusal::Unanswered)
    }

    /// Logs once why the API server cannot be asked, and when it can be again.
    fn note(&self, problem: Option<&Unanswered>) {
        let problem = problem.map(ToString::to_string);
        let before = std::mem::replace(&mut self.known().problem, problem.clone());
        match (before, problem) {
            (before, Some(problem)) if before.as_ref() != Some(&problem) => {
                warn!("cannot check who may read metrics, so nobody may: {problem}");
            }
            (Some(_), None) => info!("access to metrics can be checked again"),
            _ => {}
        }
    }

    fn known(&self) -> MutexGuard<'_, KnownTokens> {
        // No panic elsewhere leaves a half-made change.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The token in the `Authorization` header (RFC 6750).
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn hash(token: &str) -> TokenHash {
    let mut hash = TokenHash::default();
    hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_read_from_the_header() {
        for (value, expected) in [
            (None, None),
            (Some("Bearer abc"), Some("abc")),
            (Some("bearer  abc "), Some("abc")),
            (Some("Bearer"), None),
            (Some("Bearer "), None),
            (Some("Basic abc"), None),
            (Some("abc"), None),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            }
            assert_eq!(bearer(&headers), expected, "{value:?}");
        }
    }
}
