//! What a rule's author should know of what the rule waits for, whether or not it is in force. The rule's status has it as
//! conditions, and the command line prints the same.

use std::collections::BTreeSet;

use crate::plan::{Backing, PassedOver, Placement, WhyPassedOver, WhyUnmade};
use crate::rule::CompiledSpec;
use crate::wording::enumerated;

/// The condition type of a rule with conditions that are met on no node.
pub(crate) const NOT_MADE: &str = "ConditionsNotMade";
/// The condition type of a rule that opens nodes without having waited for anything.
const NOTHING_TO_WAIT_FOR: &str = "NothingToWaitFor";
/// The condition type of a rule whose taint shuts out a `DaemonSet` that it waits for.
pub(crate) const SHUT_OUT: &str = "DaemonSetsShutOut";
const OUTSIDE_NAMESPACES: &str = "DaemonSetsOutsideNamespaces";

/// Types of the conditions that remarks become.
pub(crate) const REMARKS: [&str; 4] = [NOT_MADE, NOTHING_TO_WAIT_FOR, SHUT_OUT, OUTSIDE_NAMESPACES];

/// A remark, as a condition of the rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remark {
    /// The condition's type.
    pub kind: &'static str,
    pub reason: &'static str,
    pub message: String,
}

/// What is wrong with what the rule waits for.
pub(crate) fn remarks(spec: &CompiledSpec, backing: &Backing) -> Vec<Remark> {
    let not_made = not_made(backing).map(|(reason, message)| Remark {
        kind: NOT_MADE,
        reason,
        message,
    });
    let nothing = nothing_to_wait_for(backing).map(|(reason, message)| Remark {
        kind: NOTHING_TO_WAIT_FOR,
        reason,
        message,
    });
    let passed_over = PASSED_OVER.into_iter().filter_map(|(why, kind, reason)| {
        let message = passed_over_message(spec, &backing.passed_over, why)?;
        Some(Remark {
            kind,
            reason,
            message,
        })
    });
    not_made
        .into_iter()
        .chain(nothing)
        .chain(passed_over)
        .collect()
}

/// Which `DaemonSet`s run on only some of the rule's nodes. Nothing is wrong with that, but its author may not expect it.
pub(crate) fn partial_placements(backing: &Backing) -> impl Iterator<Item = String> {
    let partial = backing.placements.iter().filter(|it| it.runs_on > 0);
    partial.map(|it| format!("{}; the others do not wait for it", on_how_many(it)))
}

fn on_how_many(placement: &Placement) -> String {
    let Placement {
        daemon_set,
        runs_on,
        selected,
    } = placement;
    let nodes = if *selected == 1 { "node" } else { "nodes" };
    format!(
        "DaemonSet {daemon_set} runs on {runs_on} of the {selected} {nodes} that the rule selects"
    )
}

/// The reason and message about conditions that are met on no node.
fn not_made(backing: &Backing) -> Option<(&'static str, String)> {
    let whys: BTreeSet<WhyUnmade> = backing.unmade.iter().map(|it| it.why).collect();
    let messages: Vec<String> = whys
        .iter()
        .map(|why| {
            let of_it = backing.unmade.iter().filter(|it| it.why == *why);
            let names: Vec<String> = of_it.map(|it| it.missing.clone()).collect();
            why.message(&enumerated(names.into_iter()))
        })
        .collect();
    let reason = match whys.first()? {
        WhyUnmade::NoDaemonSet => "NoSuchDaemonSet",
        WhyUnmade::NoCsiDriver => "NoSuchCSIDriver",
        WhyUnmade::NotServed => "NoSuchKind",
        WhyUnmade::NoSuchName | WhyUnmade::NoSuchPrefix | WhyUnmade::TooMany => "CountedAsAbsent",
    };
    Some((reason, messages.join("; ")))
}

/// The reason and message about components that no node waits for.
fn nothing_to_wait_for(backing: &Backing) -> Option<(&'static str, String)> {
    let classes = &backing.empty_classes;
    let of_classes = (!classes.is_empty()).then(|| {
        let classes = enumerated(classes.iter().cloned());
        let message = format!(
            "no DaemonSet is of the critical component class that the rule waits for, so that it opens every node on which \
             no labelled pod runs: {classes} (label the DaemonSets and their pod templates, or name them by \
             daemonset.nodegate.dev/<namespace>.<name>)"
        );
        ("NoDaemonSetInClass", message)
    });
    let nowhere = backing.placements.iter().filter(|it| it.runs_on == 0);
    let nowhere = nowhere.map(|it| {
        let message = format!(
            "{}, so that none of them waits for it (check its node selector, its affinity and its tolerations)",
            on_how_many(it)
        );
        ("DaemonSetOnNoNode", message)
    });
    let all: Vec<_> = of_classes.into_iter().chain(nowhere).collect();
    let reason = all.first()?.0;
    let messages: Vec<String> = all.into_iter().map(|(_, message)| message).collect();
    Some((reason, messages.join("; ")))
}

/// Why a rule does not wait for `DaemonSet`s, or in vain, with the condition type (also the event's reason) and its reason.
pub(crate) const PASSED_OVER: [(WhyPassedOver, &str, &str); 2] = [
    (WhyPassedOver::ShutOut, SHUT_OUT, "TaintNotTolerated"),
    (
        WhyPassedOver::OutsideNamespaces,
        OUTSIDE_NAMESPACES,
        "NamespaceNotCovered",
    ),
];

/// The message about `DaemonSet`s that a rule does not wait for, or in vain, and how to fix that; `None` if there are none.
pub(crate) fn passed_over_message(
    spec: &CompiledSpec,
    passed_over: &[PassedOver],
    why: WhyPassedOver,
) -> Option<String> {
    let meant: Vec<&PassedOver> = passed_over.iter().filter(|it| it.why == why).collect();
    if meant.is_empty() {
        return None;
    }
    let names = |meant: &[&PassedOver]| {
        let names = meant.iter().map(|it| it.daemon_set.to_string());
        enumerated(names)
    };
    Some(match why {
        WhyPassedOver::ShutOut => {
            let (named, of_classes): (Vec<_>, Vec<_>) =
                meant.into_iter().partition(|it| it.class.is_none());
            let (key, effect) = (&spec.taint.key, spec.effect);
            let parts = [
                ("waited for in vain, as the rule names them", named),
                ("not waited for", of_classes),
            ];
            let parts = parts.iter().filter(|(_, meant)| !meant.is_empty());
            let parts = parts.map(|(what, meant)| {
                format!(
                    "{what}, because they do not tolerate taint {key}:{effect}: DaemonSet {} (add the toleration to their pod template)",
                    names(meant)
                )
            });
            parts.collect::<Vec<_>>().join("; ")
        }
        WhyPassedOver::OutsideNamespaces => {
            let classes = meant.iter().flat_map(|it| &it.class);
            let classes: BTreeSet<String> = classes.map(|class| format!("'{class}'")).collect();
            format!(
                "not waited for, because their namespaces are not among those of class {}: DaemonSet {} (add the namespaces to \
                 the class in the configuration file, or take the label off)",
                enumerated(classes.into_iter()),
                names(&meant),
            )
        }
    })
}
