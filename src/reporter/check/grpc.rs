//! The gRPC health protocol, version 1: one unary call, whose two messages have one field each and need no code generator. See
//! <https://github.com/grpc/grpc/blob/master/doc/health-checking.md> and
//! <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>.

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, TE};
use hyper::{Request, Response, StatusCode};
use hyper_util::client::legacy::connect::HttpConnector;

use super::connect::ask;
use crate::outcome::{CheckFinding, CheckOutcome};

const METHOD: &str = "/grpc.health.v1.Health/Check";
/// The largest answer that is read, in bytes; the expected one has 7.
const MAX_ANSWER: usize = 4096;
/// The tag of field 1, length-delimited: `HealthCheckRequest.service`.
const SERVICE: u8 = 0x0a;
/// The tag of field 1, a varint: `HealthCheckResponse.status`.
const STATUS: u8 = 0x08;

/// Checks the health of a service, or of the whole server if `service` is empty.
pub(super) async fn check(authority: &str, service: &str) -> Result<String, CheckOutcome> {
    let call = Request::post(format!("http://{authority}{METHOD}"))
        .header(CONTENT_TYPE, "application/grpc")
        .header(TE, "trailers");
    let (connector, body) = (HttpConnector::new(), request(service));
    let answer = ask(connector, true, call, body, "did not answer as gRPC");
    read(answer.await?).await
}

async fn read(response: Response<Incoming>) -> Result<String, CheckOutcome> {
    use CheckFinding::{Broken, NoAnswer, NotReady};
    let (head, body) = response.into_parts();
    if head.status != StatusCode::OK {
        let words = format!("does not speak gRPC: it answered {}", head.status);
        return Err(Broken.because(words));
    }
    let body = Limited::new(body, MAX_ANSWER).collect().await;
    let body = body.map_err(|error| NoAnswer.because(format!("broke off its answer: {error}")))?;
    // A call that fails at once has its status in the headers.
    let trailers = body.trailers().unwrap_or(&head.headers);
    let header = |name: &str| {
        let value = trailers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    };
    let (code, message) = (header("grpc-status"), header("grpc-message"));
    if code != "0" {
        return Err(NotReady.because(match code {
            "5" => "does not know this service (gRPC status NOT_FOUND)".to_owned(),
            "12" => "has no health service (gRPC status UNIMPLEMENTED)".to_owned(),
            "" => "answered without a gRPC status".to_owned(),
            code => format!("refused with gRPC status {code} {message}"),
        }));
    }
    match status(&body.to_bytes()) {
        Some(1) => Ok("answered SERVING".to_owned()),
        Some(2) => Err(NotReady.because("answered NOT_SERVING")),
        Some(_) => Err(NotReady.because("answered UNKNOWN")),
        None => Err(Broken.because("answered something else than a health status")),
    }
}

/// A `HealthCheckRequest` in its frame: one byte for no compression, then the length.
fn request(service: &str) -> Vec<u8> {
    let mut message = vec![SERVICE];
    let mut length = service.len();
    while length >= 0x80 {
        message.push(length.to_le_bytes()[0] | 0x80);
        length >>= 7;
    }
    message.push(length.to_le_bytes()[0]);
    message.extend_from_slice(service.as_bytes());
    let length = u32::try_from(message.len()).expect("an endpoint is shorter than 4 GiB");
    [&[0], &length.to_be_bytes()[..], &message].concat()
}

/// The status in a framed `HealthCheckResponse`; a missing status is 0, `UNKNOWN`.
fn status(frame: &[u8]) -> Option<u8> {
    let (head, message) = frame.split_at_checked(5)?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    if head[0] != 0 || usize::try_from(length) != Ok(message.len()) {
        return None;
    }
    match message {
        [] => Some(0),
        [STATUS, status @ 0..=3] => Some(*status),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_framed_as_the_protocol_says() {
        assert_eq!(request(""), [0, 0, 0, 0, 2, 0x0a, 0]);
        assert_eq!(request("a.B"), [0, 0, 0, 0, 5, 0x0a, 3, b'a', b'.', b'B']);
        // A length of 200 takes two bytes: 0b1100_1000.
        let long = request(&"x".repeat(200));
        assert_eq!(long[..8], [0, 0, 0, 0, 203, 0x0a, 0xc8, 0x01]);
        assert_eq!(long.len(), 5 + 203);
    }

    #[test]
    fn only_a_whole_answer_has_a_status() {
        for (frame, expected) in [
            (&[0, 0, 0, 0, 2, 8, 1][..], Some(1)),
            (&[0, 0, 0, 0, 2, 8, 2], Some(2)),
            (&[0, 0, 0, 0, 0], Some(0)),
            (&[], None),
            (&[0, 0, 0, 0, 2, 8], None),
            (&[1, 0, 0, 0, 2, 8, 1], None),
            (&[0, 0, 0, 0, 2, 8, 200], None),
            (&[0, 0, 0, 0, 2, 16, 1], None),
        ] {
            assert_eq!(status(frame), expected, "{frame:?}");
        }
    }
}
