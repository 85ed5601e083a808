//! TLS with a certificate that can be replaced while serving. It comes from files that another program rotates, from a Secret
//! that Nodegate maintains, or is self-signed.

mod certificate;
mod files;
mod managed;
mod serving;

pub use certificate::{certificates, issue};
pub use files::{client_authorities, follow};
pub use managed::ManagedCertificate;
pub use serving::Certificates;
