//! A serving certificate in a folder, as from an external tool.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// Writes `tls.crt` and `tls.key` for 127.0.0.1 into the folder, and returns the PEM of their new CA.
pub fn write(folder: &Path) -> Result<String> {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate()?;
    let ca = authority.self_signed(&authority_key)?;
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(["127.0.0.1".to_owned()])?
        .signed_by(&key, &Issuer::new(authority, authority_key))?;
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    for (name, content) in [
        ("tls.crt", certificate.pem()),
        ("tls.key", key.serialize_pem()),
    ] {
        let path = folder.join(name);
        fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(ca.pem())
}
