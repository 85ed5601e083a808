//! The identity of this process: its unique name and its namespace.

use nodegate_core::api::names::NAMESPACE;

pub struct Instance {
    /// The pod's name, or the host's.
    pub name: String,
    /// A name unique to this process; a restarted instance has another.
    pub unique: String,
}

impl Instance {
    /// A new identity for this process; each call returns another.
    pub fn current() -> Self {
        let name = std::env::var("POD_NAME")
            .or_else(|_| std::env::var("HOSTNAME"))
            .unwrap_or_else(|_| "nodegate".into());
        let since_epoch = jiff::Timestamp::now().as_nanosecond();
        let unique = format!("{name}_{:x}-{since_epoch:x}", std::process::id());
        Self { name, unique }
    }
}

/// Whether this identity is an [`Instance`]'s. The Node Readiness Controller's (controller-runtime's) end in a UUID.
pub fn is_nodegate(identity: &str) -> bool {
    let is_hex = |text: &str| !text.is_empty() && text.chars().all(|it| it.is_ascii_hexdigit());
    let unique = identity.rsplit_once('_').map(|(_, unique)| unique);
    let parts = unique.and_then(|unique| unique.split_once('-'));
    parts.is_some_and(|(process, since)| is_hex(process) && is_hex(since))
}

/// The namespace of this process: the pod's, or the one in the manifests.
pub fn own_namespace() -> String {
    const FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
    let own = std::env::var("POD_NAMESPACE").or_else(|_| std::fs::read_to_string(FILE));
    own.map_or_else(|_| NAMESPACE.into(), |own| own.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_known_by_its_identity() {
        assert!(is_nodegate(&Instance::current().unique));
        let of_controller_runtime = "nrr-1_0b5c6a1e-52c0-4a6f-9c1d-0f6f7a6b9d10";
        for other in [of_controller_runtime, "nrr-1", "nrr-1_", "nrr-1_-", ""] {
            assert!(!is_nodegate(other), "{other}");
        }
    }
}
