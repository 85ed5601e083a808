//! Deletes `NodeClaim`s. A deletion cannot be undone, so the node is read again first, past all caches, and the claim must be
//! exactly the one that was evaluated. Karpenter's finalizer keeps a deleted claim for as long as its node is drained: only then
//! it is told not to wait for pods, so that no claim has that on it which is not being deleted.

use std::sync::Arc;
use std::time::Duration;

use tracing::{debug, info, warn};

use super::cache::{Cache, KarpenterCache};
use super::effects::{Effects, Purpose};
use super::error::RequestError;
use super::io::{Answer, Count, Request};
use super::map::Map;
use super::notice::{About, Notice};
use super::pacer::{Class, WriteSlot};
use super::patch;
use crate::api::RepairAction;
use crate::api::names::NOT_READY_IN_TIME;
use crate::object::{Node, NodeClaim};

/// How long a deletion that found no free slot waits before it tries again.
pub(super) const TURN: Duration = Duration::from_millis(250);

/// The repair of a node by deleting its `NodeClaim`.
#[derive(Debug)]
pub(super) struct Deletion {
    pub claim: NodeClaim,
    /// The node as it was evaluated.
    pub node: Node,
    pub rule: Arc<str>,
    /// Why, as a complete sentence.
    pub why: String,
}

/// The state of one `NodeClaim`'s deletion.
#[derive(Debug, Default)]
struct ClaimWork {
    /// The claim's UID. Another UID means another claim.
    uid: Arc<str>,
    slot: WriteSlot<(Deletion, Step)>,
    /// The deletion succeeded: nothing more to do.
    is_done: bool,
}

/// The request that a deletion waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The live read of the node.
    LiveRead,
    /// The delete request.
    Delete,
    /// The patch that tells Karpenter not to wait for the node's pods.
    Hurry,
}

/// The deletions of `NodeClaim`s.
#[derive(Debug, Default)]
pub(super) struct Claims {
    work: Map<Arc<str>, ClaimWork>,
    is_stopping: bool,
}

impl Claims {
    /// Starts the deletion of a node's claim. If it has to wait, the node is evaluated again then.
    pub(super) fn delete(
        &mut self,
        deletion: Deletion,
        karpenter: &KarpenterCache,
        out: &mut Effects,
    ) {
        self.work
            .retain(|name, work| work.slot.is_under_way() || karpenter.claim(name).is_some());
        let claim = &deletion.claim;
        let work = self.work.entry(claim.name.clone()).or_default();
        if work.slot.is_under_way() {
            return;
        }
        if work.uid != claim.uid {
            *work = ClaimWork {
                uid: claim.uid.clone(),
                ..ClaimWork::default()
            };
        }
        if work.is_done {
            return;
        }
        let now = out.now.monotonic;
        let later = match work.slot.not_before(now) {
            Some(at) => Some(at),
            None if out.pacer.may_begin(Class::Claim, now) => None,
            None => Some(
                out.pacer
                    .not_before(Class::Claim, now)
                    .unwrap_or(now + TURN),
            ),
        };
        if let Some(at) = later {
            out.timers.wake_node(&deletion.node.name, at);
            return;
        }
        let name = deletion.node.name.clone();
        let purpose = Purpose::Claim(claim.name.clone());
        work.slot.begin((deletion, Step::LiveRead));
        out.ask(purpose, Request::ReadNode { name });
    }

    /// Stops all deletions: a request under way may end, and no further step begins.
    pub(super) fn stop(&mut self) {
        self.is_stopping = true;
        for work in self.work.values_mut() {
            work.slot.take_if(|(_, step)| *step == Step::LiveRead);
        }
    }

    /// Handles the answer to a step of a claim's deletion. If the deletion failed or was given up, returns the node, which is
    /// then evaluated again.
    pub(super) fn answered(
        &mut self,
        name: &Arc<str>,
        answer: Result<Answer, RequestError>,
        cache: &mut Cache,
        out: &mut Effects,
    ) -> Option<Arc<str>> {
        let work = self.work.get_mut(name)?;
        let (deletion, step) = work.slot.take()?;
        let claim = &deletion.claim;
        // A newer read may have shown that the rule is suspended or gone.
        let goes_on = || {
            let rule = cache.rules().get(&deletion.rule);
            rule.is_some_and(|it| it.rule.live().is_some() && !it.rule.is_suspended())
        };
        let next = match (step, answer) {
            (Step::Hurry, answer) => {
                match answer {
                    Ok(Answer::NodeClaim(shown)) => cache.update_claim(*shown),
                    Err(error) => tell_unhurried(&deletion, &error),
                    Ok(_) => {}
                }
                return None;
            }
            (_, Err(error)) => Err(error),
            (Step::LiveRead, Ok(Answer::Node(node))) => {
                // The condition that it is late may have come on meanwhile.
                let evaluated = |mut node: Node| {
                    node.conditions.retain(|it| it.kind != NOT_READY_IN_TIME);
                    node
                };
                let is_as_judged = node.clone().read();
                let is_as_judged = is_as_judged
                    .is_ok_and(|now| evaluated(now) == evaluated(deletion.node.clone()));
                let goes_on = goes_on();
                cache.update_node(*node, out.now);
                let delete = Request::DeleteNodeClaim {
                    name: claim.name.clone(),
                    uid: claim.uid.clone(),
                    version: claim.version,
                };
                if goes_on && is_as_judged {
                    Ok(Some((Step::Delete, delete)))
                } else {
                    Err(RequestError::Conflict)
                }
            }
            _ => {
                work.is_done = true;
                tell_deleted(&deletion, out);
                let name = claim.name.clone();
                let patch = patch::claim_termination(claim, out.now.wall);
                let patch = patch.filter(|_| !self.is_stopping);
                Ok(patch.map(|patch| (Step::Hurry, Request::PatchNodeClaim { name, patch })))
            }
        };
        match next {
            Ok(next) => {
                if let Some((step, request)) = next {
                    work.slot.begin((deletion, step));
                    out.ask(Purpose::Claim(name.clone()), request);
                }
                None
            }
            Err(error) => {
                work.slot.judge(Some(&error), out.now.monotonic);
                tell_failed(&deletion, &error, out);
                Some(deletion.node.name)
            }
        }
    }
}

fn tell_deleted(deletion: &Deletion, out: &mut Effects) {
    let Deletion {
        claim,
        node,
        rule,
        why,
    } = deletion;
    info!(node = %node.name, %rule, claim = %claim.name, why, "NodeClaim deleted");
    out.count(Count::Repaired {
        rule: rule.clone(),
        action: RepairAction::DeleteNodeClaim.as_str(),
    });
    let about = About::node(&node.name, &node.uid);
    out.tell(Notice::of_deleted_claim(about, &claim.name, rule, why));
}

/// The claim is being deleted all the same, and may be gone.
fn tell_unhurried(deletion: &Deletion, error: &RequestError) {
    let Deletion { claim, node, .. } = deletion;
    debug!(node = %node.name, claim = %claim.name, "Karpenter may wait for the node's pods: {error}");
}

fn tell_failed(deletion: &Deletion, error: &RequestError, out: &mut Effects) {
    let Deletion {
        claim, node, rule, ..
    } = deletion;
    if error.is_refusal() {
        warn!(node = %node.name, %rule, claim = %claim.name, "cannot delete the NodeClaim: {error}");
        out.count(Count::RepairFailed { rule: rule.clone() });
    } else {
        debug!(node = %node.name, %error, "evaluating the node again before its NodeClaim is deleted");
    }
}
