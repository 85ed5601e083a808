//! Checks with a GET request; any 2xx answer is good.

use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONNECTION, HOST, HeaderValue, LOCATION, USER_AGENT};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;

use super::connect::{self, connect, drive};
use super::tls::Tls;
use crate::causes::with_causes;
use crate::reporter::endpoint::{Endpoint, EndpointCheck, HttpRequest};
use crate::reporter::outcome::CheckFailure;

/// How many bytes of an answer's body are shown.
const SHOWN: usize = 256;
/// How long to wait for them; only the status matters.
const PATIENCE: Duration = Duration::from_secs(1);
/// The most redirects that are followed.
const REDIRECTS: usize = 10;

/// Makes the request and follows redirects on the same host.
pub(super) async fn check(
    request: &HttpRequest,
    tls: Option<&Tls>,
) -> Result<String, CheckFailure> {
    let mut request = request.clone();
    for _ in 0..=REDIRECTS {
        match get(&request, tls).await? {
            HttpAnswer::Good(status) => return Ok(format!("answered {status}")),
            HttpAnswer::Bad(words) => return Err(CheckFailure::not_ready(words)),
            HttpAnswer::Elsewhere(location) => {
                request = follow(&request, &location).ok_or_else(|| {
                    CheckFailure::not_ready(format!(
                        "redirects to {location}, which is not on the same host; check that address itself"
                    ))
                })?;
            }
        }
    }
    Err(CheckFailure::not_ready(format!(
        "redirects more than {REDIRECTS} times"
    )))
}

enum HttpAnswer {
    /// A 2xx status.
    Good(String),
    /// Another one.
    Bad(String),
    /// A redirect.
    Elsewhere(String),
}

async fn get(request: &HttpRequest, tls: Option<&Tls>) -> Result<HttpAnswer, CheckFailure> {
    let mut stream = connect(&request.target).await?;
    if let Some(tls) = tls {
        stream = tls.connect(&request.target, stream).await?;
    }
    let unanswered = |error: hyper::Error| {
        CheckFailure::no_answer(format!("did not answer: {}", with_causes(&error)))
    };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(unanswered)?;
    let message = Request::get(&request.path)
        .header(HOST, &request.authority)
        .header(USER_AGENT, connect::USER_AGENT)
        .header(ACCEPT, HeaderValue::from_static("*/*"))
        .header(CONNECTION, HeaderValue::from_static("close"))
        .body(Empty::<Bytes>::new())
        .map_err(|error| CheckFailure::broken(format!("cannot be asked: {error}")))?;
    let exchange = async {
        let response = sender.send_request(message).await.map_err(unanswered)?;
        Ok(read(response).await)
    };
    drive(exchange, connection).await
}

/// Classifies a response, without waiting for the body of a good one.
async fn read(mut response: Response<Incoming>) -> HttpAnswer {
    let status = response.status();
    if status.is_success() {
        return HttpAnswer::Good(status.to_string());
    }
    let location = response.headers().get(LOCATION);
    let location = location.and_then(|location| location.to_str().ok());
    if let (true, Some(location)) = (status.is_redirection(), location) {
        return HttpAnswer::Elsewhere(location.to_owned());
    }
    let body = start_of(response.body_mut()).await;
    HttpAnswer::Bad(match body.as_str() {
        "" => format!("answered {status}"),
        body => format!("answered {status}: {body}"),
    })
}

/// The start of a body: what arrives within [`PATIENCE`], up to [`SHOWN`] bytes.
async fn start_of(body: &mut Incoming) -> String {
    let mut start = Vec::new();
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            if let Some(data) = frame.data_ref() {
                start.extend_from_slice(&data[..data.len().min(SHOWN - start.len())]);
            }
            if start.len() == SHOWN {
                break;
            }
        }
    };
    // After a timeout, the part that has arrived is shown.
    let _ = tokio::time::timeout(PATIENCE, reading).await;
    String::from_utf8_lossy(&start).into_owned()
}

/// The request that a redirect leads to, if it stays on the same host and port.
fn follow(from: &HttpRequest, location: &str) -> Option<HttpRequest> {
    let path = if location.starts_with('/') && !location.starts_with("//") {
        location.parse::<Uri>().ok()?.path_and_query()?.to_string()
    } else {
        let EndpointCheck::Http(to) = Endpoint::parse(location).ok()?.check else {
            return None;
        };
        if (&to.target, to.tls) != (&from.target, from.tls) {
            return None;
        }
        to.path
    };
    Some(HttpRequest {
        path,
        ..from.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_followed_on_the_same_host_alone() {
        let from = "http://localhost:9099/old";
        let Ok(EndpointCheck::Http(from)) = Endpoint::parse(from).map(|endpoint| endpoint.check)
        else {
            panic!("{from} is no http endpoint");
        };
        for (location, expected) in [
            ("/new?x=1", Some("/new?x=1")),
            ("http://localhost:9099/new", Some("/new")),
            ("http://localhost:9098/new", None),
            ("https://localhost:9099/new", None),
            ("http://elsewhere:9099/new", None),
            ("//elsewhere/new", None),
            ("new", None),
            ("exec:/bin/true", None),
        ] {
            let to = follow(&from, location);
            assert_eq!(
                to.as_ref().map(|to| to.path.as_str()),
                expected,
                "{location}"
            );
        }
    }
}
