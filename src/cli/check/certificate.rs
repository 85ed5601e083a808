//! The expiry of a certificate bundle.

use jiff::Timestamp;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use crate::serve::tls::end;

/// When the last of these PEM certificates expires, and whether a CA of Nodegate's own issued it, which expires with its
/// certificate. `None` if there is none, or if one cannot be parsed. The others in a bundle are from earlier
/// renewals.
pub(super) fn last_end(pem: &[u8]) -> Option<(Timestamp, bool)> {
    let ends = CertificateDer::pem_slice_iter(pem).map(|certificate| end(&certificate.ok()?));
    ends.collect::<Option<Vec<_>>>()?.into_iter().max()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The common name of Nodegate's own CAs.
    const OWN: &str = "nodegate-ca";

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
        let bundle = ca("other", 2029) + &ca(OWN, 2030) + &ca(OWN, 2028);
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
            // No truncated certificate can be parsed.
            let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
            for length in 0..der.len() {
                assert_eq!(end(&der[..length]), None, "{length}");
            }
        }
        assert_eq!(last_end(b"nonsense"), None);
    }
}
