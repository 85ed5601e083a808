//! Makes one check of the configured endpoint and reports its outcome. The callers decide when to check, and what follows.

pub(super) mod command;
mod connect;
mod grpc;
mod http;
mod tls;

use std::time::Duration;

use super::endpoint::{Endpoint, EndpointCheck};
use super::outcome::{CheckFinding, CheckOutcome};
use super::settings::{ReporterSettings, SettingError};
pub(super) use connect::USER_AGENT;
use tls::Tls;

#[derive(Debug)]
pub(super) struct Checker {
    endpoint: Endpoint,
    timeout: Duration,
    tls: Option<Tls>,
}

impl Checker {
    /// A checker for these settings. An https endpoint needs authorities to verify it.
    pub(super) fn new(settings: &ReporterSettings) -> Result<Self, SettingError> {
        let tls = settings.endpoint.is_tls();
        let tls = tls.then(|| Tls::new(&settings.verify)).transpose()?;
        Ok(Self {
            endpoint: settings.endpoint.clone(),
            timeout: settings.timeout,
            tls,
        })
    }

    /// Makes one check. It ends within the timeout, or slightly later if a command must be killed.
    pub(super) async fn check(&self) -> CheckOutcome {
        let endpoint = &self.endpoint;
        let check = async {
            match &endpoint.check {
                EndpointCheck::Http(request) => http::check(request, self.tls.as_ref()).await,
                EndpointCheck::Grpc {
                    target,
                    authority,
                    service,
                } => grpc::check(target, authority, service).await,
                EndpointCheck::Connect(target) => connect::check(target).await,
                EndpointCheck::Command { program, arguments } => {
                    command::check(program, arguments).await
                }
            }
        };
        let (finding, words) = match tokio::time::timeout(self.timeout, check).await {
            Ok(Ok(words)) => (CheckFinding::Ok, words),
            Ok(Err(failure)) => (failure.finding, failure.words),
            Err(_) => (
                CheckFinding::NoAnswer,
                format!("did not answer within {:?}", self.timeout),
            ),
        };
        CheckOutcome::new(finding, &format!("{endpoint} {words}"))
    }
}
