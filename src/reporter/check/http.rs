//! Checks with a GET request; any 2xx answer is good.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, LOCATION};
use hyper::{Request, Uri};
use hyper_util::client::legacy::connect::Connect;

use super::connect::ask;
use crate::endpoint::{Endpoint, EndpointCheck};
use crate::outcome::{CheckFinding, CheckOutcome};

const SHOWN: usize = 256;
/// How long to wait for them; only the status matters.
const PATIENCE: Duration = Duration::from_secs(1);
const REDIRECTS: usize = 10;

/// Makes the request and follows redirects on the same host.
pub(super) async fn check(
    connector: impl Connect + Clone + Send + Sync + 'static,
    uri: &Uri,
) -> Result<String, CheckOutcome> {
    let mut uri = uri.clone();
    for _ in 0..=REDIRECTS {
        let request = Request::get(&uri).header(ACCEPT, "*/*");
        let connector = connector.clone();
        let answer = ask(connector, false, request, Vec::new(), "did not answer");
        let mut response = answer.await?;
        let status = response.status();
        if status.is_success() {
            // The body of a good answer is not waited for.
            return Ok(format!("answered {status}"));
        }
        let location = response.headers().get(LOCATION);
        let location = location.filter(|_| status.is_redirection());
        let Some(location) = location.and_then(|location| location.to_str().ok()) else {
            let body = start_of(response.body_mut()).await;
            return Err(CheckFinding::NotReady.because(match body.as_str() {
                "" => format!("answered {status}"),
                body => format!("answered {status}: {body}"),
            }));
        };
        uri = follow(&uri, location).ok_or_else(|| {
            CheckFinding::NotReady.because(format!(
                "redirects to {location}, which is not on the same host; check that address itself"
            ))
        })?;
    }
    Err(CheckFinding::NotReady.because(format!("redirects more than {REDIRECTS} times")))
}

/// The start of a body: what arrives within [`PATIENCE`], up to [`SHOWN`] bytes.
async fn start_of(body: &mut Incoming) -> String {
    let mut start = Vec::new();
    let reading = async {
        while start.len() < SHOWN
            && let Some(Ok(frame)) = body.frame().await
        {
            start.extend_from_slice(&frame.into_data().unwrap_or_default());
        }
    };
    // After a timeout, the part that has arrived is shown.
    let _ = tokio::time::timeout(PATIENCE, reading).await;
    start.truncate(SHOWN);
    String::from_utf8_lossy(&start).into_owned()
}

/// Where a redirect leads, if it stays on the same host and port.
fn follow(from: &Uri, location: &str) -> Option<Uri> {
    let (scheme, authority) = (from.scheme_str()?, from.authority()?);
    let (folder, _) = from.path().rsplit_once('/')?;
    let target = match location.split(['/', '?']).next()? {
        start if start.contains(':') => location.to_owned(),
        _ if location.starts_with("//") => format!("{scheme}:{location}"),
        _ if location.starts_with('/') => format!("{scheme}://{authority}{location}"),
        _ => format!("{scheme}://{authority}{folder}/{location}"),
    };
    let EndpointCheck::Http { uri, socket: None } = Endpoint::parse(&target).ok()?.check else {
        return None;
    };
    let default = if scheme == "https" { 443 } else { 80 };
    let port = |uri: &Uri| uri.port_u16().unwrap_or(default);
    let is_same = uri.scheme_str() == Some(scheme) && uri.host() == from.host();
    (is_same && port(&uri) == port(from)).then_some(uri)
}

#[cfg(test)]
mod tests {
    use hyper::http::uri::PathAndQuery;

    use super::*;

    #[test]
    fn redirects_are_followed_on_the_same_host_alone() {
        let from = "http://localhost:9099/a/old?x=0".parse().unwrap();
        for (location, expected) in [
            ("/new?x=1", Some("/new?x=1")),
            ("http://localhost:9099/new", Some("/new")),
            ("//localhost:9099/new", Some("/new")),
            ("new", Some("/a/new")),
            (
                "new/?x=http://elsewhere/",
                Some("/a/new/?x=http://elsewhere/"),
            ),
            ("http://localhost:9098/new", None),
            ("https://localhost:9099/new", None),
            ("http://elsewhere:9099/new", None),
            ("//elsewhere/new", None),
            ("exec:/bin/true", None),
        ] {
            let to = follow(&from, location);
            let path = to.as_ref().and_then(|to| to.path_and_query());
            assert_eq!(path.map(PathAndQuery::as_str), expected, "{location}");
        }
    }
}
