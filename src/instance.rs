//! Who this process is: its name, which no other has, and the namespace it runs in.

use crate::api::names::NAMESPACE;

/// What this process is called.
pub struct Instance {
    /// The pod's name, or the host's.
    pub name: String,
    /// A name that no other process has: a restarted instance is another one.
    pub unique: String,
}

impl Instance {
    /// This process, as it is called from now on.
    pub fn new() -> Self {
        let name = std::env::var("POD_NAME")
            .or_else(|_| std::env::var("HOSTNAME"))
            .unwrap_or_else(|_| "nodegate".into());
        let since_epoch = jiff::Timestamp::now().as_nanosecond();
        let unique = format!("{name}_{:x}-{since_epoch:x}", std::process::id());
        Self { name, unique }
    }
}

/// The namespace this process runs in: the pod's, or the one that the manifests use.
pub fn own_namespace() -> String {
    const FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
    std::env::var("POD_NAMESPACE")
        .or_else(|_| std::fs::read_to_string(FILE))
        .map_or_else(
            |_| NAMESPACE.into(),
            |namespace| namespace.trim().to_owned(),
        )
}
