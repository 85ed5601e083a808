//! Who may read what is served: a request brings a bearer token, the API server says whose it is (`TokenReview`) and
//! what that user may do (`SubjectAccessReview`). Where it cannot be asked, nobody may.
//!
//! | file | what it does |
//! |---|---|
//! | `answers` | remembers answers for a while, within a bound (pure) |
//! | `review` | asks the API server |
//!
//! It is the same test that controller-runtime makes before it shows metrics. It does not know what is served; see
//! `controller::scrape`.

mod answers;
mod review;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use k8s_openapi::api::authentication::v1::UserInfo;
use kube::Client;
use ring::digest::{SHA256, digest};
use tokio::sync::Semaphore;
use tracing::{debug, info, warn};

use answers::Answers;
use review::{Reviewer, Unanswered};

/// How long a token is taken to be whose it was; as long as one that is nobody's is taken to be that.
const TOKEN_LIFETIME: Duration = Duration::from_secs(60);
/// How long a user who may read is let in without asking again.
const ALLOWED_LIFETIME: Duration = Duration::from_secs(300);
/// How long a user who may not read is turned away without asking again.
const DENIED_LIFETIME: Duration = Duration::from_secs(30);
/// How long the API server is waited for in one request. A scrape usually gives up after 10 s.
const DEADLINE: Duration = Duration::from_secs(5);
/// How many requests may ask the API server at a time, so that a flood of tokens does not reach it.
const ASKING: usize = 8;

/// Stands before what may be read by those only to whom the API server grants it. Clones share what is known.
#[derive(Clone)]
pub struct Access(Arc<Inner>);

struct Inner {
    reviewer: Reviewer,
    asking: Semaphore,
    known: Mutex<Known>,
}

/// A token's hash: tokens themselves are not kept.
type TokenHash = [u8; 32];

/// What the API server has said about tokens.
#[derive(Default)]
struct Known {
    /// Whose they are.
    users: Answers<TokenHash, UserInfo>,
    /// Those that are nobody's: kept apart, so that a flood of them pushes no good one out.
    invalid: Answers<TokenHash, ()>,
    /// Whether their users may read.
    rights: Answers<TokenHash, bool>,
    /// What kept the API server from being asked, so that the log tells it once.
    problem: Option<String>,
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
            Self::Unanswered => (StatusCode::SERVICE_UNAVAILABLE, text).into_response(),
        }
    }
}

impl Access {
    /// Asks with this client, whose user must be allowed to create token and subject access reviews.
    #[must_use]
    pub fn new(client: &Client) -> Self {
        Self(Arc::new(Inner {
            reviewer: Reviewer::new(client),
            asking: Semaphore::new(ASKING),
            known: Mutex::default(),
        }))
    }

    /// Lets a request through or answers it: a layer for `axum::middleware::from_fn_with_state`.
    pub async fn check(State(access): State<Self>, request: Request, next: Next) -> Response {
        let path = request.uri().path();
        match access.0.admit(bearer(request.headers()), path).await {
            Ok(()) => next.run(request).await,
            Err(refusal) => {
                debug!("refused to serve {path}: {refusal}");
                refusal.into_response()
            }
        }
    }
}

impl Inner {
    async fn admit(&self, token: Option<&str>, path: &str) -> Result<(), Refusal> {
        let token = token.ok_or(Refusal::NoToken)?;
        let hash = hash(token);
        let asked = async {
            let user = self.user(token, hash).await?;
            let user = user.ok_or(Refusal::InvalidToken)?;
            let allowed = self.may_get(&user, hash, path).await?;
            let user = user.username.unwrap_or_default();
            allowed.then_some(()).ok_or(Refusal::Denied { user })
        };
        let answer = tokio::time::timeout(DEADLINE, asked).await;
        answer.unwrap_or_else(|_| {
            self.note(Some(&Unanswered::TooLate(DEADLINE)));
            Err(Refusal::Unanswered)
        })
    }

    /// Whose token this is, if anybody's.
    async fn user(&self, token: &str, hash: TokenHash) -> Result<Option<UserInfo>, Refusal> {
        let remembered = self.known(|known, now| match known.users.get(&hash, now) {
            Some(user) => Some(Some(user.clone())),
            None => known.invalid.get(&hash, now).map(|()| None),
        });
        if let Some(user) = remembered {
            return Ok(user);
        }
        let user = self.ask(self.reviewer.user_of(token)).await?;
        self.known(|known, now| match &user {
            Some(user) => known
                .users
                .put(hash, user.clone(), now + TOKEN_LIFETIME, now),
            None => known.invalid.put(hash, (), now + TOKEN_LIFETIME, now),
        });
        Ok(user)
    }

    /// Whether the user, known by this token, may get the path. One path is served, so the token stands for both.
    async fn may_get(&self, user: &UserInfo, hash: TokenHash, path: &str) -> Result<bool, Refusal> {
        if let Some(allowed) = self.known(|known, now| known.rights.get(&hash, now).copied()) {
            return Ok(allowed);
        }
        let allowed = self.ask(self.reviewer.may_get(user, path)).await?;
        let lifetime = if allowed {
            ALLOWED_LIFETIME
        } else {
            DENIED_LIFETIME
        };
        self.known(|known, now| known.rights.put(hash, allowed, now + lifetime, now));
        Ok(allowed)
    }

    /// Asks the API server, beside a few others at most.
    async fn ask<T>(
        &self,
        question: impl Future<Output = Result<T, Unanswered>>,
    ) -> Result<T, Refusal> {
        // A semaphore of our own is never closed.
        let _turn = self.asking.acquire().await;
        let answer = question.await;
        self.note(answer.as_ref().err());
        answer.map_err(|_| Refusal::Unanswered)
    }

    /// Tells once what keeps the API server from being asked, and when that is over.
    fn note(&self, problem: Option<&Unanswered>) {
        let problem = problem.map(ToString::to_string);
        let before = self.known(|known, _| std::mem::replace(&mut known.problem, problem.clone()));
        match (before, problem) {
            (before, Some(problem)) if before.as_ref() != Some(&problem) => {
                warn!("cannot tell who may read metrics, so nobody may: {problem}");
            }
            (Some(_), None) => info!("it can be told again who may read metrics"),
            _ => {}
        }
    }

    fn known<T>(&self, look: impl FnOnce(&mut Known, Instant) -> T) -> T {
        // Nothing is left half done by a panic elsewhere.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        look(&mut known, Instant::now())
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
            (Refusal::Unanswered, 503),
        ] {
            assert_eq!(refusal.into_response().status().as_u16(), expected);
        }
    }
}
