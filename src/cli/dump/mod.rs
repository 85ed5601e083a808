//! `dump`: writes into a folder what the other commands need, for them to be asked elsewhere by `--from`.
//!
//! | file | what it does |
//! |---|---|
//! | `fields` | what of each object is kept |
//! | `hashed` | names that are not to be told |

mod fields;
mod hashed;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::answer::Answer;
use super::failure::Failure;
use super::page::Page;
use super::read::{ABOUT, AboutDump, FORM, Missing, Refusal, Source};
use super::snapshot::{About, Binding, CONTROLLER_LABEL, Filter, Kind, Snapshot};
use crate::api::names::{CONFIG_MAP, LEASE, NAMESPACE};
use crate::selector::Selector;
use fields::kept;
use hashed::Hashed;

/// What was written.
#[derive(Debug, Clone, Serialize)]
pub struct Dumped {
    /// Where to.
    pub folder: String,
    /// How many objects of each kind.
    pub objects: BTreeMap<&'static str, usize>,
    /// What is missing in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
}

/// Writes a dump of what is in the cluster of which this snapshot is.
///
/// # Errors
/// Where the folder cannot be written, or has something in it already.
pub async fn dump(
    source: &Source,
    snapshot: &Snapshot,
    folder: &Path,
    hash_names: bool,
) -> Result<Dumped, Failure> {
    let unwritable = |path: &Path, error: &dyn std::fmt::Display| Failure::Dump {
        path: path.into(),
        why: error.to_string(),
    };
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    let mut there = fs::read_dir(folder).map_err(|error| unwritable(folder, &error))?;
    if there.next().is_some() {
        let why = "the folder is not empty, and nothing in it is overwritten; name another one";
        return Err(unwritable(folder, &why));
    }
    let mut missing = Vec::new();
    let mut lists = BTreeMap::new();
    let prefixes: Vec<String> = (snapshot.classes().iter())
        .map(|class| class.csi_annotation_prefix.clone())
        .collect();
    for kind in Kind::ALL {
        match read(source, kind, snapshot, &prefixes).await {
            Ok(objects) => drop(lists.insert(kind, objects)),
            Err(Refusal::NotInstalled) => {}
            Err(refusal) => missing.push(Missing {
                kind: kind.name().into(),
                forbidden: matches!(refusal, Refusal::Forbidden(_)),
                why: refusal.to_string(),
            }),
        }
    }
    if hash_names {
        hash(&mut lists).map_err(|error| unwritable(folder, &error))?;
    }
    let mut objects = BTreeMap::new();
    for (kind, items) in lists {
        objects.insert(kind.name(), items.len());
        let path = folder.join(kind.file());
        write_list(&path, &items).map_err(|error| unwritable(&path, &error))?;
    }
    let about = AboutDump {
        form: FORM,
        nodegate: env!("CARGO_PKG_VERSION").into(),
        at: Timestamp::now(),
        missing: missing.clone(),
    };
    write(&folder.join(ABOUT), &about)?;
    Ok(Dumped {
        folder: folder.display().to_string(),
        objects,
        missing,
    })
}

/// Writes a list with each object in a line of its own.
fn write_list(path: &Path, items: &[String]) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(b"{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[")?;
    for (index, item) in items.iter().enumerate() {
        file.write_all(if index == 0 { b"\n" } else { b",\n" })?;
        file.write_all(item.as_bytes())?;
    }
    file.write_all(b"\n]}\n")?;
    file.flush()
}

fn write(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let failed = |why: String| Failure::Dump {
        path: path.into(),
        why,
    };
    let text = serde_json::to_vec_pretty(value).map_err(|error| failed(error.to_string()))?;
    fs::write(path, text).map_err(|error| failed(error.to_string()))
}

/// All objects of a kind that any command asks for, each once, as JSON: as text they take a tenth of the memory.
async fn read(
    source: &Source,
    kind: Kind,
    snapshot: &Snapshot,
    prefixes: &[String],
) -> Result<Vec<String>, Refusal> {
    let mut all: BTreeMap<(String, String), String> = BTreeMap::new();
    for filter in filters(kind, snapshot) {
        let take = |json: &str| {
            let Ok(object) = serde_json::from_str::<Value>(json) else {
                return;
            };
            let text = |field: &str| {
                let text = object["metadata"][field].as_str();
                text.unwrap_or_default().to_owned()
            };
            let key = (text("namespace"), text("name"));
            all.insert(key, kept(kind, &object, prefixes).to_string());
        };
        source.each(kind, &filter, take).await?;
    }
    Ok(all.into_values().collect())
}

/// Which objects of a kind any command asks for.
fn filters(kind: Kind, snapshot: &Snapshot) -> Vec<Filter> {
    let all = Filter::default();
    let in_the_controllers = |filter: Filter| Filter {
        namespace: snapshot.leader.as_ref().map(|it| it.namespace.clone()),
        ..filter
    };
    match kind {
        Kind::Rules
        | Kind::Nodes
        | Kind::CsiNodes
        | Kind::DaemonSets
        | Kind::NodeClaims
        | Kind::NodePools => vec![all],
        Kind::Deployments => {
            let labels = Some(Selector::of_label(CONTROLLER_LABEL.0, CONTROLLER_LABEL.1));
            let controllers = in_the_controllers(Filter { labels, ..all });
            // As the limits are looked for where nobody leads.
            let namespace = controllers.namespace.or_else(|| Some(NAMESPACE.to_owned()));
            vec![Filter {
                namespace,
                ..controllers
            }]
        }
        Kind::Leases => vec![Filter::named(LEASE)],
        Kind::ConfigMaps => vec![in_the_controllers(Filter::named(CONFIG_MAP.0))],
        Kind::Events => vec![
            Filter {
                about: About::Pods,
                ..all.clone()
            },
            Filter {
                about: About::Nodes,
                ..all
            },
        ],
        Kind::Pods => {
            let with = |selector: &Selector, namespace: Option<&str>| Filter {
                labels: Some(selector.clone()),
                namespace: namespace.map(str::to_owned),
                ..Filter::default()
            };
            let of_classes = (snapshot.classes().iter())
                .map(|class| with(&class.selector, class.namespaces.single()));
            let cluster = snapshot.view.cluster();
            let of_named = cluster.named.iter().filter_map(|named| {
                let there = cluster.daemon_sets(named.cohort).get(&named.key)?;
                Some(with(there.selector.as_ref()?, Some(&named.key.namespace)))
            });
            let controllers = Selector::of_label(CONTROLLER_LABEL.0, CONTROLLER_LABEL.1);
            let unbound = Filter {
                binding: Binding::Unbound,
                ..Filter::default()
            };
            of_classes
                .chain(of_named)
                .chain([in_the_controllers(with(&controllers, None)), unbound])
                .collect()
        }
    }
}

/// Replaces the names of nodes and pods, and what tells them.
fn hash(lists: &mut BTreeMap<Kind, Vec<String>>) -> Result<(), &'static str> {
    let mut hashed = Hashed::new().map_err(|_| "the system has no random numbers")?;
    for (kind, word) in [
        (Kind::Nodes, "node"),
        (Kind::Pods, "pod"),
        (Kind::NodeClaims, "claim"),
    ] {
        for text in lists.get(&kind).into_iter().flatten() {
            let object = parsed(text);
            let labels = &object["metadata"]["labels"];
            let names = [
                &object["metadata"]["name"],
                &object["spec"]["providerID"],
                &labels["kubernetes.io/hostname"],
            ];
            for name in names.into_iter().filter_map(Value::as_str) {
                hashed.add(word, name);
            }
        }
    }
    for (kind, list) in lists {
        for (index, text) in list.iter_mut().enumerate() {
            let mut object = parsed(text);
            hashed.replace(&mut object);
            // An event is called after what it is about.
            if *kind == Kind::Events {
                object["metadata"]["name"] = format!("event-{index}").into();
            }
            *text = object.to_string();
        }
    }
    Ok(())
}

/// An object of which this is the JSON, written here.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

impl Answer for Dumped {
    fn text(&self, page: &Page) -> String {
        let mut out = String::new();
        let objects = self.objects.iter().filter(|(_, count)| **count > 0);
        let objects: Vec<_> = objects
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        page.line(
            &mut out,
            format!("wrote {} into {}", objects.join(", "), self.folder),
        );
        for missing in &self.missing {
            let line = format!("note: {} could not be read: {}", missing.kind, missing.why);
            page.line(&mut out, line);
        }
        page.line(
            &mut out,
            format!(
                "next: ask it: kubectl nodegate status --from {}",
                self.folder
            ),
        );
        out
    }

    fn names(&self) -> Vec<String> {
        vec![self.folder.clone()]
    }
}
