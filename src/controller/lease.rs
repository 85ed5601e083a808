//! Leader election by a Lease: one instance writes, the others keep their caches warm. What is decided about it is in
//! [`crate::engine::election`]; here are the requests, which wait for no other writes.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::sync::watch;
use tracing::{info, warn};

use super::answer::within;
use super::health::Readiness;
use crate::api::names::LEASE as LEASE_NAME;
use crate::engine::RequestError;
use crate::engine::election::{
    Attempt, LEASE_DURATION, LeaseClaim, LeaseReading, Loss, Term, may_stand,
};

/// How often a lease is renewed, or looked at by those who wait for it.
const RETRY_PERIOD: Duration = Duration::from_secs(2);
/// How often it is tried to release a lease that changes meanwhile.
const RELEASE_ATTEMPTS: usize = 3;
/// How long one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// One instance's part in the election.
pub struct Election {
    api: Api<Lease>,
    identity: String,
    /// The Lease as it was seen last, and since when it has been so.
    seen: Option<(Lease, Instant)>,
    sight: Sight,
}

/// What is known of how much this instance sees.
#[derive(Debug, Clone)]
pub struct Sight {
    /// Whether every watch has shown all there is once.
    pub readiness: watch::Receiver<Readiness>,
    /// When any of them last showed something.
    pub seen: watch::Receiver<Instant>,
}

impl Sight {
    fn may_stand(&self) -> bool {
        let has_synced = self.readiness.borrow().synced;
        may_stand(has_synced, *self.seen.borrow(), Instant::now())
    }
}

impl Election {
    /// Stands for election under this identity, which no other instance may have.
    pub fn new(client: Client, namespace: &str, identity: String, sight: Sight) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            identity,
            seen: None,
            sight,
        }
    }

    /// Waits until this instance leads. As long as it sees nothing it leaves the lease to others.
    pub async fn win(&mut self) -> Term {
        // Then it is not waited for longer than it takes.
        let _ = self.sight.readiness.wait_for(|known| known.synced).await;
        let mut problem = None;
        let mut holder = None;
        loop {
            let asked = Instant::now();
            let result = if self.sight.may_stand() {
                self.try_hold().await
            } else {
                Ok(false)
            };
            match result {
                Ok(true) => {
                    info!(lease = LEASE_NAME, identity = %self.identity, "leading");
                    return Term::new(asked);
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
                Err(RequestError::Conflict) => {}
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

    /// Keeps the lease, and tells each time it has been renewed; comes back when this instance does not lead any more.
    pub async fn keep(&mut self, mut term: Term, renewed: impl Fn(Term)) -> Loss {
        loop {
            let attempt = async {
                tokio::time::sleep(RETRY_PERIOD).await;
                let asked = Instant::now();
                match self.try_hold().await {
                    Ok(true) => Attempt::Held { asked },
                    Ok(false) => Attempt::Taken,
                    Err(error) => {
                        warn!(lease = LEASE_NAME, "cannot renew the lease: {error}");
                        Attempt::Failed
                    }
                }
            };
            let attempt = tokio::time::timeout_at(term.ends().into(), attempt).await;
            let attempt = attempt.unwrap_or(Attempt::Failed);
            let seen = *self.sight.seen.borrow();
            match term.after(attempt, seen, Instant::now()) {
                Ok(()) if matches!(attempt, Attempt::Held { .. }) => renewed(term),
                Ok(()) => {}
                Err(loss) => {
                    let why = match loss {
                        Loss::Taken => "another instance has taken the lease",
                        Loss::RanOut => "could not renew the lease in time",
                        Loss::Blind => "no watch shows anything any more; giving the lease up",
                    };
                    warn!(lease = LEASE_NAME, "{why}");
                    return loss;
                }
            }
        }
    }

    /// Gives the lease up, so that another instance need not wait for it to run out.
    pub async fn release(&mut self) {
        for _ in 0..RELEASE_ATTEMPTS {
            match self.try_release().await {
                Ok(true) => info!(lease = LEASE_NAME, "released"),
                Ok(false) => {}
                Err(RequestError::Conflict) => continue,
                Err(error) => warn!(lease = LEASE_NAME, "cannot release the lease: {error}"),
            }
            return;
        }
    }

    /// Answers whether it was ours to release.
    async fn try_release(&mut self) -> Result<bool, RequestError> {
        // A renewal may have been under way: what was seen last may not be how the Lease is.
        self.look().await?;
        let Some((lease, _)) = &self.seen else {
            return Ok(false);
        };
        let mut lease = lease.clone();
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_ref() != Some(&self.identity) {
            return Ok(false);
        }
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        spec.renew_time = Some(MicroTime(Timestamp::now()));
        self.replace(&lease).await.map(|_| true)
    }

    fn holder(&self) -> Option<String> {
        self.seen.as_ref()?.0.spec.as_ref()?.holder_identity.clone()
    }

    /// Takes or renews the lease if that is allowed; answers whether this instance holds it now.
    async fn try_hold(&mut self) -> Result<bool, RequestError> {
        // What was seen last is good enough to renew what is ours: if it is stale, the write is refused.
        if self.holder().as_ref() != Some(&self.identity) {
            self.look().await?;
        }
        let Some((lease, since)) = &self.seen else {
            let lease = self.written(Lease::default(), LeaseClaim::Take);
            let params = PostParams::default();
            let created = within(REQUEST_TIMEOUT, self.api.create(&params, &lease)).await;
            return self.hold(created);
        };
        let claim = reading(lease, *since).claim(&self.identity);
        if claim == LeaseClaim::Wait {
            return Ok(false);
        }
        let lease = self.written(lease.clone(), claim);
        let replaced = self.replace(&lease).await;
        self.hold(replaced)
    }

    /// Takes in the answer to a write of the Lease.
    fn hold(&mut self, answer: Result<Lease, RequestError>) -> Result<bool, RequestError> {
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
    async fn look(&mut self) -> Result<(), RequestError> {
        match within(REQUEST_TIMEOUT, self.api.get_opt(LEASE_NAME)).await? {
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

    async fn replace(&self, lease: &Lease) -> Result<Lease, RequestError> {
        within(
            REQUEST_TIMEOUT,
            self.api.replace(LEASE_NAME, &PostParams::default(), lease),
        )
        .await
    }

    /// The Lease with this instance as its holder, renewed now.
    fn written(&self, lease: Lease, claim: LeaseClaim) -> Lease {
        let now = MicroTime(Timestamp::now());
        let mut spec = lease.spec.unwrap_or_default();
        if claim == LeaseClaim::Take {
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

/// What a Lease that has been as it is since then says.
fn reading(lease: &Lease, since: Instant) -> LeaseReading<'_> {
    let spec = lease.spec.as_ref();
    let duration = spec.and_then(|spec| spec.lease_duration_seconds);
    LeaseReading {
        holder: spec
            .and_then(|spec| spec.holder_identity.as_deref())
            .unwrap_or_default(),
        duration: duration
            .and_then(|seconds| u64::try_from(seconds).ok())
            .map(Duration::from_secs),
        unchanged: since.elapsed(),
    }
}
