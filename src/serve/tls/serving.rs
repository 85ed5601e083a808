//! The certificate that is served with, replaced while serving.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;

use super::certificate::{ServingCertificate, provider};

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
    pub(in crate::serve) fn acceptor(self) -> TlsAcceptor {
        let mut config = ServerConfig::builder_with_provider(provider())
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
