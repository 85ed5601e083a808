//! TLS towards an https endpoint.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    WantsVerifier,
};

use crate::reporter::outcome::{CheckFinding, CheckOutcome};
use crate::reporter::settings::{SettingError, Verify};
use crate::serve::tls::provider;

/// TLS settings for the endpoint.
#[derive(Debug)]
pub(super) enum Tls {
    /// The same configuration for every check.
    Fixed(ClientConfig),
    /// Verifies against this file and re-reads it for each check, because it changes when the authority is rotated.
    File(PathBuf),
}

impl Tls {
    /// Fails if there is nothing to verify against.
    pub(super) fn new(verify: &Verify) -> Result<Self, SettingError> {
        let unusable = |problem| SettingError::new("CHECK_CA_FILE", problem);
        match verify {
            Verify::System => {
                let builder = builder().with_native_roots().map_err(|_| {
                    unusable(
                        "is not set, and this system has no certificate authorities of its own (an image without \
                         ca-certificates?); name a PEM file with those that signed the endpoint's certificate"
                            .to_owned(),
                    )
                })?;
                Ok(Self::Fixed(builder.with_no_client_auth()))
            }
            Verify::File(path) => {
                roots_in(path).map_err(unusable)?;
                Ok(Self::File(path.clone()))
            }
            Verify::Nothing => {
                let verifier = Arc::new(Anybody(provider()));
                let builder = builder().dangerous();
                let builder = builder.with_custom_certificate_verifier(verifier);
                Ok(Self::Fixed(builder.with_no_client_auth()))
            }
        }
    }

    pub(super) fn connector(&self) -> Result<HttpsConnector<HttpConnector>, CheckOutcome> {
        let config = match self {
            Self::Fixed(config) => config.clone(),
            Self::File(path) => {
                let roots = roots_in(path).map_err(|problem| {
                    let words = format!("cannot be verified: CHECK_CA_FILE {problem}");
                    CheckFinding::Broken.because(words)
                })?;
                let builder = builder().with_root_certificates(roots);
                builder.with_no_client_auth()
            }
        };
        let connector = HttpsConnectorBuilder::new().with_tls_config(config);
        Ok(connector.https_only().enable_http1().build())
    }
}

/// The certificate authorities in a PEM file. The error text continues a sentence that starts with `CHECK_CA_FILE`.
fn roots_in(path: &Path) -> Result<RootCertStore, String> {
    let unusable = |problem: String| format!("{} cannot be used: {problem}", path.display());
    let pem = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&pem).flatten().collect();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates);
    if roots.is_empty() {
        return Err(unusable("it has no PEM certificate".to_owned()));
    }
    Ok(roots)
}

fn builder() -> ConfigBuilder<ClientConfig, WantsVerifier> {
    ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("ring speaks both TLS 1.2 and 1.3")
}

/// Accepts any certificate whose key the server has. Only for loopback endpoints, where no other machine can answer.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
