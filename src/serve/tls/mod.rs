//! TLS with a certificate that can be replaced while serving: from rotated files, from a Secret of Nodegate's own, or self-signed.

mod certificate;
mod files;
mod managed;
mod serving;

pub use certificate::{certificates, issue};
pub use files::{client_authorities, follow};
pub use managed::ManagedCertificate;
pub use serving::Certificates;
