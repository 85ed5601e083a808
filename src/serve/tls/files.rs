//! A certificate in two files that another program, such as cert-manager, writes and rotates.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use tracing::{info, warn};

use super::certificate::{CHAIN, CertificateError, KEY, ServingCertificate};
use super::serving::{Certificates, ClientAuthorities, authorities};

/// How often the files are re-read: they are small, and few watchers notice how a mounted Secret changes (by symbolic links).
const POLL: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error("{0} is not there: put the certificate's Secret in this folder")]
    Missing(PathBuf),
    #[error("{0}{1}")]
    Unusable(PathBuf, String),
}

fn load(folder: &Path) -> Result<ServingCertificate, FilesError> {
    let (chain, key) = (folder.join(CHAIN), folder.join(KEY));
    let made = ServingCertificate::from_pem(String::new(), read(&chain)?, read(&key)?);
    made.map_err(|error| {
        let path = match error {
            CertificateError::Key(_) | CertificateError::Mismatch => key,
            CertificateError::Chain(_) | CertificateError::Issue(_) => chain,
        };
        FilesError::Unusable(path, format!(": {error}"))
    })
}

/// Serves the certificate in this folder's `tls.crt` and `tls.key`, re-read every [`POLL`] while the process lives. If a new one
/// cannot be used, the log says so and the old one stays. A missing file may come later; a missing folder is an error.
pub fn follow(folder: &Path) -> Result<Certificates, FilesError> {
    if !folder.is_dir() {
        let problem = " is not a folder: mount the Secret with tls.crt and tls.key there, or name another folder";
        return Err(FilesError::Unusable(folder.into(), problem.into()));
    }
    let certificates = Certificates::new(match load(folder) {
        Ok(certificate) => Ok(certificate),
        Err(error @ FilesError::Missing(_)) => {
            warn!("no certificate yet: {error}");
            Err(error.to_string())
        }
        Err(error) => return Err(error),
    });
    tokio::spawn(poll(folder.to_owned(), certificates.clone()));
    Ok(certificates)
}

async fn poll(folder: PathBuf, certificates: Certificates) {
    let mut problem = None;
    loop {
        tokio::time::sleep(POLL).await;
        match load(&folder) {
            Ok(certificate) => {
                problem = None;
                if certificates.current().as_ref() != Some(&certificate) {
                    info!(folder = %folder.display(), "certificate loaded");
                    certificates.set(Ok(certificate));
                }
            }
            Err(error) => {
                let error = error.to_string();
                certificates.explain(error.clone());
                if problem.as_ref() != Some(&error) {
                    warn!("cannot use the certificate; the one in use stays: {error}");
                    problem = Some(error);
                }
            }
        }
    }
}

/// The authorities in a PEM file by which clients' certificates are verified; read once.
pub fn client_authorities(path: &Path) -> Result<ClientAuthorities, FilesError> {
    let unusable = |problem: String| FilesError::Unusable(path.into(), problem);
    let pem = fs::read(path).map_err(|error| unusable(format!(" cannot be read: {error}")))?;
    authorities(&pem).map_err(|error| unusable(format!(": {error}")))
}

fn read(path: &Path) -> Result<Vec<u8>, FilesError> {
    fs::read(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => FilesError::Missing(path.into()),
        _ => FilesError::Unusable(path.into(), format!(" cannot be read: {error}")),
    })
}
