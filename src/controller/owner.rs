//! Whether a label on the rules' CRD names another controller: read once at startup, only for the log.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client};
use tracing::{debug, warn};

use super::answer::within;
use super::birth::TIMEOUT;
use crate::api::names::{GROUP, MANAGED_BY, PLURAL};
use crate::api::other_owner;

pub(super) async fn tell(client: Client) {
    let api: Api<CustomResourceDefinition> = Api::all(client);
    let name = format!("{PLURAL}.{GROUP}");
    match within(TIMEOUT, api.get_metadata(&name)).await {
        Ok(definition) => {
            let labels = definition.metadata.labels.unwrap_or_default();
            if let Some(owner) = other_owner(&labels) {
                warn!(
                    definition = name,
                    owner,
                    "the label {MANAGED_BY} of the CRD names another owner: if that one runs a controller for it, \
                     two write the same taints"
                );
            }
        }
        // Not every installation grants this.
        Err(error) => debug!(definition = name, "cannot tell whose it is: {error}"),
    }
}
