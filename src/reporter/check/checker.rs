//! Carries one check out, by whichever way its endpoint asks for.

use std::time::Duration;

use super::super::endpoint::{Check, Endpoint};
use super::super::outcome::{CheckFinding, CheckOutcome};
use super::super::settings::{SettingError, Settings};
use super::tls::Tls;
use super::{command, connect, grpc, http};

/// Checks one endpoint, again and again.
#[derive(Debug)]
pub struct Checker {
    endpoint: Endpoint,
    timeout: Duration,
    tls: Option<Tls>,
}

impl Checker {
    /// A checker for the endpoint of these settings.
    ///
    /// # Errors
    /// When there is nothing to verify an https endpoint against.
    pub fn new(settings: &Settings) -> Result<Self, SettingError> {
        let tls = settings.endpoint.is_tls();
        let tls = tls.then(|| Tls::new(&settings.verify)).transpose()?;
        Ok(Self {
            endpoint: settings.endpoint.clone(),
            timeout: settings.timeout,
            tls,
        })
    }

    /// Makes one check. It ends within the timeout, or a little later where a command has to be killed.
    pub async fn check(&self) -> CheckOutcome {
        let endpoint = &self.endpoint;
        let check = async {
            match &endpoint.check {
                Check::Http(request) => http::check(request, self.tls.as_ref()).await,
                Check::Grpc {
                    target,
                    authority,
                    service,
                } => grpc::check(target, authority, service).await,
                Check::Connect(target) => connect::check(target).await,
                Check::Command { program, arguments } => command::check(program, arguments).await,
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
