//! TLS with a certificate that can be replaced while serving. It comes from files that another program rotates, from a Secret
//! that Nodegate maintains, or is self-signed.

mod certificate;
mod files;
mod managed;
mod serving;

pub(crate) use certificate::{certificates, end, issue};
pub(crate) use files::{client_authorities, follow};
pub(crate) use managed::ManagedCertificate;
pub(crate) use serving::Certificates;
