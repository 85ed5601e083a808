//! A small HTTP server whose answer a test controls.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;

/// The answer to a request.
#[derive(Debug, Clone)]
pub enum Answer {
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
pub struct Server {
    /// Its address.
    pub address: SocketAddr,
    answer: Arc<Mutex<Answer>>,
}

/// An answer with only a status.
pub fn status(line: &str) -> Answer {
    Answer::Http(line.to_owned(), String::new())
}

impl Server {
    /// Starts an HTTP server on a free port.
    pub async fn http(answer: Answer) -> Result<Self> {
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
    pub fn set(&self, answer: Answer) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }

    fn answer(&self) -> Answer {
        let answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        answer.clone()
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// Reads a request, and answers it.
pub async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: Answer) {
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
