//! Access to metrics, guarded as by controller-runtime: the API server says whose bearer token it is (`TokenReview`) and what that
//! user may do (`SubjectAccessReview`). If the API server cannot be asked, the request is refused.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::authorization::v1::{NonResourceAttributes, SubjectAccessReview};
use kube::api::PostParams;
use kube::{Api, Client};
use ring::digest::{SHA256, digest};
use tracing::{debug, info, warn};

use super::lock;
use super::permits::Permits;
use super::server::Peer;
use nodegate_cluster::with_causes;

/// How long one request may wait for the API server. Scrapes usually time out after 10 s.
const DEADLINE: Duration = Duration::from_secs(5);
/// How many requests may ask the API server at a time, and how many of one address.
const ASKING: (usize, usize) = (8, 4);
/// The most answers kept: many times the clients that scrape one process.
const CAPACITY: usize = 512;

/// A token's SHA-256; the tokens themselves are not stored.
type TokenHash = [u8; 32];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum AccessRefusal {
    #[error("a bearer token is needed: send a service account's")]
    NoToken,
    #[error("the API server does not accept this token")]
    InvalidToken,
    #[error("{user} may not get this path: bind ClusterRole nrr-metrics-reader to it")]
    Denied { user: String },
    #[error(
        "the API server could not be asked who you are and what you may do; the controller's log says why"
    )]
    Unanswered,
}

impl IntoResponse for AccessRefusal {
    fn into_response(self) -> Response {
        let (status, scheme) = match self {
            Self::NoToken | Self::InvalidToken => (StatusCode::UNAUTHORIZED, Some("Bearer")),
            Self::Denied { .. } => (StatusCode::FORBIDDEN, None),
            Self::Unanswered => (StatusCode::SERVICE_UNAVAILABLE, None),
        };
        let scheme = scheme.map(|scheme| [(header::WWW_AUTHENTICATE, scheme)]);
        (status, scheme, format!("{self}\n")).into_response()
    }
}

/// Admits a request if the API server lets its user read the path.
pub(super) struct AccessGuard {
    tokens: Api<TokenReview>,
    rights: Api<SubjectAccessReview>,
    asking: Permits,
    known: Mutex<KnownTokens>,
    /// Why the API server could not be asked; the log says it once.
    problem: Mutex<Option<String>>,
}

impl AccessGuard {
    /// The client's user must be allowed to create token reviews and subject access reviews.
    pub(super) fn new(client: &Client) -> Arc<Self> {
        Arc::new(Self {
            tokens: Api::all(client.clone()),
            rights: Api::all(client.clone()),
            asking: Permits::new(ASKING.0, ASKING.1),
            known: Mutex::default(),
            problem: Mutex::default(),
        })
    }

    /// Passes a request on or refuses it: a layer for `axum::middleware::from_fn_with_state`.
    pub(super) async fn check(
        State(access): State<Arc<Self>>,
        Extension(Peer(peer, _)): Extension<Peer>,
        request: Request,
        next: Next,
    ) -> Response {
        let path = request.uri().path();
        let token = bearer(request.headers());
        match access.admit(token, peer, path).await {
            Ok(()) => next.run(request).await,
            Err(refusal) => {
                debug!(%peer, "refused to serve {path}: {refusal}");
                refusal.into_response()
            }
        }
    }

    /// Whether the user with this token may get the path. Only one path exists, so answers are remembered by token alone.
    async fn admit(
        &self,
        token: Option<&str>,
        peer: IpAddr,
        path: &str,
    ) -> Result<(), AccessRefusal> {
        let token = token.ok_or(AccessRefusal::NoToken)?;
        let mut hash = TokenHash::default();
        hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        let known = || lock(&self.known).answer(&hash, Instant::now());
        if let Some(answer) = known() {
            return answer;
        }
        let asked = async {
            let _permit = self.asking.take(peer).await;
            // Another request may have asked meanwhile.
            match known() {
                Some(answer) => Ok(answer),
                None => self.ask(token, path).await,
            }
        };
        let asked = tokio::time::timeout(DEADLINE, asked).await;
        let asked = asked.unwrap_or_else(|_| {
            let seconds = DEADLINE.as_secs();
            Err(format!("the API server did not answer within {seconds} s"))
        });
        self.log(asked.as_ref().err());
        let answer = asked.map_err(|_| AccessRefusal::Unanswered)?;
        lock(&self.known).learn(hash, answer.clone(), Instant::now());
        answer
    }

    /// The API server's answer, or why there is none.
    async fn ask(&self, token: &str, path: &str) -> Result<Result<(), AccessRefusal>, String> {
        let mut review = TokenReview::default();
        review.spec.token = token.to_owned();
        let answer = self.tokens.create(&PostParams::default(), &review).await;
        let answer =
            answer.map_err(|error| reason("tokenreviews.authentication.k8s.io", &error))?;
        let status = answer.status.unwrap_or_default();
        let is_valid = status.authenticated.unwrap_or_default();
        let Some(user) = status.user.filter(|_| is_valid) else {
            return Ok(Err(AccessRefusal::InvalidToken));
        };
        let mut review = SubjectAccessReview::default();
        review.spec.user = user.username.clone();
        review.spec.uid = user.uid;
        review.spec.groups = user.groups;
        review.spec.extra = user.extra;
        review.spec.non_resource_attributes = Some(NonResourceAttributes {
            path: Some(path.to_owned()),
            verb: Some("get".into()),
        });
        let answer = self.rights.create(&PostParams::default(), &review).await;
        let what = "subjectaccessreviews.authorization.k8s.io";
        let answer = answer.map_err(|error| reason(what, &error))?;
        if answer.status.is_some_and(|status| status.allowed) {
            return Ok(Ok(()));
        }
        let user = user.username.unwrap_or_default();
        Ok(Err(AccessRefusal::Denied { user }))
    }

    /// Logs once why the API server cannot be asked, and when it can be again.
    fn log(&self, problem: Option<&String>) {
        let before = std::mem::replace(&mut *lock(&self.problem), problem.cloned());
        match problem {
            Some(problem) if before.as_ref() != Some(problem) => {
                warn!("cannot check who may read metrics, so nobody may: {problem}");
            }
            None if before.is_some() => info!("access to metrics can be checked again"),
            _ => {}
        }
    }
}

fn reason(what: &str, error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 403 => format!(
            "no permission to create {what} ({}): grant it with `kubectl apply -k config/rbac`",
            status.message
        ),
        kube::Error::Api(status) => format!("cannot create {what}: {}", status.message),
        error => format!("cannot reach the API server: {}", with_causes(error)),
    }
}

/// The API server's answers about tokens, each until it expires. Bounded.
#[derive(Default)]
struct KnownTokens(HashMap<TokenHash, (Result<(), AccessRefusal>, Instant)>);

impl KnownTokens {
    fn answer(&self, hash: &TokenHash, now: Instant) -> Option<Result<(), AccessRefusal>> {
        let (answer, until) = self.0.get(hash)?;
        (now < *until).then(|| answer.clone())
    }

    fn learn(&mut self, hash: TokenHash, answer: Result<(), AccessRefusal>, now: Instant) {
        if self.0.len() >= CAPACITY {
            self.0.retain(|_, (_, until)| now < *until);
        }
        if self.0.len() >= CAPACITY {
            // A flood of useless tokens evicts no reader's.
            self.0.retain(|_, (answer, _)| answer.is_ok());
        }
        if self.0.len() < CAPACITY {
            let is_denied = matches!(answer, Err(AccessRefusal::Denied { .. }));
            let until = now + Duration::from_secs(if is_denied { 30 } else { 60 });
            self.0.insert(hash, (answer, until));
        }
    }
}

/// The token in the `Authorization` header (RFC 6750).
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: usize) -> TokenHash {
        let mut hash = TokenHash::default();
        hash[..8].copy_from_slice(&number.to_be_bytes());
        hash
    }

    #[test]
    fn a_flood_of_useless_tokens_does_not_evict_a_readers() {
        let now = Instant::now();
        let mut known = KnownTokens::default();
        let reader = hash(usize::MAX);
        known.learn(reader, Ok(()), now);
        for number in 0..4 * CAPACITY {
            let answer = Err(AccessRefusal::InvalidToken);
            known.learn(hash(number), answer.clone(), now);
            assert_eq!(known.answer(&hash(number), now), Some(answer));
            assert!(known.0.len() <= CAPACITY);
        }
        assert_eq!(known.answer(&reader, now), Some(Ok(())));
        let later = now + Duration::from_secs(60);
        assert_eq!(known.answer(&reader, later), None);
        known.learn(reader, Err(AccessRefusal::InvalidToken), later);
        let answer = known.answer(&reader, later);
        assert_eq!(answer, Some(Err(AccessRefusal::InvalidToken)));
    }

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
