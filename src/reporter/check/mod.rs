//! Carries one check out and says what it found. When checks are made and what follows is not known here.

mod command;
mod connect;
mod grpc;
mod http;
pub mod orphans;
mod tls;

use std::convert::Infallible;
use std::time::Duration;

use super::endpoint::{Check, Endpoint};
use super::outcome::{Finding, Outcome};
use super::settings::{SettingError, Settings};
use tls::Tls;

/// How the reporter calls itself, towards what it checks and towards the API server.
pub const USER_AGENT: &str = concat!("nodegate-reporter/", env!("CARGO_PKG_VERSION"));

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
    pub async fn check(&self) -> Outcome {
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
            Ok(Ok(words)) => (Finding::Ok, words),
            Ok(Err(failure)) => (failure.finding, failure.words),
            Err(_) => (
                Finding::NoAnswer,
                format!("did not answer within {:?}", self.timeout),
            ),
        };
        Outcome::new(finding, &format!("{endpoint} {words}"))
    }
}

/// Why a check is not good.
#[derive(Debug)]
struct Failure {
    finding: Finding,
    /// The rest of a sentence that starts with the endpoint.
    words: String,
}

impl Failure {
    fn not_ready(words: impl Into<String>) -> Self {
        Self::new(Finding::NotReady, words)
    }

    fn no_answer(words: impl Into<String>) -> Self {
        Self::new(Finding::NoAnswer, words)
    }

    fn broken(words: impl Into<String>) -> Self {
        Self::new(Finding::Broken, words)
    }

    fn new(finding: Finding, words: impl Into<String>) -> Self {
        Self {
            finding,
            words: words.into(),
        }
    }
}

/// Runs an exchange over a connection, which has to be driven beside it.
async fn drive<T>(
    exchange: impl Future<Output = T>,
    connection: impl Future<Output = hyper::Result<()>>,
) -> T {
    let driver = async {
        // What goes wrong with the connection is told to the exchange too.
        let _ = connection.await;
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        result = exchange => result,
        never = driver => match never {},
    }
}
