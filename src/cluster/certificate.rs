//! When a certificate ends.

use jiff::Timestamp;
use x509_parser::parse_x509_certificate;

/// The common name of each CA that Nodegate makes.
pub const AUTHORITY: &str = "nodegate-ca";

/// When a certificate (DER) ends, and whether a CA that Nodegate made issued it.
pub fn end(der: &[u8]) -> Option<(Timestamp, bool)> {
    let (_, certificate) = parse_x509_certificate(der).ok()?;
    let end = certificate.validity().not_after.timestamp();
    let mut issuers = certificate.issuer().iter_common_name();
    let is_own = issuers.any(|name| name.as_str().is_ok_and(|name| name == AUTHORITY));
    Some((Timestamp::from_second(end).ok()?, is_own))
}
