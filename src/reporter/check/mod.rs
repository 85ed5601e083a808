//! Makes one check of the configured endpoint and reports its outcome. The callers decide when to check, and what follows.

pub(super) mod command;
mod connect;
mod grpc;
mod http;
pub(super) mod tls;

use hyper_util::client::legacy::connect::HttpConnector;
use tokio::net::{TcpStream, UnixStream};

use super::endpoint::EndpointCheck;
use super::outcome::{CheckFinding, CheckOutcome};
use super::settings::ReporterSettings;

/// Makes one check. It ends within the timeout, or slightly later if a command must be killed.
pub(super) async fn check(settings: &ReporterSettings) -> CheckOutcome {
    let (endpoint, timeout) = (&settings.endpoint, settings.timeout);
    let check = async {
        match &endpoint.check {
            EndpointCheck::Http { uri, socket } => match socket {
                Some(socket) => http::check(connect::through(socket), uri).await,
                None if endpoint.is_tls() => {
                    // With the authorities of now: the file changes when they are rotated.
                    let tls = tls::connector(&settings.verify).map_err(|error| {
                        CheckFinding::Broken.because(format!("cannot be verified: {error}"))
                    });
                    http::check(tls?, uri).await
                }
                None => http::check(HttpConnector::new(), uri).await,
            },
            EndpointCheck::Grpc { authority, service } => grpc::check(authority, service).await,
            EndpointCheck::Tcp(address) => connect::accepted(TcpStream::connect(address).await),
            EndpointCheck::Unix(socket) => connect::accepted(UnixStream::connect(socket).await),
            EndpointCheck::Command { program, arguments } => {
                command::check(program, arguments).await
            }
        }
    };
    let outcome = match tokio::time::timeout(timeout, check).await {
        Ok(Ok(words)) => CheckFinding::Ok.because(words),
        Ok(Err(outcome)) => outcome,
        Err(_) => CheckFinding::NoAnswer.because(format!("did not answer within {timeout:?}")),
    };
    outcome.of(endpoint)
}
