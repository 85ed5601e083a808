//! HTTP and HTTPS requests to a process under test. Every status code is an answer, not an error.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use http::Request;
use http::header::AUTHORIZATION;
use kube::client::Body;
use kube::{Client, Config};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The timeout for an answer.
const TIMEOUT: Duration = Duration::from_secs(15);

/// An HTTP client with optional token and CA.
#[derive(Debug, Clone, Default)]
pub struct Fetch {
    token: Option<String>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub text: String,
}

impl Fetch {
    /// A client without a token that trusts any certificate.
    pub fn anonymous() -> Self {
        Self::default()
    }

    pub fn with_token(token: &str) -> Self {
        Self {
            token: Some(token.to_owned()),
        }
    }

    pub async fn get(&self, url: &str) -> Result<Answer> {
        tokio::time::timeout(TIMEOUT, self.ask(url))
            .await
            .with_context(|| format!("{url} did not answer within {TIMEOUT:?}"))?
            .with_context(|| format!("getting {url}"))
    }

    async fn ask(&self, url: &str) -> Result<Answer> {
        let uri: http::Uri = url.parse()?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        // The cluster's client serves as the HTTP client.
        let mut config = Config::new(url[..url.len() - path.len()].parse()?);
        config.accept_invalid_certs = true;
        config.default_retry = false;
        let mut request = Request::get(path);
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let client = Client::try_from(config).context("making a client")?;
        let response = client.send(request.body(Body::empty())?).await?;
        let status = response.status().as_u16();
        let bytes = response.into_body().collect_bytes().await?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Answer { status, text })
    }
}

/// Sends one plain HTTP GET request without building a client; returns the status code and the body.
pub async fn get(address: SocketAddr, path: &str) -> Result<(u16, String)> {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        // HTTP/1.0: the answer is unchunked and ends with the connection.
        let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        anyhow::Ok(answer)
    };
    let answer = tokio::time::timeout(Duration::from_secs(5), exchange)
        .await
        .with_context(|| format!("{path} did not answer in time"))??;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .with_context(|| format!("{path} answered something else than HTTP"))?;
    let status = head
        .split_whitespace()
        .nth(1)
        .and_then(|code| code.parse().ok())
        .with_context(|| format!("{path} answered without a status"))?;
    Ok((status, body.to_owned()))
}
