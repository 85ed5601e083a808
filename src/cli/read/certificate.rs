//! When a certificate ends: all that is read of one here (X.509, RFC 5280, in DER).

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// When the first of these certificates (PEM) ends; `None` where there is none, or one cannot be read.
pub fn first_end(pem: &[u8]) -> Option<Timestamp> {
    let ends = CertificateDer::pem_slice_iter(pem).map(|certificate| end(&certificate.ok()?));
    ends.collect::<Option<Vec<_>>>()?.into_iter().min()
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
    fn the_end_of_a_certificate_is_read() {
        for (year, expected) in [
            (2030, "2030-02-03T00:00:00Z"),
            (2060, "2060-02-03T00:00:00Z"),
        ] {
            let mut params = rcgen::CertificateParams::new(["a".to_owned()]).unwrap();
            params.not_after = rcgen::date_time_ymd(year, 2, 3);
            let key = rcgen::KeyPair::generate().unwrap();
            let pem = params.self_signed(&key).unwrap().pem();
            assert_eq!(first_end(pem.as_bytes()), Some(expected.parse().unwrap()));
            // Whatever is cut off, nothing is read beyond it.
            let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
            for length in 0..der.len() {
                let _ = end(&der[..length]);
            }
        }
        assert_eq!(first_end(b"nonsense"), None);
    }
}
