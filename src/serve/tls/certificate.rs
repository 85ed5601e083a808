//! A certificate chain with its private key.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{Error, RootCertStore};

/// A certificate chain with the private key of its first certificate.
#[derive(Clone)]
pub struct ServingCertificate(Arc<CertifiedKey>);

/// Why a chain and a key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// The chain is not one.
    #[error("the certificate cannot be used: {0}")]
    Chain(String),
    /// The key is not one.
    #[error("the private key cannot be used: {0}")]
    Key(String),
    /// The key belongs to another certificate.
    #[error("the private key does not belong to the certificate")]
    Mismatch,
    /// No certificate can be made.
    #[error("cannot make a certificate: {0}")]
    Issue(String),
}

/// The cryptography that is used throughout.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

impl ServingCertificate {
    /// Reads a chain and a key, both PEM. The chain begins with the server's own certificate.
    ///
    /// # Errors
    /// When either cannot be read, or they do not belong together.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, CertificateError> {
        let chain = certificates(chain).map_err(CertificateError::Chain)?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| CertificateError::Key(in_words(&error, "PEM private key")))?;
        let certified = CertifiedKey::from_der(chain, key, &provider());
        certified
            .map(|certified| Self(Arc::new(certified)))
            .map_err(|error| match error {
                Error::InconsistentKeys(_) => CertificateError::Mismatch,
                Error::InvalidCertificate(error) => CertificateError::Chain(error.to_string()),
                error => CertificateError::Key(error.to_string()),
            })
    }

    /// Whether a client that trusts only `ca` (PEM) would accept this certificate at this time, under each of these
    /// names.
    #[must_use]
    pub fn is_good_for(&self, ca: &[u8], names: &[String], at: Timestamp) -> bool {
        let Ok(authorities) = certificates(ca) else {
            return false;
        };
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(authorities);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider());
        let (Ok(verifier), Some((own, intermediates))) =
            (verifier.build(), self.0.cert.split_first())
        else {
            return false;
        };
        let at = UnixTime::since_unix_epoch(Duration::from_secs(
            u64::try_from(at.as_second()).unwrap_or_default(),
        ));
        names.iter().all(|name| {
            ServerName::try_from(name.as_str()).is_ok_and(|name| {
                verifier
                    .verify_server_cert(own, intermediates, &name, &[], at)
                    .is_ok()
            })
        })
    }

    pub(super) fn key(&self) -> Arc<CertifiedKey> {
        self.0.clone()
    }
}

/// Two are equal when their chains are: a certificate names its key.
impl PartialEq for ServingCertificate {
    fn eq(&self, other: &Self) -> bool {
        self.0.cert == other.0.cert
    }
}

impl Eq for ServingCertificate {}

/// Says nothing of the key.
impl fmt::Debug for ServingCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServingCertificate").finish_non_exhaustive()
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Ok(certificates) if certificates.is_empty() => {
            Err(in_words(&pem::Error::NoItemsFound, "PEM certificate"))
        }
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(in_words(&error, "PEM certificate")),
    }
}

fn in_words(error: &pem::Error, expected: &str) -> String {
    match error {
        pem::Error::NoItemsFound => format!("it has no {expected}"),
        error => format!("it is not a {expected} ({error})"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::issue::issue;
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    #[test]
    fn a_certificate_is_good_for_its_names_under_its_ca_while_it_is_valid() {
        let issued = issue(&names(&["a.example", "127.0.0.1"]), now(), 30 * DAY).unwrap();
        let certificate = issued.certificate().unwrap();
        let another = issue(&names(&["a.example"]), now(), 30 * DAY).unwrap();
        let both = format!("{}{}", another.ca, issued.ca);
        for (what, ca, asked, at, expected) in [
            ("at once", &issued.ca, &["a.example"][..], now(), true),
            ("an address", &issued.ca, &["127.0.0.1"], now(), true),
            (
                "every name",
                &issued.ca,
                &["a.example", "127.0.0.1"],
                now(),
                true,
            ),
            (
                "another name",
                &issued.ca,
                &["a.example", "b.example"],
                now(),
                false,
            ),
            ("another CA", &another.ca, &["a.example"], now(), false),
            ("two CAs", &both, &["a.example"], now(), true),
            ("no CA", &String::new(), &["a.example"], now(), false),
            (
                "the last day",
                &issued.ca,
                &["a.example"],
                now() + 29 * DAY,
                true,
            ),
            (
                "the day after",
                &issued.ca,
                &["a.example"],
                now() + 31 * DAY,
                false,
            ),
            (
                "long before",
                &issued.ca,
                &["a.example"],
                now() - DAY,
                false,
            ),
        ] {
            let good = certificate.is_good_for(ca.as_bytes(), &names(asked), at);
            assert_eq!(good, expected, "{what}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_told() {
        let one = issue(&names(&["a.example"]), now(), DAY).unwrap();
        let other = issue(&names(&["a.example"]), now(), DAY).unwrap();
        let broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
        for (chain, key, expected) in [
            (
                "",
                one.key.as_str(),
                "the certificate cannot be used: it has no PEM certificate",
            ),
            (
                broken,
                &one.key,
                "the certificate cannot be used: it is not a PEM certificate (",
            ),
            (
                &one.chain,
                "",
                "the private key cannot be used: it has no PEM private key",
            ),
            (
                &one.chain,
                &one.chain,
                "the private key cannot be used: it has no PEM private key",
            ),
            (
                &one.chain,
                &other.key,
                "the private key does not belong to the certificate",
            ),
        ] {
            let error = ServingCertificate::from_pem(chain.as_bytes(), key.as_bytes()).unwrap_err();
            assert!(
                error.to_string().starts_with(expected),
                "{error}\n{expected}"
            );
        }
    }

    #[test]
    fn a_self_signed_certificate_can_be_served() {
        assert!(ServingCertificate::self_signed(&names(&["localhost"]), now()).is_ok());
        assert!(ServingCertificate::self_signed(&names(&["ä"]), now()).is_err());
    }
}
