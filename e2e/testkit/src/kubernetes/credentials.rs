//! A cluster's credentials: a CA, the API server's certificate, the key that signs service account tokens, and the admin's
//! token.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::KeyPair;

use crate::kubernetes::certificate::issue;

/// The credentials of one cluster, as files in its folder.
#[derive(Debug, Clone)]
pub(crate) struct Credentials {
    /// The CA's certificate, as PEM.
    pub ca: String,
    /// The CA's certificate as a file.
    pub ca_certificate: PathBuf,
    pub serving_certificate: PathBuf,
    pub serving_key: PathBuf,
    /// The key that signs service account tokens.
    pub token_key: PathBuf,
    pub token_public_key: PathBuf,
    /// The static token of `system:masters`, in the API server's file format.
    pub tokens: PathBuf,
    /// The static token of `system:masters`.
    pub admin_token: String,
}

impl Credentials {
    /// Creates them for an API server on the loopback interface and at its Service's address.
    pub(crate) fn create(folder: &Path) -> Result<Self> {
        let issued = issue(&[
            "127.0.0.1",
            "localhost",
            "kubernetes.default.svc",
            "10.0.0.1",
        ])?;
        let token_key = KeyPair::generate().context("making the token key")?;
        let admin_token = random_token();

        let write = |name: &str, content: String| {
            let path = folder.join(name);
            fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
            anyhow::Ok(path)
        };
        Ok(Self {
            ca_certificate: write("ca.crt", issued.ca.clone())?,
            ca: issued.ca,
            serving_certificate: write("apiserver.crt", issued.certificate)?,
            serving_key: write("apiserver.key", issued.key)?,
            token_key: write("token.key", token_key.serialize_pem())?,
            token_public_key: write("token.pub", token_key.public_key_pem())?,
            tokens: write(
                "tokens.csv",
                format!("{admin_token},admin,admin,\"system:masters\"\n"),
            )?,
            admin_token,
        })
    }
}

/// 128 random bits from the system, which seed a [`RandomState`].
fn random_token() -> String {
    let word = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", word(), word())
}
