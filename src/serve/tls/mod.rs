//! Serving over TLS with a certificate that can be replaced while serving, and where certificates come from: files
//! that somebody else rotates, a Secret that Nodegate keeps itself, or a self-signed one made on the spot.
//!
//! | file | what it does |
//! |---|---|
//! | `certificate` | a certificate with its key: parsed, and judged as a client would (pure) |
//! | `serving` | the certificate that is served with, replaced while serving |
//! | `issue` | makes a CA and a certificate (pure, save for randomness) |
//! | `files` | follows `tls.crt` and `tls.key` in a folder |
//! | `handover` | when another certificate may be served (pure) |
//! | `managed` | follows, makes and renews the webhook's certificate in a Secret, and tells the API server its CA |
//!
//! It does not know what is served, nor to whom; see `serve::server`.

mod certificate;
mod files;
mod handover;
mod issue;
mod managed;
mod serving;

pub use certificate::{CertificateError, ServingCertificate};
pub use files::{CertificateFiles, FilesError};
pub use issue::{AUTHORITY, Issued, issue};
pub use managed::ManagedCertificate;
pub use serving::Certificates;
