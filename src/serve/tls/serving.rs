//! The TLS acceptor's inputs: a certificate that can be replaced while serving, and the authorities of clients.

use std::fmt::Display;
use std::sync::{Arc, Mutex};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::super::lock;
use super::certificate::{CertificateError, ServingCertificate, certificates, provider};

/// A certificate that may be missing or change at any time: new connections get the latest, open ones keep theirs. Clones share it.
#[derive(Debug, Clone)]
pub struct Certificates(Arc<Mutex<Result<ServingCertificate, String>>>);

impl Certificates {
    /// A certificate, or why there is none yet. Until there is one, every handshake fails.
    pub(crate) fn new(state: Result<ServingCertificate, String>) -> Self {
        Self(Arc::new(Mutex::new(state)))
    }

    pub(crate) fn set(&self, state: Result<ServingCertificate, String>) {
        *lock(&self.0) = state;
    }

    /// Records why there is no certificate, unless there is one.
    pub(crate) fn explain(&self, why: String) {
        if self.current().is_none() {
            self.set(Err(why));
        }
    }

    pub(crate) fn current(&self) -> Option<ServingCertificate> {
        lock(&self.0).as_ref().ok().cloned()
    }

    /// Accepts TLS 1.2 and 1.3 for HTTP/1.1. With `clients`, a client must show a certificate from these authorities.
    pub fn acceptor(self, clients: Option<ClientAuthorities>) -> TlsAcceptor {
        let verifier = clients.unwrap_or_else(WebPkiClientVerifier::no_client_auth);
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("ring does the cryptography of TLS 1.2 and 1.3")
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(self));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }

    pub fn problem(&self) -> Option<String> {
        lock(&self.0).as_ref().err().cloned()
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current().map(|certificate| certificate.certified)
    }
}

/// The authorities that sign clients' certificates.
pub(crate) type ClientAuthorities = Arc<dyn ClientCertVerifier>;

/// Reads PEM certificates, of which there must be at least one.
pub(super) fn authorities(pem: &[u8]) -> Result<ClientAuthorities, CertificateError> {
    let problem = |error: &dyn Display| CertificateError::Chain(error.to_string());
    let mut roots = RootCertStore::empty();
    for authority in certificates(pem).map_err(CertificateError::Chain)? {
        roots.add(authority).map_err(|error| problem(&error))?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider());
    verifier.build().map_err(|error| problem(&error))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use rcgen::{
        BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    };
    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::ClientConfig;
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};

    use super::super::certificate::issue;
    use super::*;

    #[test]
    fn a_certificate_that_is_there_stays_unless_it_is_withdrawn() {
        let lifetime = std::time::Duration::from_secs(3600);
        let made = issue(&["localhost".into()], Timestamp::now(), lifetime);
        let certificates = Certificates::new(Err("not yet".into()));
        let why = || certificates.problem();
        certificates.explain("still not".into());
        assert_eq!(why().as_deref(), Some("still not"));
        certificates.set(Ok(made.unwrap()));
        certificates.explain("not read".into());
        assert_eq!(why(), None);
        certificates.set(Err("expired".into()));
        assert_eq!(why().as_deref(), Some("expired"));
        assert_eq!(certificates.current(), None);
    }

    /// A CA, and a client certificate with its key from that CA.
    fn authority() -> (String, CertificateDer<'static>, PrivateKeyDer<'static>) {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let its_key = KeyPair::generate().unwrap();
        let ca = authority.self_signed(&its_key).unwrap().pem();
        let mut client = CertificateParams::default();
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let signed = client
            .signed_by(&key, &Issuer::new(authority, its_key))
            .unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        (ca, signed.der().clone(), key)
    }

    #[tokio::test]
    async fn only_clients_with_a_certificate_of_the_authorities_are_accepted() {
        let (ca, certificate, key) = authority();
        let (_, strange, its_key) = authority();
        let clients = authorities(ca.as_bytes());
        assert!(authorities(b"").is_err());

        let lifetime = std::time::Duration::from_secs(3600);
        let issued = issue(&["localhost".into()], Timestamp::now(), lifetime).unwrap();
        let acceptor = Certificates::new(Ok(issued.clone())).acceptor(Some(clients.unwrap()));
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(issued.ca.as_bytes()).unwrap())
            .unwrap();
        for (name, shown, expected) in [
            ("its own", Some((certificate, key)), true),
            ("another authority's", Some((strange, its_key)), false),
            ("none", None, false),
        ] {
            let config = ClientConfig::builder_with_provider(provider())
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots.clone());
            let config = match shown {
                Some((certificate, key)) => config
                    .with_client_auth_cert(vec![certificate], key)
                    .unwrap(),
                None => config.with_no_client_auth(),
            };
            let (here, there) = tokio::io::duplex(1 << 16);
            let host = ServerName::try_from("localhost").unwrap();
            let connector = TlsConnector::from(Arc::new(config));
            let (_, accepted) = tokio::join!(connector.connect(host, here), acceptor.accept(there));
            assert_eq!(accepted.is_ok(), expected, "{name}");
        }
    }
}
