//! Compares this machine's clock with the API server's: by a wrong one, nodes are gated, released and repaired at the wrong time.

use http::Request;
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use prometheus::Gauge;
use tower::service_fn;
use tracing::warn;

use super::answer::within;
use super::lease::{REQUEST_TIMEOUT, RETRY_PERIOD};
use nodegate_cluster::client;
use nodegate_engine::RequestError;

/// How many seconds the clock may be off: API servers tell whole seconds, and an answer takes up to [`REQUEST_TIMEOUT`].
const MAX_OFFSET: f64 = 10.0;

/// A client that notes at each answer how many seconds this machine's clock is ahead of the API server's.
pub(super) fn compared(client: Client, offset: Gauge) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = service_fn(move |request| {
        let (client, offset) = (client.clone(), offset.clone());
        async move {
            let answer = client.send(request).await?;
            if let Some(served_at) = client::served_at(answer.headers()) {
                let ahead = Timestamp::now().duration_since(served_at);
                offset.set(ahead.as_secs_f64());
            }
            Ok::<_, kube::Error>(answer)
        }
    });
    Client::new(service, namespace)
}

/// An error if the clock was wrong at the last answer, so that this instance must not begin to lead.
pub(super) fn check(offset: &Gauge) -> Result<(), RequestError> {
    let offset = offset.get();
    if offset.abs() <= MAX_OFFSET {
        return Ok(());
    }
    let side = if offset > 0.0 { "ahead of" } else { "behind" };
    Err(RequestError::Failed(format!(
        "this machine's clock is more than {MAX_OFFSET} s {side} the API server's; check its time synchronization"
    )))
}

/// Waits until the clock is right, for an instance that leads without an election. `client` notes the offset.
pub(super) async fn until_right(client: &Client, offset: &Gauge) {
    let mut problem = None;
    loop {
        let asked = within(REQUEST_TIMEOUT, client.send(Request::new(Body::empty()))).await;
        let Err(error) = asked.and_then(|_| check(offset)) else {
            return;
        };
        let error = error.to_string();
        if problem.as_ref() != Some(&error) {
            warn!("cannot begin: {error}; retrying");
            problem = Some(error);
        }
        tokio::time::sleep(RETRY_PERIOD).await;
    }
}
