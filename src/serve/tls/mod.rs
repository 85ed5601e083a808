//! Serving over TLS with a certificate that can be replaced while serving, and where certificates come from: files
//! that somebody else rotates, a Secret that Nodegate keeps itself, or a self-signed one made on the spot.
//!
//! | file | what it does |
//! |---|---|
//! | `certificate` | a certificate with its key: parsed, and judged as a client would (pure) |
//! | `issue` | makes a CA and a certificate (pure, save for randomness) |
//! | `files` | follows `tls.crt` and `tls.key` in a folder |
//! | `handover` | when another certificate may be served (pure) |
//! | `managed` | follows, makes and renews the webhook's certificate in a Secret, and tells the API server its CA |
//!
//! It does not know what is served, nor to whom; see `serve::server`.

mod certificate;
mod files;
mod handover;
mod issue;
mod managed;

use std::sync::Arc;

use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;

pub use certificate::{CertificateError, ServingCertificate};
pub use files::{CertificateFiles, FilesError};
pub use issue::{Issued, issue};
pub use managed::ManagedCertificate;

/// The certificate to serve with: one that may still be missing, and that may be replaced at any time. Clones share it.
///
/// New connections get the latest certificate; those that stand keep theirs.
#[derive(Debug, Clone)]
pub struct Certificates(Arc<watch::Sender<Result<ServingCertificate, String>>>);

impl Certificates {
    /// No certificate yet, and why. Until there is one, every handshake fails.
    #[must_use]
    pub fn none(why: impl Into<String>) -> Self {
        Self(Arc::new(watch::Sender::new(Err(why.into()))))
    }

    /// Serves with this certificate from now on.
    pub fn replace(&self, certificate: ServingCertificate) {
        self.0.send_modify(|state| *state = Ok(certificate));
    }

    /// Notes why there is no certificate. One that is there stays in use.
    pub fn explain(&self, why: impl Into<String>) {
        let why = why.into();
        self.0.send_if_modified(|state| match state {
            Err(known) if *known != why => {
                *known = why;
                true
            }
            _ => false,
        });
    }

    /// The certificate in use.
    #[must_use]
    pub fn current(&self) -> Option<ServingCertificate> {
        self.0.borrow().as_ref().ok().cloned()
    }

    /// What takes TLS connections with it (1.2 and 1.3, HTTP/1.1).
    pub(super) fn acceptor(self) -> TlsAcceptor {
        let mut config = ServerConfig::builder_with_provider(certificate::provider())
            .with_safe_default_protocol_versions()
            .expect("ring does the cryptography of TLS 1.2 and 1.3")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(self));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }

    /// Follows whether there is a certificate, and why not.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Result<ServingCertificate, String>> {
        self.0.subscribe()
    }
}

impl From<ServingCertificate> for Certificates {
    fn from(certificate: ServingCertificate) -> Self {
        Self(Arc::new(watch::Sender::new(Ok(certificate))))
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current().map(|certificate| certificate.key())
    }
}
