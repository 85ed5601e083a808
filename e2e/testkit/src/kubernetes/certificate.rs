//! A serving certificate, as from an external tool.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

/// A certificate with its key, and that of the new CA that has signed it, as PEM.
pub(crate) struct Issued {
    pub ca: String,
    pub certificate: String,
    pub key: String,
}

/// Issues a certificate for these names and addresses.
pub(crate) fn issue(names: &[&str]) -> Result<Issued> {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    authority
        .distinguished_name
        .push(DnType::CommonName, "testkit");
    let authority_key = KeyPair::generate().context("making a CA's key")?;
    let ca = authority.self_signed(&authority_key);
    let ca = ca.context("signing a CA")?.pem();
    let key = KeyPair::generate().context("making a server's key")?;
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let certificate = CertificateParams::new(names)
        .context("naming a server")?
        .signed_by(&key, &Issuer::new(authority, authority_key))
        .context("signing a server's certificate")?;
    Ok(Issued {
        ca,
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// Writes `tls.crt` and `tls.key` for 127.0.0.1 into the folder, and returns the PEM of their new CA.
pub fn write(folder: &Path) -> Result<String> {
    let issued = issue(&["127.0.0.1"])?;
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    for (name, content) in [("tls.crt", issued.certificate), ("tls.key", issued.key)] {
        let path = folder.join(name);
        fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(issued.ca)
}
