//! TLS towards an https endpoint, as the API server's client speaks it.

use std::path::Path;

use hyper::Uri;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use kube::Config;
use kube::client::ConfigExt;

use crate::settings::{SettingError, Verify};
use nodegate_cluster::with_causes;
use nodegate_serve::tls::certificates;

/// Connects over TLS. Fails if there is nothing to verify against.
pub(crate) fn connector(verify: &Verify) -> Result<HttpsConnector<HttpConnector>, SettingError> {
    let unusable = |problem| SettingError("CHECK_CA_FILE", problem);
    let mut config = Config::new(Uri::default());
    match verify {
        Verify::System => {}
        Verify::File(path) => config.root_cert = Some(roots_in(path).map_err(unusable)?),
        // The system may have no authorities.
        Verify::Nothing => config.root_cert = Some(Vec::new()),
    }
    config.accept_invalid_certs = *verify == Verify::Nothing;
    config.rustls_https_connector().map_err(|error| {
        let why = with_causes(&error);
        unusable(match verify {
            Verify::System => format!(
                "is not set, and this system has no certificate authorities of its own (an image without ca-certificates?): \
                 {why}; name a PEM file with those that signed the endpoint's certificate"
            ),
            Verify::File(_) | Verify::Nothing => format!("cannot be used: {why}"),
        })
    })
}

/// The certificate authorities in a PEM file (DER). The error continues a sentence that starts with `CHECK_CA_FILE`.
fn roots_in(path: &Path) -> Result<Vec<Vec<u8>>, String> {
    let pem = std::fs::read(path).map_err(|error| error.to_string());
    let roots = pem.and_then(|pem| certificates(&pem));
    let roots = roots.map_err(|problem| format!("{} cannot be used: {problem}", path.display()))?;
    Ok(roots.iter().map(|root| root.to_vec()).collect())
}
