//! A certificate in two files that somebody else (cert-manager, say) writes and rotates.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tracing::{info, warn};

use super::certificate::{CertificateError, ServingCertificate};
use super::serving::Certificates;

const CHAIN: &str = "tls.crt";
const KEY: &str = "tls.key";
/// How often the files are read again. They are small, and a mounted Secret changes by a swap of symbolic links, which
/// few ways of watching files see.
const POLL: Duration = Duration::from_secs(2);

/// The files `tls.crt` and `tls.key` of a folder.
#[derive(Debug, Clone)]
pub struct CertificateFiles {
    chain: PathBuf,
    key: PathBuf,
}

/// Why the files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The folder is not there.
    #[error(
        "{0} is not a folder: mount the Secret with tls.crt and tls.key there, or name another folder"
    )]
    Folder(PathBuf),
    /// A file is not there, or not yet.
    #[error("{0} is not there: put the certificate's Secret in this folder")]
    Missing(PathBuf),
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file's content cannot be used.
    #[error("{path}: {source}")]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: CertificateError,
    },
}

impl CertificateFiles {
    /// The files in this folder.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self {
            chain: folder.join(CHAIN),
            key: folder.join(KEY),
        }
    }

    /// Reads them.
    ///
    /// # Errors
    /// When one is missing, cannot be read, or they do not belong together; the message names the file.
    pub fn read(&self) -> Result<ServingCertificate, FilesError> {
        let chain = read(&self.chain)?;
        let key = read(&self.key)?;
        ServingCertificate::from_pem(&chain, &key).map_err(|source| {
            let path = match source {
                CertificateError::Key(_) | CertificateError::Mismatch => &self.key,
                CertificateError::Chain(_) | CertificateError::Issue(_) => &self.chain,
            };
            FilesError::Content {
                path: path.clone(),
                source,
            }
        })
    }

    /// Reads them, and again and again for as long as the process lives: a rotated certificate is served from then on,
    /// and of one that cannot be used the log tells while the old one stays.
    ///
    /// A file that is missing is waited for: the certificate's Secret may still be on its way.
    ///
    /// # Errors
    /// When the folder is not there, or a file is there that cannot be used.
    pub fn follow(self) -> Result<Certificates, FilesError> {
        if let Some(folder) = self.chain.parent().filter(|folder| !folder.is_dir()) {
            return Err(FilesError::Folder(folder.to_owned()));
        }
        let certificates = match self.read() {
            Ok(certificate) => Certificates::from(certificate),
            Err(error @ FilesError::Missing(_)) => {
                warn!("no certificate yet: {error}");
                Certificates::none(error.to_string())
            }
            Err(error) => return Err(error),
        };
        tokio::spawn(self.poll(certificates.clone()));
        Ok(certificates)
    }

    async fn poll(self, certificates: Certificates) {
        let mut problem = None;
        loop {
            tokio::time::sleep(POLL).await;
            match self.read() {
                Ok(certificate) => {
                    problem = None;
                    if certificates.current().as_ref() != Some(&certificate) {
                        info!(file = %self.chain.display(), "certificate loaded");
                        certificates.replace(certificate);
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
}

fn read(path: &Path) -> Result<Vec<u8>, FilesError> {
    fs::read(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => FilesError::Missing(path.to_owned()),
        _ => FilesError::Read {
            path: path.to_owned(),
            source,
        },
    })
}
