//! Small servers whose answers a test controls.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};

/// The answer to a request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// This status line (`200 OK`), further header lines, and body.
    Http(String, String),
    /// These bytes, then the end of the connection.
    Raw(&'static str),
    /// The immediate end of the connection.
    Nothing,
    /// No answer, on a released connection.
    Silence,
}

/// A server whose answer a test can change.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    /// Its address.
    pub address: SocketAddr,
    answer: Arc<Mutex<Answer>>,
}

/// An answer with only a status.
pub(crate) fn status(line: &str) -> Answer {
    Answer::Http(line.to_owned(), String::new())
}

impl Server {
    /// Starts an HTTP server on a free port.
    pub(crate) async fn http(answer: Answer) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let server = Self {
            address: listener.local_addr()?,
            answer: Arc::new(Mutex::new(answer)),
        };
        let answers = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, answers.answer()));
            }
        });
        Ok(server)
    }

    /// Changes the answer.
    pub(crate) fn set(&self, answer: Answer) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }

    fn answer(&self) -> Answer {
        let answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        answer.clone()
    }

    /// The URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// Serves HTTP on a Unix socket, always with success.
pub(crate) fn http_on_a_unix_socket(path: &Path) -> Result<()> {
    let listener = UnixListener::bind(path)?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, status("200 OK")));
        }
    });
    Ok(())
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: Answer) {
    let mut request = Vec::new();
    let mut chunk = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return,
            Ok(read) => request.extend_from_slice(&chunk[..read]),
        }
    }
    // The client may be gone.
    let _ = match answer {
        Answer::Http(head, body) => {
            let length = body.len();
            let text = format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\n\r\n{body}");
            stream.write_all(text.as_bytes()).await
        }
        Answer::Raw(text) => stream.write_all(text.as_bytes()).await,
        Answer::Nothing => Ok(()),
        Answer::Silence => std::future::pending().await,
    };
}

/// Serves the gRPC health protocol with one status for every service: 1 is `SERVING`, 2 `NOT_SERVING`.
pub(crate) async fn grpc(health: u8) -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = service_fn(move |request: Request<Incoming>| {
                let known = request.uri().path() == "/grpc.health.v1.Health/Check";
                std::future::ready(Ok::<_, Infallible>(answer_grpc(known, health)))
            });
            let connection = http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection);
        }
    });
    Ok(address)
}

fn answer_grpc(
    known: bool,
    health: u8,
) -> Response<impl hyper::body::Body<Data = Bytes, Error = Infallible>> {
    let mut trailers = HeaderMap::new();
    let code = if known { "0" } else { "12" };
    trailers.insert("grpc-status", HeaderValue::from_static(code));
    let message = Bytes::from(vec![0, 0, 0, 0, 2, 8, health]);
    let body = Full::new(message).with_trailers(async move { Some(Ok(trailers)) });
    let mut response = Response::new(body);
    let kind = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Writes a script for a reporter to run.
pub(crate) fn script(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n"))?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
        .with_context(|| format!("making {} executable", path.display()))?;
    Ok(path)
}
