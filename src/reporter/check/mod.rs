//! Makes one check of the configured endpoint and reports its outcome. The callers decide when to check, and what follows.

pub(super) mod command;
mod connect;
mod grpc;
mod http;
mod tls;

use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::net::{TcpStream, UnixStream};

use super::endpoint::EndpointCheck;
use super::outcome::{CheckFinding, CheckOutcome};
use super::settings::{ReporterSettings, SettingError, Verify};

#[derive(Debug)]
pub(super) struct Checker<'a> {
    settings: &'a ReporterSettings,
    tls: Option<HttpsConnector<HttpConnector>>,
}

impl<'a> Checker<'a> {
    /// A checker for these settings. An https endpoint needs authorities to verify it.
    pub(super) fn new(settings: &'a ReporterSettings) -> Result<Self, SettingError> {
        let tls = settings.endpoint.is_tls();
        let tls = tls.then(|| tls::connector(&settings.verify)).transpose()?;
        Ok(Self { settings, tls })
    }

    /// Makes one check. It ends within the timeout, or slightly later if a command must be killed.
    pub(super) async fn check(&self) -> CheckOutcome {
        let ReporterSettings {
            endpoint, timeout, ..
        } = self.settings;
        let check = async {
            match &endpoint.check {
                EndpointCheck::Http { uri, socket } => match (socket, &self.tls) {
                    (Some(socket), _) => http::check(connect::through(socket), uri).await,
                    (None, Some(tls)) => http::check(self.current(tls)?, uri).await,
                    (None, None) => http::check(HttpConnector::new(), uri).await,
                },
                EndpointCheck::Grpc { authority, service } => grpc::check(authority, service).await,
                EndpointCheck::Tcp(address) => connect::accepted(TcpStream::connect(address).await),
                EndpointCheck::Unix(socket) => connect::accepted(UnixStream::connect(socket).await),
                EndpointCheck::Command { program, arguments } => {
                    command::check(program, arguments).await
                }
            }
        };
        let outcome = match tokio::time::timeout(*timeout, check).await {
            Ok(Ok(words)) => CheckFinding::Ok.because(words),
            Ok(Err(outcome)) => outcome,
            Err(_) => {
                let words = format!("did not answer within {timeout:?}");
                CheckFinding::NoAnswer.because(words)
            }
        };
        outcome.of(endpoint)
    }

    /// TLS with the authorities of now: the file changes when they are rotated.
    fn current(
        &self,
        tls: &HttpsConnector<HttpConnector>,
    ) -> Result<HttpsConnector<HttpConnector>, CheckOutcome> {
        let verify = &self.settings.verify;
        if !matches!(verify, Verify::File(_)) {
            return Ok(tls.clone());
        }
        let unverifiable = |error| format!("cannot be verified: {error}");
        tls::connector(verify).map_err(|it| CheckFinding::Broken.because(unverifiable(it)))
    }
}
