//! Clients that keep a server waiting, and reconnect when it closes the connection.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use testkit::nodegate::fixtures::rule;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// How soon a client reconnects.
const PAUSE: Duration = Duration::from_secs(2);
/// Other addresses than the API server's.
pub(crate) const ELSEWHERE: IpAddr = elsewhere(0);
pub(crate) const MANY: [IpAddr; 8] = [
    elsewhere(0),
    elsewhere(1),
    elsewhere(2),
    elsewhere(3),
    elsewhere(4),
    elsewhere(5),
    elsewhere(6),
    elsewhere(7),
];

const fn elsewhere(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2 + number))
}
/// What a client sends of its body: half of what it announces.
static HALF: [u8; 2 << 20] = [b' '; 2 << 20];

/// Where a client stops.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stops {
    /// In the middle of its first TLS record.
    Handshake,
    /// In the middle of a header.
    Head,
    /// In the middle of the body.
    Body,
}

/// A TLS server, and its CA.
#[derive(Clone)]
pub(crate) struct Target {
    address: SocketAddr,
    connector: TlsConnector,
    path: &'static str,
}

/// A complete review of almost the largest accepted size. Decoded into values, it would be many times that.
pub(crate) fn swelling_review(field: &str) -> Vec<u8> {
    let filler = format!("[{}0]", "[],".repeat(1_390_000));
    format!(
        r#"{{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {{"uid": "1", "name": "r",
        "kind": {{"group": "g", "version": "v", "kind": "K"}}, "operation": "CREATE", "userInfo": {{}},
        "resource": {{"group": "g", "version": "v", "resource": "ks"}},
        "object": {{"apiVersion": "g/v", "kind": "K", "{field}": {filler}}}}}}}"#
    )
    .into_bytes()
}

/// A review of a rule that waits for this many `DaemonSet`s.
pub(crate) fn asking_review(conditions: usize) -> Vec<u8> {
    let conditions: Vec<_> = (0..conditions)
        .map(|number| json!({"type": format!("daemonset.nodegate.dev/a.b{number}"), "requiredStatus": "True"}))
        .collect();
    let rule = rule("r", "readiness.k8s.io/r").spec("conditions", json!(conditions));
    let what = |name: &str, value: &str| json!({"group": "readiness.node.x-k8s.io", "version": "v1alpha1", name: value});
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1",
        "name": "r",
        "operation": "CREATE",
        "userInfo": {},
        "kind": what("kind", "NodeReadinessRule"),
        "resource": what("resource", "nodereadinessrules"),
        "object": rule.selects("a", "b").build(),
    }});
    review.to_string().into_bytes()
}

/// Clients that run until dropped.
pub(crate) struct Crowd {
    _clients: JoinSet<()>,
    connected: Arc<AtomicUsize>,
}

impl Target {
    pub(crate) fn new(port: u16, path: &'static str, ca: &str) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca.as_bytes())?)?;
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            address: (Ipv4Addr::LOCALHOST, port).into(),
            connector: TlsConnector::from(Arc::new(config)),
            path,
        })
    }

    async fn connect(&self, from: IpAddr) -> Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        Ok(socket.connect(self.address).await?)
    }

    async fn connect_tls(&self, from: IpAddr) -> Result<TlsStream<TcpStream>> {
        let stream = self.connect(from).await?;
        let name = ServerName::IpAddress(IpAddr::from(Ipv4Addr::LOCALHOST).into());
        Ok(self.connector.connect(name, stream).await?)
    }

    /// Connects, sends up to the stop, and waits for the server to close the connection.
    async fn dawdle(&self, from: IpAddr, stops: Stops, connected: &AtomicUsize) -> Result<()> {
        let path = self.path;
        let wait = async |stream: &mut (dyn tokio::io::AsyncRead + Unpin + Send)| {
            connected.fetch_add(1, Ordering::Relaxed);
            let _ = stream.read(&mut [0; 16]).await;
            connected.fetch_sub(1, Ordering::Relaxed);
        };
        if let Stops::Handshake = stops {
            let mut stream = self.connect(from).await?;
            stream.write_all(&[0x16, 3, 1, 2, 0, 1]).await?;
            wait(&mut stream).await;
            return Ok(());
        }
        let mut stream = self.connect_tls(from).await?;
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n");
        stream.write_all(head.as_bytes()).await?;
        if let Stops::Body = stops {
            let length = 2 * HALF.len();
            let rest = format!("Content-Length: {length}\r\n\r\n");
            stream.write_all(rest.as_bytes()).await?;
            stream.write_all(&HALF).await?;
        }
        stream.flush().await?;
        wait(&mut stream).await;
        Ok(())
    }

    /// Sends a whole request from an address; returns the status of the answer.
    pub(crate) async fn post(&self, from: IpAddr, body: &[u8]) -> Result<String> {
        let header = format!("Content-Length: {}", body.len());
        self.send(from, "POST", &header, body).await
    }

    /// Requests the path with a token, from an address; returns the status of the answer.
    pub(crate) async fn ask(&self, from: IpAddr, token: &str) -> Result<String> {
        let header = format!("Authorization: Bearer {token}");
        self.send(from, "GET", &header, b"").await
    }

    async fn send(&self, from: IpAddr, verb: &str, header: &str, body: &[u8]) -> Result<String> {
        let mut stream = self.connect_tls(from).await?;
        let path = self.path;
        let head = format!(
            "{verb} {path} HTTP/1.1\r\nHost: localhost\r\n{header}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body).await?;
        stream.flush().await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let status = answer.split_whitespace().nth(1);
        Ok(status.context("no status")?.to_owned())
    }
}

impl Crowd {
    /// Starts this many clients of each kind, spread over these addresses.
    pub(crate) fn gather(addresses: &[IpAddr], kinds: &[(&Target, Stops, usize)]) -> Self {
        let mut clients = JoinSet::new();
        let connected = Arc::new(AtomicUsize::new(0));
        for (target, stops, number) in kinds {
            for from in addresses.iter().copied().cycle().take(*number) {
                let (target, stops, connected) = ((*target).clone(), *stops, connected.clone());
                clients.spawn(async move {
                    loop {
                        // It reconnects whatever ended it.
                        let _ = target.dawdle(from, stops, &connected).await;
                        tokio::time::sleep(PAUSE).await;
                    }
                });
            }
        }
        Self {
            _clients: clients,
            connected,
        }
    }

    /// How many have sent their part, and wait.
    pub(crate) fn connected(&self) -> usize {
        self.connected.load(Ordering::Relaxed)
    }
}
