//! What a watch shows, as a stream of [`Seen`], and why it does not work.

use std::error::Error as _;
use std::time::Instant;

use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use kube::core::Status;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Api, Client, Resource};

use super::bookmarks::NoAnswer;
use super::causes::with_causes;
use nodegate_core::condition::{Object, Seen, WATCH_LENGTH, Watch};
use nodegate_core::object::{self, Kind, Watched};
use nodegate_core::selector::Filter;

/// The manifests that grant what the controller does to the objects of which this is the name, or a message about them.
pub fn rbac(about: &str) -> &'static str {
    if about.contains("karpenter.sh") {
        "config/karpenter"
    } else {
        "config/rbac"
    }
}

/// What a watch shows. An error does not end it.
pub type Events = BoxStream<'static, watcher::Result<Seen>>;

pub fn events(client: &Client, watch: Watch, scope: &Filter) -> Events {
    match watch {
        Watch::Nodes => shown(client, watch, scope, Object::Node),
        Watch::CsiNodes => shown(client, watch, scope, Object::CsiNode),
        Watch::Pods(group) => shown(client, watch, scope, move |it| Object::Pod(group, it)),
        Watch::DaemonSets(group) => {
            shown(client, watch, scope, move |it| Object::DaemonSet(group, it))
        }
        Watch::ResourceSlices(group) => shown(client, watch, scope, move |it| {
            Object::ResourceSlice(group, it)
        }),
        Watch::Rules => shown(client, watch, scope, Object::Rule),
        Watch::NodeClaims => shown(client, watch, scope, Object::NodeClaim),
        Watch::NodePools => shown(client, watch, scope, Object::NodePool),
    }
}

fn shown<T: Kind + Send + 'static>(
    client: &Client,
    watch: Watch,
    scope: &Filter,
    wrap: impl Fn(Watched<T>) -> Object + Send + 'static,
) -> Events {
    let client = client.clone();
    let api = match &scope.namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &()),
        None => Api::all(client),
    };
    let config = Config {
        label_selector: scope.labels.as_ref().map(ToString::to_string),
        field_selector: scope.fields.clone(),
        timeout: u32::try_from(WATCH_LENGTH.as_secs()).ok(),
        ..Config::default()
    };
    let seen = move |event: Event<Watched<T>>| match event {
        Event::Init => Seen::Init(watch, Instant::now()),
        Event::InitDone => Seen::InitDone(watch),
        // A bookmark.
        Event::Apply(object) if object.meta().name.is_none() => {
            Seen::Progress(watch, object::resource_version(object.meta()))
        }
        Event::InitApply(object) | Event::Apply(object) => Seen::Apply(wrap(object)),
        Event::Delete(object) => Seen::Delete(wrap(object)),
    };
    watcher(api, config).map_ok(seen).boxed()
}

pub fn refusal(error: &watcher::Error) -> Option<&Status> {
    match error {
        watcher::Error::WatchError(status)
        | watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => Some(status),
        _ => None,
    }
}

/// Why a watch does not work, and what to do about it; `None` if a plain retry is enough.
pub fn explain(error: &watcher::Error, watch: Watch, server: &str) -> Option<String> {
    let name = watch.name();
    let Some(status) = refusal(error) else {
        return unrefused(error, name, server);
    };
    // The decoder makes an empty status of what is no event.
    let message = Some(&*status.message).filter(|it| !it.is_empty());
    let message = message.unwrap_or("what it sent is no event of a watch");
    Some(match status.code {
        410 => return None,
        404 if watch == Watch::Rules => format!(
            "the CustomResourceDefinition {name} is not installed: install it with `kubectl apply -k config/crd`"
        ),
        404 if matches!(watch, Watch::NodeClaims | Watch::NodePools) => format!(
            "the CustomResourceDefinition {name} is not installed: no NodeClaim can be deleted until Karpenter is installed"
        ),
        401 => format!(
            "the API server does not know who we are ({message}): check the kubeconfig's credentials"
        ),
        403 => format!(
            "no permission to list and watch {name} ({message}): grant it with `kubectl apply -k {}`",
            rbac(name)
        ),
        _ => format!("cannot watch {name}: {message}"),
    })
}

/// Why a watch that the API server did not refuse does not work; `None` if a plain retry is enough.
fn unrefused(error: &watcher::Error, name: &str, server: &str) -> Option<String> {
    match error {
        watcher::Error::WatchError(_) => None,
        watcher::Error::NoResourceVersion => {
            Some(format!("{name} cannot be watched on this API server"))
        }
        watcher::Error::WatchFailed(kube::Error::SerdeError(error))
        | watcher::Error::InitialListFailed(kube::Error::SerdeError(error)) => {
            Some(format!("cannot parse the API server's {name}: {error}"))
        }
        watcher::Error::WatchFailed(error) => {
            let mut causes = std::iter::successors(error.source(), |error| (*error).source());
            let is_silent = causes.any(<dyn std::error::Error>::is::<NoAnswer>);
            is_silent.then(|| format!(
                "nothing is seen of {name} any more, and the API server has not ended the watch either: the connection is dead, or something in between holds it up"
            ))
        }
        watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error) => {
            let why = with_causes(error);
            Some(format!(
                "cannot reach the API server at {server} to watch {name}: {why} (check that it runs, and that the kubeconfig names the right server)"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_failure_that_a_retry_fixes_is_not_reported_and_any_other_with_its_cause() {
        let refused = |code| {
            let status = Status::failure("m", "r").with_code(code);
            watcher::Error::WatchError(status.boxed())
        };
        let odd = watcher::Error::WatchFailed(kube::Error::Api(Box::default()));
        let told = explain(&odd, Watch::Nodes, "server");
        let why = "cannot watch nodes: what it sent is no event of a watch";
        assert_eq!(told.as_deref(), Some(why));
        assert_eq!(explain(&refused(410), Watch::Nodes, "server"), None);
        let broken_off = std::io::Error::other("reset");
        let broken_off = watcher::Error::WatchFailed(kube::Error::ReadEvents(broken_off));
        assert_eq!(explain(&broken_off, Watch::Nodes, "server"), None);
        let told = explain(&refused(403), Watch::NodeClaims, "server").unwrap();
        assert!(told.contains("kubectl apply -k config/karpenter"), "{told}");
    }
}
