//! The webhook's one path: it parses a review request, compares the rule with the cluster, and answers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Router};
use futures::future::OptionFuture;
use kube::core::Status;
use serde_json::json;
use tokio::task::block_in_place;
use tokio::time::timeout;
use tracing::{info, warn};

use super::envelope::{Envelope, ReviewRequest};
use super::review::{Proposal, review};
use super::surroundings::{Surroundings, Surveyor};
use nodegate_core::text::quoted;
use nodegate_serve::{Peer, Permits};

const PATH: &str = "/validate-readiness-node-x-k8s-io-v1alpha1-nodereadinessrule";

/// The most reviews at a time, and the most of one address, whose requests are read at a time, too. A review lists rules and
/// nodes; it takes milliseconds.
const REVIEWS: (usize, usize) = (4, 2);
/// As many requests may be longer than this, which may take a few MiB each. Nearly all are shorter.
const SHORT: u64 = 64 << 10;
/// How long a request may take to arrive and to have its turn. The API server waits 10 s in total.
const PATIENCE: Duration = Duration::from_secs(6);
/// The most bytes of a request: an update carries the old and the new object, each at most etcd's limit (1.5 MiB).
const LARGEST: usize = 4 << 20;

struct Webhook {
    turns: Permits,
    long: Permits,
    surveyor: Surveyor,
}

pub(super) fn router(surveyor: Surveyor) -> Router {
    Router::new()
        .route(PATH, post(answer))
        .layer(DefaultBodyLimit::max(LARGEST))
        .with_state(Arc::new(Webhook {
            turns: Permits::new(REVIEWS.0, REVIEWS.1),
            long: Permits::new(REVIEWS.0, REVIEWS.1),
            surveyor,
        }))
}

async fn answer(
    State(webhook): State<Arc<Webhook>>,
    Extension(Peer(peer, arrived)): Extension<Peer>,
    request: Request,
) -> Response {
    let arrive = async {
        let own = webhook.turns.begin(peer).await;
        let bytes = request.body().size_hint().upper();
        let is_long = bytes.is_none_or(|bytes| bytes > SHORT);
        let long = OptionFuture::from(is_long.then(|| webhook.long.take(peer))).await;
        // Read before its turn, so that a slow client holds up only its own address.
        let body = Bytes::from_request(request, &()).await?;
        arrived.store(true, Ordering::Relaxed);
        Ok((body, long, webhook.turns.complete(own).await))
    };
    let (body, long, _turn) = match timeout(PATIENCE, arrive).await {
        Ok(Ok(arrived)) => arrived,
        Ok(Err(rejection)) => return BytesRejection::into_response(rejection),
        Err(_) => {
            let text = "too many rules are under review; try again\n";
            return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
        }
    };
    let request = match serde_json::from_slice(&body) {
        Ok(Envelope { request }) => request,
        Err(error) => {
            let text = format!("not an AdmissionReview: {error}\n");
            return (StatusCode::BAD_REQUEST, text).into_response();
        }
    };
    drop((body, long));
    let uid = request.uid.clone();
    let response = match Box::pin(webhook.judge(request)).await {
        Ok(warnings) => json!({"uid": uid, "allowed": true, "warnings": warnings}),
        Err(status) => json!({"uid": uid, "allowed": false, "status": status}),
    };
    let review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": response,
    });
    let json = [(header::CONTENT_TYPE, "application/json")];
    (json, review.to_string()).into_response()
}

impl Webhook {
    /// The warnings about an accepted rule, or why it is rejected.
    async fn judge(&self, request: ReviewRequest) -> Result<Vec<String>, Status> {
        let Some(subject) = Proposal::of(request, self.surveyor.classes()) else {
            return Ok(Vec::new());
        };
        let rule = quoted(subject.rule.name.to_string());
        let surroundings = match &subject.rule.spec {
            Ok(spec) if subject.faults.is_empty() => {
                Box::pin(self.surveyor.survey(spec)).await.map_err(|why| {
                    warn!(rule, "rule rejected without a review: {why}");
                    // It must not read as if the rule were wrong.
                    let why = format!("cannot tell whether the rule conflicts with another: {why}");
                    Status::failure(&why, "ServiceUnavailable").with_code(503)
                })?
            }
            // It was unusable before, and stays so.
            _ if subject.faults.is_empty() => Surroundings::default(),
            // It is rejected anyway.
            _ => Surroundings {
                rules: self.surveyor.rules().await.unwrap_or_default(),
                ..Surroundings::default()
            },
        };
        // It may plan for every node of the cluster.
        let judged = block_in_place(|| review(&subject, self.surveyor.classes(), &surroundings));
        // In the form of the upstream project's webhook.
        judged.map_err(|why| {
            info!(rule, "rule rejected: {}", quoted(why.clone()));
            Status::failure(&why, "Forbidden").with_code(403)
        })
    }
}
