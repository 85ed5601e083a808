//! The objects by which other controllers remediate nodes: medik8s' remediations, made from their templates, and Cluster API's
//! Machines. Nothing of them is watched: each request reads what it needs.

use kube::api::{
    ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions,
};
use kube::core::{GroupVersionKind, gvk::ParseGroupVersionError};
use kube::discovery::{self, Scope};
use kube::{Api, Client, Error, ResourceExt};
use serde_json::{Value, json};

use super::answer::{DEADLINE, FIELD_MANAGER, REMEDIATION_RBAC, forbidden, within};
use crate::api::RemediationTemplate;
use crate::api::names::REMEDIATED_RULE;
use crate::engine::RequestError;
use crate::engine::io::Answer;
use crate::object::ObjectKey;
use crate::repair::RemediationObject;

/// The annotation by which Cluster API's `MachineHealthCheck` remediates a Machine.
const REMEDIATE_MACHINE: &str = "cluster.x-k8s.io/remediate-machine";
/// The API version of Machines.
const MACHINES: &str = "cluster.x-k8s.io/v1beta2";

/// The node and the rule that a remediation belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Of<'a> {
    pub node: &'a str,
    pub uid: &'a str,
    pub rule_uid: &'a str,
}

impl<'a> Of<'a> {
    pub(super) fn new(node: &'a str, uid: &'a str, rule_uid: &'a str) -> Self {
        Self {
            node,
            uid,
            rule_uid,
        }
    }
}

impl Of<'_> {
    /// Whether the object was made for this node and rule.
    fn is_of(self, object: &DynamicObject) -> bool {
        let mut owners = object.owner_references().iter();
        owners.any(|owner| owner.kind == "Node" && owner.uid == self.uid)
            && object
                .annotations()
                .get(REMEDIATED_RULE)
                .map(String::as_str)
                == Some(self.rule_uid)
    }
}

/// Makes a node's remediation from a template, unless it is there.
pub(super) async fn make(
    client: &Client,
    of: Of<'_>,
    template: &RemediationTemplate,
) -> Result<Answer, RequestError> {
    let RemediationTemplate {
        api_version,
        kind,
        name,
        namespace,
    } = template;
    let (templates, _) = api(client, api_version, kind, namespace).await?;
    let found = send(templates.get(name)).await;
    let found = found.map_err(|error| missing(error, &format!("{kind} {namespace}/{name}")))?;
    let object = RemediationObject::of(template);
    let (remediations, resource) = api(client, api_version, &object.kind, namespace).await?;
    let spec = match &found.data["spec"]["template"]["spec"] {
        Value::Null => json!({}),
        spec => spec.clone(),
    };
    let mut made = DynamicObject::new(of.node, &resource).data(json!({ "spec": spec }));
    made.annotations_mut()
        .insert(REMEDIATED_RULE.into(), of.rule_uid.into());
    made.owner_references_mut().push(
        k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
            api_version: "v1".into(),
            kind: "Node".into(),
            name: of.node.into(),
            uid: of.uid.into(),
            ..Default::default()
        },
    );
    let params = PostParams {
        field_manager: Some(FIELD_MANAGER.into()),
        ..PostParams::default()
    };
    let what = object.of_node(of.node);
    match send(remediations.create(&params, &made)).await {
        Err(RequestError::Conflict) => {
            let known = send(remediations.get(of.node)).await?;
            Ok(if of.is_of(&known) {
                Answer::Done
            } else {
                Answer::Impossible(format!(
                    "{what} exists already, and Nodegate did not make it"
                ))
            })
        }
        Err(error) => Err(missing(error, &what)),
        Ok(_) => Ok(Answer::Done),
    }
}

/// Deletes a node's remediation, if it is there and was made for this node and rule.
pub(super) async fn delete(
    client: &Client,
    of: Of<'_>,
    object: &RemediationObject,
) -> Result<Answer, RequestError> {
    let known = match api(client, &object.api_version, &object.kind, &object.namespace).await {
        Ok((remediations, _)) => send(remediations.get_opt(of.node))
            .await?
            .map(|it| (remediations, it)),
        // With its definition, the object is gone.
        Err(Missing::Kind(_)) => None,
        Err(Missing::Other(error)) => return Err(error),
    };
    let Some((remediations, known)) = known.filter(|(_, known)| of.is_of(known)) else {
        return Ok(Answer::Done);
    };
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: known.uid(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    match send(remediations.delete(of.node, &params)).await {
        Ok(_) | Err(RequestError::Gone) => Ok(Answer::Done),
        Err(error) => Err(error),
    }
}

/// Annotates the Machine of a node, unless it has the annotation.
pub(super) async fn annotate(
    client: &Client,
    node: &str,
    machine: &ObjectKey,
) -> Result<Answer, RequestError> {
    let (machines, _) = api(client, MACHINES, "Machine", &machine.namespace).await?;
    let what = format!("Machine {machine}");
    let Some(found) = send(machines.get_opt(&machine.name)).await? else {
        return Ok(Answer::Impossible(format!("{what} does not exist")));
    };
    if found.data["status"]["nodeRef"]["name"] != node {
        let why = format!("status.nodeRef of {what} does not name this node");
        return Ok(Answer::Impossible(why));
    }
    if found.annotations().contains_key(REMEDIATE_MACHINE) {
        return Ok(Answer::Done);
    }
    let patch = json!({"metadata": {
        "uid": found.uid(),
        "resourceVersion": found.resource_version(),
        "annotations": {REMEDIATE_MACHINE: ""},
    }});
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.into()),
        ..PatchParams::default()
    };
    send(machines.patch(&machine.name, &params, &Patch::Merge(patch)))
        .await
        .map(|_| Answer::Done)
}

/// Why the objects of a kind cannot be requested.
enum Missing {
    /// The cluster does not have the kind.
    Kind(String),
    Other(RequestError),
}

impl From<Missing> for RequestError {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::Kind(why) => Self::Failed(why),
            Missing::Other(error) => error,
        }
    }
}

/// The objects of a kind in a namespace.
async fn api(
    client: &Client,
    api_version: &str,
    kind: &str,
    namespace: &str,
) -> Result<(Api<DynamicObject>, ApiResource), Missing> {
    let gvk = api_version
        .parse()
        .map(|version: kube::core::GroupVersion| version.with_kind(kind));
    let gvk: GroupVersionKind = gvk.map_err(|error: ParseGroupVersionError| {
        Missing::Other(RequestError::Failed(format!("{api_version:?}: {error}")))
    })?;
    let not_installed = || {
        Missing::Kind(format!(
            "{kind} of {api_version} is not installed in this cluster"
        ))
    };
    let found = match tokio::time::timeout(DEADLINE, discovery::pinned_kind(client, &gvk)).await {
        Ok(Err(Error::Discovery(_))) => return Err(not_installed()),
        Ok(Err(Error::Api(status))) if status.code == 404 => return Err(not_installed()),
        Ok(found) => found.map_err(RequestError::from),
        Err(_) => Err(RequestError::TimedOut(DEADLINE)),
    };
    let (resource, capabilities) = found.map_err(Missing::Other)?;
    if capabilities.scope == Scope::Cluster {
        return Err(Missing::Kind(format!(
            "{kind} of {api_version} has no namespace"
        )));
    }
    let objects = Api::namespaced_with(client.clone(), namespace, &resource);
    Ok((objects, resource))
}

/// Makes a request. A permission that it lacks is one of the remediations'.
async fn send<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, RequestError> {
    let mut denied = None;
    let answer = within(DEADLINE, async {
        let answer = request.await;
        if let Err(Error::Api(status)) = &answer {
            denied = forbidden(status, REMEDIATION_RBAC);
        }
        answer
    });
    let answer = answer.await;
    match denied {
        Some(denied) => Err(denied),
        None => answer,
    }
}

/// The error of a request for this object, which names it if it is missing.
fn missing(error: RequestError, what: &str) -> RequestError {
    match error {
        RequestError::Gone => RequestError::Failed(format!("{what} does not exist")),
        error => error,
    }
}
