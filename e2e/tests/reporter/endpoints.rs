//! Small servers whose answers a test controls.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use nodegate_tests::server;
pub(crate) use nodegate_tests::server::{Answer, Server, status};
use tokio::net::{TcpListener, UnixListener};

/// Serves HTTP on a Unix socket, always with success.
pub(crate) fn http_on_a_unix_socket(path: &Path) -> Result<()> {
    let listener = UnixListener::bind(path)?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(server::serve(stream, status("200 OK")));
        }
    });
    Ok(())
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
