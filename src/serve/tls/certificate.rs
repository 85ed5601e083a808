//! A certificate chain with its private key: read, verified as a client would, or issued.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use nodegate_cluster::certificate::{AUTHORITY, end};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{Error, RootCertStore};

/// The keys of a Secret with a certificate, and its files.
pub(super) const CHAIN: &str = "tls.crt";
pub(super) const KEY: &str = "tls.key";

/// How far back validity begins, for clients whose clocks run slow.
const CLOCK_SKEW: Duration = Duration::from_secs(3600);

/// A certificate chain with the private key of its first certificate, both PEM.
#[derive(Clone)]
pub struct ServingCertificate {
    /// The CA that clients trust, and the one before (PEM); empty where others see to that.
    pub(super) ca: String,
    pub(super) chain: Vec<u8>,
    pub(super) key: Vec<u8>,
    pub(super) certified: Arc<CertifiedKey>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    #[error("the certificate cannot be used: {0}")]
    Chain(String),
    #[error("the private key cannot be used: {0}")]
    Key(String),
    #[error("the private key does not belong to the certificate")]
    Mismatch,
    #[error("cannot make a certificate: {0}")]
    Issue(String),
}

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

impl ServingCertificate {
    /// Reads a PEM chain and a PEM key. The chain begins with the server's own certificate.
    pub(super) fn from_pem(
        ca: String,
        chain: Vec<u8>,
        key: Vec<u8>,
    ) -> Result<Self, CertificateError> {
        let parsed = certificates(&chain).map_err(CertificateError::Chain)?;
        let parsed_key = PrivateKeyDer::from_pem_slice(&key)
            .map_err(|error| CertificateError::Key(in_words(&error, "PEM private key")))?;
        let certified = CertifiedKey::from_der(parsed, parsed_key, &provider());
        let certified = certified.map_err(|error| match error {
            Error::InconsistentKeys(_) => CertificateError::Mismatch,
            Error::InvalidCertificate(error) => CertificateError::Chain(error.to_string()),
            error => CertificateError::Key(error.to_string()),
        })?;
        Ok(Self {
            ca,
            chain,
            key,
            certified: Arc::new(certified),
        })
    }

    /// Whether a client that trusts only its CA would accept this certificate at this time under each of these names.
    pub(super) fn is_good_for(&self, names: &[String], at: Timestamp) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates(self.ca.as_bytes()).unwrap_or_default());
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider());
        let (Ok(verifier), Some((own, intermediates))) =
            (verifier.build(), self.certified.cert.split_first())
        else {
            return false;
        };
        let seconds = u64::try_from(at.as_second()).unwrap_or_default();
        let at = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        names.iter().all(|name| {
            ServerName::try_from(name.as_str()).is_ok_and(|name| {
                let verified = verifier.verify_server_cert(own, intermediates, &name, &[], at);
                verified.is_ok()
            })
        })
    }

    /// Whether the certificate has expired at this time, whatever a client trusts.
    pub(crate) fn has_expired(&self, at: Timestamp) -> bool {
        let own = self.certified.cert.first().and_then(|own| end(own));
        own.is_some_and(|(end, _)| end < at)
    }
}

/// Certificates are equal when their chains are: a certificate names its key.
impl PartialEq for ServingCertificate {
    fn eq(&self, other: &Self) -> bool {
        self.certified.cert == other.certified.cert
    }
}

/// Leaves out the private key.
impl fmt::Debug for ServingCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServingCertificate").finish_non_exhaustive()
    }
}

/// The certificates of a PEM text, of which there must be at least one.
pub fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(in_words(&pem::Error::NoItemsFound, "PEM certificate")),
        Err(error) => Err(in_words(&error, "PEM certificate")),
    }
}

fn in_words(error: &pem::Error, expected: &str) -> String {
    match error {
        pem::Error::NoItemsFound => format!("it has no {expected}"),
        error => format!("it is not a {expected} ({error})"),
    }
}

/// Makes a CA, and a server certificate under it for these DNS names and IP addresses. The CA key is discarded: it signs no more.
pub fn issue(
    names: &[String],
    now: Timestamp,
    lifetime: Duration,
) -> Result<ServingCertificate, CertificateError> {
    let failed = |error: rcgen::Error| CertificateError::Issue(error.to_string());
    let mut server = CertificateParams::new(names).map_err(failed)?;
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.use_authority_key_identifier_extension = true;
    set_validity(&mut server, "nodegate", now, lifetime);

    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    set_validity(&mut authority, AUTHORITY, now, lifetime);

    let authority_key = KeyPair::generate().map_err(failed)?;
    let key = KeyPair::generate().map_err(failed)?;
    let ca = authority.self_signed(&authority_key).map_err(failed)?;
    let issuer = Issuer::new(authority, authority_key);
    let chain = server.signed_by(&key, &issuer).map_err(failed)?;
    let (chain, key) = (chain.pem().into_bytes(), key.serialize_pem().into_bytes());
    ServingCertificate::from_pem(ca.pem(), chain, key)
}

fn set_validity(params: &mut CertificateParams, name: &str, now: Timestamp, lifetime: Duration) {
    let since_epoch = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or_default());
    let now = rcgen::date_time_ymd(1970, 1, 1) + since_epoch;
    params.not_before = now - CLOCK_SKEW;
    params.not_after = now + lifetime;
    params.distinguished_name.push(DnType::CommonName, name);
}

#[cfg(test)]
mod tests {
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
        let another = issue(&names(&["a.example"]), now(), 30 * DAY).unwrap();
        let both = format!("{}{}", another.ca, issued.ca);
        #[rustfmt::skip]
        let cases = [
            ("at once", &issued.ca, &["a.example"][..], now(), true),
            ("an address", &issued.ca, &["127.0.0.1"], now(), true),
            ("every name", &issued.ca, &["a.example", "127.0.0.1"], now(), true),
            ("another name", &issued.ca, &["a.example", "b.example"], now(), false),
            ("another CA", &another.ca, &["a.example"], now(), false),
            ("two CAs", &both, &["a.example"], now(), true),
            ("no CA", &String::new(), &["a.example"], now(), false),
            ("the last day", &issued.ca, &["a.example"], now() + 29 * DAY, true),
            ("the day after", &issued.ca, &["a.example"], now() + 31 * DAY, false),
            ("long before", &issued.ca, &["a.example"], now() - DAY, false),
        ];
        for (what, ca, asked, at, expected) in cases {
            let certificate = ServingCertificate {
                ca: ca.clone(),
                ..issued.clone()
            };
            let good = certificate.is_good_for(&names(asked), at);
            assert_eq!(good, expected, "{what}");
        }
    }

    #[test]
    fn a_certificate_that_has_expired_is_told_from_one_of_a_stranger() {
        let certificate = issue(&names(&["a.example"]), now(), 30 * DAY).unwrap();
        for (days, expected) in [(0, false), (29, false), (31, true)] {
            assert_eq!(
                certificate.has_expired(now() + days * DAY),
                expected,
                "{days}"
            );
        }
    }

    #[test]
    fn an_unusable_certificate_is_refused_with_the_reason() {
        let one = issue(&names(&["a.example"]), now(), DAY).unwrap();
        let broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
        #[rustfmt::skip]
        let cases = [
            (broken.as_bytes(), &one.key[..], "the certificate cannot be used: it is not a PEM certificate ("),
            (&one.chain, &one.chain, "the private key cannot be used: it has no PEM private key"),
        ];
        for (chain, key, expected) in cases {
            let made = ServingCertificate::from_pem(String::new(), chain.into(), key.into());
            let error = made.unwrap_err();
            assert!(
                error.to_string().starts_with(expected),
                "{error}\n{expected}"
            );
        }
    }

    #[test]
    fn a_name_that_no_certificate_can_have_is_an_error() {
        assert!(issue(&names(&["localhost"]), now(), DAY).is_ok());
        assert!(issue(&names(&["ä"]), now(), DAY).is_err());
    }
}
