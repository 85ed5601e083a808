//! Makes a CA and one certificate under it. The CA's key is forgotten at once, so nothing else will ever be signed with
//! it: whoever needs another certificate makes another CA.

use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use super::certificate::{CertificateError, ServingCertificate};

/// The name of each CA that is made here.
pub const AUTHORITY: &str = "nodegate-ca";

/// How far back validity begins, for clients whose clocks are behind.
const CLOCK_SKEW: Duration = Duration::from_secs(3600);

/// How long a certificate that was made on the spot is valid. It lives no longer than the process.
const SELF_SIGNED_LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// A certificate, its key and its CA, all PEM.
#[derive(Clone)]
pub struct Issued {
    /// The CA's certificate.
    pub ca: String,
    /// The server's certificate.
    pub chain: String,
    /// The server's private key.
    pub key: String,
}

impl Issued {
    /// The certificate, ready for use.
    ///
    /// # Errors
    /// Never for what [`issue`] made.
    pub fn certificate(&self) -> Result<ServingCertificate, CertificateError> {
        ServingCertificate::from_pem(self.chain.as_bytes(), self.key.as_bytes())
    }
}

impl ServingCertificate {
    /// Makes a certificate for these DNS names and IP addresses that nobody but this process knows.
    ///
    /// # Errors
    /// When a name is not one that a certificate can have.
    pub fn self_signed(names: &[String], now: Timestamp) -> Result<Self, CertificateError> {
        issue(names, now, SELF_SIGNED_LIFETIME)?.certificate()
    }
}

/// Makes a CA, and under it a server's certificate for these DNS names and IP addresses.
///
/// # Errors
/// When a name is not one that a certificate can have.
pub fn issue(
    names: &[String],
    now: Timestamp,
    lifetime: Duration,
) -> Result<Issued, CertificateError> {
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
    Ok(Issued {
        ca: ca.pem(),
        chain: chain.pem(),
        key: key.serialize_pem(),
    })
}

fn set_validity(
    params: &mut CertificateParams,
    common_name: &str,
    now: Timestamp,
    lifetime: Duration,
) {
    let since_epoch = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or_default());
    let now = rcgen::date_time_ymd(1970, 1, 1) + since_epoch;
    params.not_before = now - CLOCK_SKEW;
    params.not_after = now + lifetime;
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
}
