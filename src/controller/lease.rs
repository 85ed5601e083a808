//! Leader election by a Lease: one instance writes, the others keep their caches warm.
//!
//! The rules are those of `k8s.io/client-go/tools/leaderelection`: a holder's lease runs out when the object has not
//! changed for its whole duration, by the clock of the one who watches it, and a holder that cannot renew it stops
//! well before. Clocks of different machines are never compared.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::time::Instant;
use tracing::{info, warn};

use super::writer::WriteError;

/// The Lease's name, which the Node Readiness Controller uses too, so that the two never write at the same time.
pub const LEASE_NAME: &str = "ba65f13e.readiness.node.x-k8s.io";
/// How long a lease is good for after it was renewed.
const LEASE_DURATION: Duration = Duration::from_secs(15);
/// How long after its last renewal a holder goes on writing.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// How often a lease is renewed, or looked at by those who wait for it.
const RETRY_PERIOD: Duration = Duration::from_secs(2);
/// How long one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// One instance's part in the election.
pub struct Election {
    api: Api<Lease>,
    identity: String,
    /// The Lease as it was seen last, and since when it has been so.
    seen: Option<(Lease, Instant)>,
}

/// What is to be done about a Lease that somebody may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// It is ours.
    Renew,
    /// Nobody holds it, or whoever did has not renewed it in time.
    Take,
    /// It is another's.
    Wait,
}

/// Decides about a Lease that has been unchanged for `unchanged`.
fn claim(spec: &LeaseSpec, identity: &str, unchanged: Duration) -> Claim {
    let holder = spec.holder_identity.as_deref().unwrap_or_default();
    let duration = spec
        .lease_duration_seconds
        .and_then(|seconds| u64::try_from(seconds).ok())
        .map_or(LEASE_DURATION, Duration::from_secs);
    if holder == identity {
        Claim::Renew
    } else if holder.is_empty() || unchanged >= duration {
        Claim::Take
    } else {
        Claim::Wait
    }
}

impl Election {
    /// Stands for election under this identity, which no other instance may have.
    pub fn new(client: Client, namespace: &str, identity: String) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            identity,
            seen: None,
        }
    }

    /// Waits until this instance leads.
    pub async fn win(&mut self) {
        let mut problem = None;
        let mut holder = None;
        loop {
            match self.try_hold().await {
                Ok(true) => {
                    info!(lease = LEASE_NAME, identity = %self.identity, "leading");
                    return;
                }
                Ok(false) => {
                    problem = None;
                    let current = self.holder();
                    if holder != current {
                        info!(
                            lease = LEASE_NAME,
                            holder = current.as_deref().unwrap_or_default(),
                            "following"
                        );
                        holder = current;
                    }
                }
                // Another instance was faster.
                Err(WriteError::Conflict) => {}
                Err(error) => {
                    let error = error.to_string();
                    if problem.as_ref() != Some(&error) {
                        warn!(
                            lease = LEASE_NAME,
                            "cannot get hold of the lease: {error}; trying again"
                        );
                        problem = Some(error);
                    }
                }
            }
            tokio::time::sleep(RETRY_PERIOD).await;
        }
    }

    /// Keeps the lease, and tells each time it has been renewed; comes back when it may have been lost. By then nothing may
    /// be written any more.
    pub async fn keep(&mut self, renewed: impl Fn()) {
        let mut deadline = Instant::now() + RENEW_DEADLINE;
        loop {
            let attempt = async {
                tokio::time::sleep(RETRY_PERIOD).await;
                let started = Instant::now();
                (self.try_hold().await, started)
            };
            match tokio::time::timeout_at(deadline, attempt).await {
                Ok((Ok(true), started)) => {
                    deadline = started + RENEW_DEADLINE;
                    renewed();
                }
                Ok((Ok(false), _)) => {
                    warn!(lease = LEASE_NAME, "another instance has taken the lease");
                    return;
                }
                Ok((Err(error), _)) => warn!(lease = LEASE_NAME, "cannot renew the lease: {error}"),
                Err(_) => {
                    warn!(lease = LEASE_NAME, "could not renew the lease in time");
                    return;
                }
            }
        }
    }

    /// Gives the lease up, so that another instance need not wait for it to run out.
    pub async fn release(&mut self) {
        let Some((mut lease, _)) = self.seen.take() else {
            return;
        };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_ref() != Some(&self.identity) {
            return;
        }
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        spec.renew_time = Some(MicroTime(Timestamp::now()));
        match self.replace(&lease).await {
            Ok(_) => info!(lease = LEASE_NAME, "released"),
            Err(error) => warn!(lease = LEASE_NAME, "cannot release the lease: {error}"),
        }
    }

    fn holder(&self) -> Option<String> {
        self.seen.as_ref()?.0.spec.as_ref()?.holder_identity.clone()
    }

    /// Takes or renews the lease if that is allowed; answers whether this instance holds it now.
    async fn try_hold(&mut self) -> Result<bool, WriteError> {
        // What was seen last is good enough to renew what is ours: if it is stale, the write is refused.
        if self.holder().as_ref() != Some(&self.identity) {
            self.look().await?;
        }
        let Some((lease, since)) = &self.seen else {
            let lease = self.written(Lease::default(), Claim::Take);
            let params = PostParams::default();
            let created = within_timeout(self.api.create(&params, &lease)).await;
            return self.hold(created);
        };
        let spec = lease.spec.clone().unwrap_or_default();
        let claim = claim(&spec, &self.identity, since.elapsed());
        if claim == Claim::Wait {
            return Ok(false);
        }
        let lease = self.written(lease.clone(), claim);
        let replaced = self.replace(&lease).await;
        self.hold(replaced)
    }

    /// Takes in the answer to a write of the Lease.
    fn hold(&mut self, answer: Result<Lease, WriteError>) -> Result<bool, WriteError> {
        match answer {
            Ok(lease) => {
                self.seen = Some((lease, Instant::now()));
                Ok(true)
            }
            Err(error) => {
                // Somebody else may have written it: look before the next try.
                self.seen = None;
                Err(error)
            }
        }
    }

    /// Reads the Lease, noting since when it has been as it is.
    async fn look(&mut self) -> Result<(), WriteError> {
        match within_timeout(self.api.get_opt(LEASE_NAME)).await? {
            None => self.seen = None,
            Some(lease) => {
                let version = |lease: &Lease| lease.metadata.resource_version.clone();
                let is_known = self
                    .seen
                    .as_ref()
                    .is_some_and(|(seen, _)| version(seen) == version(&lease));
                if !is_known {
                    self.seen = Some((lease, Instant::now()));
                }
            }
        }
        Ok(())
    }

    async fn replace(&self, lease: &Lease) -> Result<Lease, WriteError> {
        within_timeout(self.api.replace(LEASE_NAME, &PostParams::default(), lease)).await
    }

    /// The Lease with this instance as its holder, renewed now.
    fn written(&self, lease: Lease, claim: Claim) -> Lease {
        let now = MicroTime(Timestamp::now());
        let mut spec = lease.spec.unwrap_or_default();
        if claim == Claim::Take {
            spec.lease_transitions = Some(
                spec.lease_transitions
                    .map_or(0, |count| count.saturating_add(1)),
            );
            spec.acquire_time = Some(now.clone());
        }
        spec.holder_identity = Some(self.identity.clone());
        spec.lease_duration_seconds = i32::try_from(LEASE_DURATION.as_secs()).ok();
        spec.renew_time = Some(now);
        Lease {
            metadata: ObjectMeta {
                name: Some(LEASE_NAME.into()),
                ..lease.metadata
            },
            spec: Some(spec),
        }
    }
}

async fn within_timeout<T>(
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, WriteError> {
    match tokio::time::timeout(REQUEST_TIMEOUT, request).await {
        Ok(result) => result.map_err(WriteError::from),
        Err(_) => Err(WriteError::Failed(
            "the API server did not answer in time".into(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_taken_only_when_nobody_keeps_it() {
        let held_by = |holder: &str, seconds: Option<i32>| LeaseSpec {
            holder_identity: Some(holder.into()),
            lease_duration_seconds: seconds,
            ..LeaseSpec::default()
        };
        for (name, spec, unchanged, expected) in [
            ("ours", held_by("me", Some(15)), 0, Claim::Renew),
            (
                "ours, though run out",
                held_by("me", Some(15)),
                60,
                Claim::Renew,
            ),
            ("released", held_by("", Some(1)), 0, Claim::Take),
            ("never held", LeaseSpec::default(), 0, Claim::Take),
            ("another's", held_by("other", Some(15)), 14, Claim::Wait),
            (
                "another's, run out",
                held_by("other", Some(15)),
                15,
                Claim::Take,
            ),
            (
                "another's, for longer",
                held_by("other", Some(60)),
                15,
                Claim::Wait,
            ),
            (
                "another's, without a duration",
                held_by("other", None),
                15,
                Claim::Take,
            ),
        ] {
            let claimed = claim(&spec, "me", Duration::from_secs(unchanged));
            assert_eq!(claimed, expected, "{name}");
        }
    }
}
