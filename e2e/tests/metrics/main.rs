//! The controller's metrics on a real control plane, scraped directly and by a real Prometheus.

mod exposition;
mod manifests;
mod observed;
mod scene;
mod scrape;
mod secure;

use nodegate_tests::SOON;

/// The flag and the URL of a metrics endpoint.
struct Endpoint {
    flag: String,
    url: String,
}

impl Endpoint {
    fn new(scheme: &str) -> anyhow::Result<Self> {
        let address = format!("127.0.0.1:{}", testkit::nodegate::ports::free()?);
        Ok(Self {
            flag: format!("--metrics-bind-address={address}"),
            url: format!("{scheme}://{address}/metrics"),
        })
    }
}
