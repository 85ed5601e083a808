//! Who may read what is served: a request brings a bearer token, the API server says whose it is (`TokenReview`) and
//! what that user may do (`SubjectAccessReview`). Where it cannot be asked, nobody may.
//!
//! | file | what it does |
//! |---|---|
//! | `answers` | remembers answers for a while, within a bound (pure) |
//! | `queue` | whose unknown tokens are asked about (pure) |
//! | `review` | asks the API server |
//!
//! It is the same test that controller-runtime makes before it shows metrics. It does not know what is served; see
//! `serve::metrics`.

mod answers;
mod queue;
mod review;

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use kube::Client;
use ring::digest::{SHA256, digest};
use tokio::sync::Semaphore;
use tracing::{debug, info, warn};

use super::server::Peer;
use answers::Answers;
use queue::Queue;
use review::{Reviewer, Unanswered};

/// How long a token is taken to be a reader's; as long as one that is nobody's is taken to be that.
const TOKEN_LIFETIME: Duration = Duration::from_secs(60);
/// How long a user who may read is let in without asking again what it may do.
const ALLOWED_LIFETIME: Duration = Duration::from_secs(300);
/// How long a user who may not read is turned away without asking again.
const DENIED_LIFETIME: Duration = Duration::from_secs(30);
/// How long the API server is waited for in one request. A scrape usually gives up after 10 s.
const DEADLINE: Duration = Duration::from_secs(5);
/// How many requests with tokens that were never a reader's may ask the API server at a time.
const STRANGERS: usize = 8;
/// How many with a reader's may, when it is time to ask again: no stranger takes their turn.
const READERS: usize = 4;

/// Stands before what may be read by those only to whom the API server grants it. Clones share what is known.
#[derive(Clone)]
pub struct Access(Arc<Inner>);

struct Inner {
    reviewer: Reviewer,
    strangers: Semaphore,
    readers: Semaphore,
    known: Mutex<Known>,
}

/// A token's hash: tokens themselves are not kept.
type TokenHash = [u8; 32];

/// What the API server has said about tokens. Each kind is kept apart, so that a flood of tokens that are good for
/// nothing pushes no reader's out.
#[derive(Default)]
struct Known {
    /// Those of readers.
    readers: Answers<TokenHash, ()>,
    /// Whose users may read, for longer.
    allowed: Answers<TokenHash, ()>,
    /// Those whose users may not read, and who these are.
    denied: Answers<TokenHash, String>,
    /// Those that are nobody's.
    invalid: Answers<TokenHash, ()>,
    /// Strangers who wait for an answer.
    queue: Queue,
    /// What kept the API server from being asked, so that the log tells it once.
    problem: Option<String>,
}

impl Known {
    /// What is to be answered without asking, if anything.
    fn answer(&self, hash: TokenHash, now: Instant) -> Option<Result<(), Refusal>> {
        if self.readers.get(&hash, now).is_some() {
            return Some(Ok(()));
        }
        if let Some(user) = self.denied.get(&hash, now) {
            return Some(Err(Refusal::Denied { user: user.clone() }));
        }
        let invalid = self.invalid.get(&hash, now);
        invalid.map(|()| Err(Refusal::InvalidToken))
    }

    /// Remembers an answer of the API server.
    fn learn(&mut self, hash: TokenHash, answer: &Result<(), Refusal>, now: Instant) {
        match answer {
            Ok(()) => {
                self.readers.put(hash, (), now + TOKEN_LIFETIME, now);
                if self.allowed.get(&hash, now).is_none() {
                    self.allowed.put(hash, (), now + ALLOWED_LIFETIME, now);
                }
            }
            Err(Refusal::Denied { user }) => {
                self.readers.forget(&hash);
                let until = now + DENIED_LIFETIME;
                self.denied.put(hash, user.clone(), until, now);
            }
            Err(Refusal::InvalidToken) => {
                self.readers.forget(&hash);
                self.invalid.put(hash, (), now + TOKEN_LIFETIME, now);
            }
            Err(Refusal::NoToken | Refusal::TooMany | Refusal::Unanswered) => {}
        }
    }
}

/// Why a request is turned away.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Refusal {
    /// It brings no token.
    NoToken,
    /// The API server does not know the token.
    InvalidToken,
    /// The user may not read this.
    Denied { user: String },
    /// Too many tokens are being asked about.
    TooMany,
    /// The API server could not be asked.
    Unanswered,
}

impl fmt::Display for Refusal {
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

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let text = format!("{self}\n");
        match self {
            Self::NoToken | Self::InvalidToken => (
                StatusCode::UNAUTHORIZED,
                [(header::WWW_AUTHENTICATE, "Bearer")],
                text,
            )
                .into_response(),
            Self::Denied { .. } => (StatusCode::FORBIDDEN, text).into_response(),
            Self::TooMany | Self::Unanswered => {
                (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
            }
        }
    }
}

impl Access {
    /// Asks with this client, whose user must be allowed to create token and subject access reviews.
    #[must_use]
    pub fn new(client: &Client) -> Self {
        Self(Arc::new(Inner {
            reviewer: Reviewer::new(client),
            strangers: Semaphore::new(STRANGERS),
            readers: Semaphore::new(READERS),
            known: Mutex::default(),
        }))
    }

    /// Lets a request through or answers it: a layer for `axum::middleware::from_fn_with_state`.
    pub async fn check(
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
    /// Whether who brings this token may get the path. One path is served, so the token stands for both.
    async fn admit(&self, token: Option<&str>, peer: IpAddr, path: &str) -> Result<(), Refusal> {
        let token = token.ok_or(Refusal::NoToken)?;
        let hash = hash(token);
        let now = Instant::now();
        let (answer, is_readers) = {
            let known = self.known();
            (known.answer(hash, now), known.readers.remembers(&hash))
        };
        if let Some(answer) = answer {
            return answer;
        }
        let asked = async {
            if is_readers {
                let _turn = self.readers.acquire().await;
                return self.ask(token, hash, path).await;
            }
            let _place = self.queue(peer).ok_or(Refusal::TooMany)?;
            let _turn = self.strangers.acquire().await;
            self.ask(token, hash, path).await
        };
        let answer = tokio::time::timeout(DEADLINE, asked).await;
        let answer = answer.unwrap_or_else(|_| {
            self.note(Some(&Unanswered::TooLate(DEADLINE)));
            Err(Refusal::Unanswered)
        });
        self.known().learn(hash, &answer, Instant::now());
        answer
    }

    /// Asks the API server whose token it is, and what that user may do.
    async fn ask(&self, token: &str, hash: TokenHash, path: &str) -> Result<(), Refusal> {
        // Somebody else may have asked meanwhile.
        if let Some(answer) = self.known().answer(hash, Instant::now()) {
            return answer;
        }
        let user = self.told(self.reviewer.user_of(token).await)?;
        let user = user.ok_or(Refusal::InvalidToken)?;
        let is_allowed = self.known().allowed.get(&hash, Instant::now()).is_some();
        if is_allowed || self.told(self.reviewer.may_get(&user, path).await)? {
            return Ok(());
        }
        let user = user.username.unwrap_or_default();
        Err(Refusal::Denied { user })
    }

    fn told<T>(&self, answer: Result<T, Unanswered>) -> Result<T, Refusal> {
        self.note(answer.as_ref().err());
        answer.map_err(|_| Refusal::Unanswered)
    }

    /// A place in the queue of strangers, if there is one.
    fn queue(&self, peer: IpAddr) -> Option<Place<'_>> {
        let may = self.known().queue.join(peer);
        may.then_some(Place { inner: self, peer })
    }

    /// Tells once what keeps the API server from being asked, and when that is over.
    fn note(&self, problem: Option<&Unanswered>) {
        let problem = problem.map(ToString::to_string);
        let before = std::mem::replace(&mut self.known().problem, problem.clone());
        match (before, problem) {
            (before, Some(problem)) if before.as_ref() != Some(&problem) => {
                warn!("cannot tell who may read metrics, so nobody may: {problem}");
            }
            (Some(_), None) => info!("it can be told again who may read metrics"),
            _ => {}
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing is left half done by a panic elsewhere.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stranger's place in the queue; left when this is dropped.
struct Place<'a> {
    inner: &'a Inner,
    peer: IpAddr,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.inner.known().queue.leave(self.peer);
    }
}

/// The token of an `Authorization` header (RFC 6750).
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

    #[test]
    fn a_refusal_has_the_status_that_a_client_can_act_on() {
        let user = "system:serviceaccount:a:b".to_owned();
        for (refusal, expected) in [
            (Refusal::NoToken, 401),
            (Refusal::InvalidToken, 401),
            (Refusal::Denied { user }, 403),
            (Refusal::TooMany, 503),
            (Refusal::Unanswered, 503),
        ] {
            assert_eq!(refusal.into_response().status().as_u16(), expected);
        }
    }

    #[test]
    fn no_flood_of_tokens_that_are_good_for_nothing_pushes_a_readers_out() {
        let now = Instant::now();
        let mut known = Known::default();
        let reader = hash("reader");
        known.learn(reader, &Ok(()), now);
        let user = "somebody".to_owned();
        for refusal in [Refusal::InvalidToken, Refusal::Denied { user }] {
            for number in 0..2000 {
                known.learn(hash(&number.to_string()), &Err(refusal.clone()), now);
            }
            let last = known.answer(hash("1999"), now);
            assert_eq!(last, Some(Err(refusal)));
        }
        assert_eq!(known.answer(reader, now), Some(Ok(())));
        // Once its time is over the API server is asked again, but not as about a stranger's.
        let later = now + TOKEN_LIFETIME;
        assert_eq!(known.answer(reader, later), None);
        assert!(known.readers.remembers(&reader));
        // Until that has said otherwise.
        known.learn(reader, &Err(Refusal::Unanswered), later);
        assert!(known.readers.remembers(&reader));
        known.learn(reader, &Err(Refusal::InvalidToken), later);
        assert!(!known.readers.remembers(&reader));
    }
}
