//! Known components and their purposes, from the table `known.txt`.

use crate::snapshot::{Agent, Manifests};
use nodegate_core::object::ObjectKey;

const REGISTRAR: &str = "csi-node-driver-registrar";

#[derive(Debug)]
pub(super) struct ComponentPurpose {
    pub name: &'static str,
    /// A label of the nodes on which its components run.
    pub label: (&'static str, &'static str),
    /// The effect on pods that start without them, and what to do.
    pub why: Vec<&'static str>,
    /// A container image's name or a part of it, the condition to wait for, with a label's value after a `=`, if it is not
    /// the `DaemonSet` itself, and a description.
    pub known: Vec<[&'static str; 3]>,
}

/// All purposes, in the order of the suggestions.
pub(super) fn purposes() -> impl Iterator<Item = ComponentPurpose> {
    let purposes = include_str!("known.txt").split("\n[").skip(1);
    purposes.filter_map(|purpose| {
        let (head, text) = purpose.split_once("]\n")?;
        let (name, label) = head.split_once(' ')?;
        let lines = text.lines().filter(|line| !line.is_empty());
        let (known, why): (Vec<_>, Vec<_>) = lines.partition(|line| line.contains('|'));
        Some(ComponentPurpose {
            name,
            label: label.split_once('=')?,
            why,
            known: known.into_iter().filter_map(row).collect(),
        })
    })
}

fn row(line: &'static str) -> Option<[&'static str; 3]> {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    cells.try_into().ok()
}

/// The type of a condition to wait for.
pub(super) fn type_of(condition: &str) -> &str {
    condition.split('=').next().unwrap_or(condition)
}

impl ComponentPurpose {
    /// The description of a `DaemonSet` of this purpose, and what to wait for; none for Windows: suggested rules are for Linux.
    pub(super) fn recognise(
        &self,
        agent: &Agent,
        manifests: &Manifests,
    ) -> Option<(String, Vec<String>)> {
        let daemon_set = &agent.daemon_set;
        let os = daemon_set.node_selector.get("kubernetes.io/os");
        if daemon_set.deleted.is_some() || os.is_some_and(|os| os != "linux") {
            return None;
        }
        let has = |part: &str| agent.images().any(|image| is_image(image, part));
        let [_, condition, what] = self.known.iter().find(|[part, ..]| has(part))?;
        let mut conditions = vec![(*condition).to_owned()];
        let mut what = (*what).to_owned();
        if self.name == "storage" {
            let named = manifests.csi_drivers.keys();
            let named = named.map(|it| (it, format!("csidriver.nodegate.dev/{it}")));
            let named = named.filter(|(name, kind)| kind == condition || agent.mentions(name));
            conditions = named.map(|(_, kind)| kind).collect();
            // The driver's image is the first one that is not a sidecar's.
            let is_sidecar = |it: &&str| it.contains(REGISTRAR) || it.contains("livenessprobe");
            let driver = agent.images().find(|image| !is_sidecar(image));
            what = format!("{what}: {}", driver.unwrap_or(&daemon_set.key.name));
        }
        if conditions.is_empty() || conditions[0].is_empty() {
            let ObjectKey { namespace, name } = &daemon_set.key;
            conditions = vec![format!("daemonset.nodegate.dev/{namespace}.{name}")];
        }
        Some((what, conditions))
    }
}

/// Whether this is the image, by the last two parts of its path, or of a name that contains this part. A mirror may write the two
/// as one, after a prefix: `rancher/mirrored-cilium-cilium`.
fn is_image(image: &str, known: &str) -> bool {
    let path = image.split('@').next().unwrap_or_default();
    let mut parts = path.rsplit('/');
    let name = parts.next().and_then(|it| it.split(':').next());
    let owner = parts.next().filter(|it| !it.contains(['.', ':']));
    let name = [owner.unwrap_or_default(), name.unwrap_or_default()].join("-");
    let part = known.replace('/', "-");
    name.ends_with(&part) || !known.contains('/') && name.contains(&part)
}
