//! When a certificate ends: all that is read of one here (X.509, RFC 5280, in DER).

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use crate::serve::tls::AUTHORITY;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// When the last of these certificates (PEM) ends, and whether that is a CA of Nodegate's own, which ends together with the
/// certificate that it was made for. `None` where there is none, or one cannot be read. Of a bundle, the earlier ones are those
/// of earlier rounds.
pub fn last_end(pem: &[u8]) -> Option<(Timestamp, bool)> {
    let ends = CertificateDer::pem_slice_iter(pem).map(|certificate| {
        let certificate = certificate.ok()?;
        let is_own =
            (certificate.windows(AUTHORITY.len())).any(|part| part == AUTHORITY.as_bytes());
        Some((end(&certificate)?, is_own))
    });
    ends.collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// When a certificate ends.
fn end(der: &[u8]) -> Option<Timestamp> {
    let (certificate, _) = take(der, SEQUENCE)?;
    let (mut rest, _) = take(certificate, SEQUENCE)?;
    if rest.first() == Some(&VERSION) {
        rest = element(rest)?.2;
    }
    // The serial number, the algorithm, and the issuer.
    for _ in 0..3 {
        rest = element(rest)?.2;
    }
    let (validity, _) = take(rest, SEQUENCE)?;
    let (_, _, rest) = element(validity)?;
    let (tag, time, _) = element(rest)?;
    let time = std::str::from_utf8(time).ok()?;
    let time = match tag {
        // Two digits of the year: up to 49 it is in this century.
        UTC_TIME if time.get(..2)? < "50" => format!("20{time}"),
        UTC_TIME => format!("19{time}"),
        GENERALIZED_TIME => time.to_owned(),
        _ => return None,
    };
    let time = DateTime::strptime("%Y%m%d%H%M%SZ", time).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// The content of an element with this tag, and what comes after it.
fn take(der: &[u8], expected: u8) -> Option<(&[u8], &[u8])> {
    let (tag, content, rest) = element(der)?;
    (tag == expected).then_some((content, rest))
}

/// An element: its tag, its content, and what comes after it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        let digits = digits.iter().take(5);
        let length = digits.fold(0, |sum, digit| sum << 8 | usize::from(*digit));
        (length, rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_bundle_the_last_one_counts() {
        let ca = |name: &str, year| {
            let mut params = rcgen::CertificateParams::default();
            params.not_after = rcgen::date_time_ymd(year, 2, 3);
            params
                .distinguished_name
                .push(rcgen::DnType::CommonName, name);
            let key = rcgen::KeyPair::generate().unwrap();
            params.self_signed(&key).unwrap().pem()
        };
        let bundle = ca("other", 2029) + &ca(AUTHORITY, 2030) + &ca(AUTHORITY, 2028);
        let expected = "2030-02-03T00:00:00Z".parse().unwrap();
        assert_eq!(last_end(bundle.as_bytes()), Some((expected, true)));
    }

    #[test]
    fn the_end_of_a_certificate_is_read() {
        for (year, expected) in [
            (2030, "2030-02-03T00:00:00Z"),
            (2060, "2060-02-03T00:00:00Z"),
        ] {
            let mut params = rcgen::CertificateParams::new(["a".to_owned()]).unwrap();
            params.not_after = rcgen::date_time_ymd(year, 2, 3);
            let key = rcgen::KeyPair::generate().unwrap();
            let pem = params.self_signed(&key).unwrap().pem();
            assert_eq!(
                last_end(pem.as_bytes()),
                Some((expected.parse().unwrap(), false))
            );
            // Whatever is cut off, nothing is read beyond it.
            let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
            for length in 0..der.len() {
                let _ = end(&der[..length]);
            }
        }
        assert_eq!(last_end(b"nonsense"), None);
    }
}
