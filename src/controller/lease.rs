//! Leader election by a Lease: one instance writes, the others keep their caches warm. [`nodegate_engine::election`] decides;
//! this file makes the requests, which no write limit delays.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
use kube::{Api, Client};
use prometheus::Gauge;
use tokio::sync::watch;
use tracing::{info, warn};

use super::answer::within;
use super::brake::Brake;
use super::clock;
use super::health::Readiness;
use nodegate_cluster::process::is_nodegate;
use nodegate_core::api::names::{LEASE as LEASE_NAME, RUNS_WITH};
use nodegate_core::object::{self, Version};
use nodegate_engine::RequestError;
use nodegate_engine::election::{
    LEASE_DURATION, LeaseClaim, Loss, Renewal, Sighting, Sightings, Term, is_blind, may_stand,
};

/// How often the leader renews the lease, and the others read it.
pub(super) const RETRY_PERIOD: Duration = Duration::from_secs(2);
/// The timeout of releasing: a process that is told to stop has 20 s in total.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// One instance's part in the election.
pub(super) struct Election {
    api: Api<Lease>,
    identity: String,
    /// What this instance says on the Lease that it runs with.
    runs_with: String,
    /// The Lease as last read or written, unless a write has failed since.
    lease: Option<Lease>,
    sightings: Sightings,
    sight: Sight,
    brake: Brake,
    /// The resource version in the last answer. If it goes backwards, the cluster was restored from a backup.
    shown: Version,
    restored: watch::Sender<()>,
}

/// How well this instance sees the cluster.
#[derive(Debug, Clone)]
pub(super) struct Sight {
    pub readiness: watch::Receiver<Readiness>,
    /// When any watch last showed something.
    pub seen: watch::Receiver<Instant>,
    /// How many seconds this machine's clock was ahead of the API server's at the last answer.
    pub clock_offset: Gauge,
}

impl Election {
    /// Joins the election under this identity, which no other instance may have.
    pub(super) fn new(
        client: Client,
        namespace: &str,
        identity: String,
        runs_with: String,
        sight: Sight,
        brake: Brake,
        restored: watch::Sender<()>,
    ) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            sightings: Sightings::new(identity.clone()),
            identity,
            runs_with,
            lease: None,
            sight,
            brake,
            shown: 0,
            restored,
        }
    }

    /// Waits until this instance leads. While it sees nothing, or its clock is wrong, it leaves the lease to others. Fails once
    /// it has seen nothing for minutes: another process may see more.
    pub(super) async fn win(&mut self) -> Result<Term, Loss> {
        let mut problem = None;
        let mut holder = None;
        loop {
            let asked = Instant::now();
            let had_synced = self.sight.readiness.borrow().synced;
            let seen = *self.sight.seen.borrow();
            let result = if may_stand(had_synced, seen, asked) {
                self.try_hold().await
            } else if had_synced && is_blind(seen, asked) {
                warn!("no watch has shown anything for minutes");
                return Err(Loss::Blind);
            } else {
                self.read().await.map(|()| false)
            };
            match result {
                // Another instance may still write.
                Ok(true) if !self.sightings.may_lead(Instant::now()) => problem = None,
                Ok(true) => {
                    info!(lease = LEASE_NAME, identity = %self.identity, "leading");
                    return Ok(Term::new(asked));
                }
                Ok(false) => {
                    problem = None;
                    let current = Some((self.sightings.holder().to_owned(), self.lease.is_none()));
                    if holder != current {
                        let leader = self.sightings.holder();
                        if self.lease.is_none() && !leader.is_empty() {
                            info!(
                                lease = LEASE_NAME,
                                holder = leader,
                                "the lease is gone; waiting as long as its holder may still write"
                            );
                        } else if leader.is_empty() || is_nodegate(leader) {
                            info!(lease = LEASE_NAME, holder = leader, "following");
                        } else {
                            warn!(
                                lease = LEASE_NAME,
                                holder = leader,
                                "following a leader that is not Nodegate: nothing is done until that one stops"
                            );
                        }
                        holder = current;
                    }
                }
                // Another instance wrote first.
                Err(RequestError::Conflict) => {}
                Err(error) => {
                    let error = error.to_string();
                    if problem.as_ref() != Some(&error) {
                        warn!(
                            lease = LEASE_NAME,
                            "cannot acquire the lease: {error}; retrying"
                        );
                        problem = Some(error);
                    }
                }
            }
            // As soon as this instance may stand, it stops waiting.
            let changed = |known: &Readiness| known.synced != had_synced;
            let news = self.sight.readiness.wait_for(changed);
            let _ = tokio::time::timeout(RETRY_PERIOD, news).await;
        }
    }

    /// Renews the lease and reports each renewal; returns when this instance no longer leads.
    pub(super) async fn keep(&mut self, mut term: Term, renewed: impl Fn(Term)) -> Loss {
        loop {
            let attempt = async {
                tokio::time::sleep(RETRY_PERIOD).await;
                let asked = Instant::now();
                let held = match self.try_hold().await {
                    // Another client wrote the Lease, perhaps to set the brake.
                    Err(RequestError::Conflict) => self.try_hold().await,
                    held => held,
                };
                match held {
                    Ok(true) if self.sightings.held_before(asked) => Renewal::Held { asked },
                    // It was made again: what counts is its next renewal.
                    Ok(true) => Renewal::Failed,
                    Ok(false) => Renewal::Taken,
                    Err(error) => {
                        warn!(lease = LEASE_NAME, "cannot renew the lease: {error}");
                        Renewal::Failed
                    }
                }
            };
            let attempt = tokio::time::timeout_at(term.ends().into(), attempt).await;
            let attempt = attempt.unwrap_or(Renewal::Failed);
            let seen = *self.sight.seen.borrow();
            match term.after(attempt, seen, Instant::now()) {
                Ok(()) if matches!(attempt, Renewal::Held { .. }) => renewed(term),
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

    /// Releases the lease, so that another instance need not wait for it to expire.
    pub(super) async fn release(&mut self) {
        let release = async {
            loop {
                match self.try_release().await {
                    // Another client wrote the Lease meanwhile.
                    Err(RequestError::Conflict) => {}
                    released => return released,
                }
            }
        };
        match tokio::time::timeout(RELEASE_TIMEOUT, release).await {
            Ok(Ok(true)) => info!(lease = LEASE_NAME, "released"),
            Ok(Ok(false)) => {}
            Ok(Err(error)) => warn!(lease = LEASE_NAME, "cannot release the lease: {error}"),
            Err(_) => warn!(lease = LEASE_NAME, "could not release the lease in time"),
        }
    }

    /// Returns whether this instance held the lease.
    async fn try_release(&mut self) -> Result<bool, RequestError> {
        // A renewal may have been under way, so the last read may be stale.
        self.read().await?;
        let Some(mut lease) = self.lease.clone() else {
            return Ok(false);
        };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_ref() != Some(&self.identity) {
            return Ok(false);
        }
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        spec.renew_time = Some(MicroTime(Timestamp::now()));
        self.replace(&lease).await.map(|_| true)
    }

    /// Takes or renews the lease if that is allowed; returns whether this instance holds it now.
    async fn try_hold(&mut self) -> Result<bool, RequestError> {
        // The last answer is enough to renew a lease that this instance holds: if it is stale, the write is refused.
        if self.lease.is_none() || self.sightings.holder() != self.identity {
            self.read().await?;
        }
        let claim = self.sightings.claim(Instant::now());
        match claim {
            LeaseClaim::Wait => return Ok(false),
            LeaseClaim::Take => clock::check(&self.sight.clock_offset)?,
            LeaseClaim::Renew => {}
        }
        // After a failure, another client may have written the Lease: it is re-read before the next attempt.
        let answer = if let Some(lease) = self.lease.take() {
            self.replace(&self.written(lease, claim)).await
        } else {
            if claim == LeaseClaim::Renew {
                warn!(
                    lease = LEASE_NAME,
                    "somebody deleted the lease; creating it again"
                );
            }
            let mut lease = Lease::default();
            lease.metadata.annotations = self.brake.annotations.clone();
            let lease = self.written(lease, LeaseClaim::Take);
            let params = PostParams::default();
            within(REQUEST_TIMEOUT, self.api.create(&params, &lease)).await
        };
        self.see(Some(answer?));
        Ok(true)
    }

    /// Records the Lease's current state. If the version goes backwards, the cluster was restored from a backup.
    fn see(&mut self, lease: Option<Lease>) {
        self.brake.see(lease.as_ref());
        self.sightings
            .see(lease.as_ref().map(sighting), Instant::now());
        if let Some(lease) = &lease {
            let version = object::resource_version(&lease.metadata);
            if std::mem::replace(&mut self.shown, version) > version {
                self.restored.send_replace(());
            }
        }
        self.lease = lease;
    }

    async fn read(&mut self) -> Result<(), RequestError> {
        let lease = within(REQUEST_TIMEOUT, self.api.get_opt(LEASE_NAME)).await?;
        self.see(lease);
        Ok(())
    }

    async fn replace(&self, lease: &Lease) -> Result<Lease, RequestError> {
        let params = PostParams::default();
        let replaced = self.api.replace(LEASE_NAME, &params, lease);
        within(REQUEST_TIMEOUT, replaced).await
    }

    /// The Lease with this instance as its holder, renewed now.
    fn written(&self, mut lease: Lease, claim: LeaseClaim) -> Lease {
        let now = MicroTime(Timestamp::now());
        let spec = lease.spec.get_or_insert_default();
        if claim == LeaseClaim::Take {
            let earlier = spec.lease_transitions;
            spec.lease_transitions = Some(earlier.map_or(0, |count| count.saturating_add(1)));
            spec.acquire_time = Some(now.clone());
        }
        spec.holder_identity = Some(self.identity.clone());
        spec.lease_duration_seconds = i32::try_from(LEASE_DURATION.as_secs()).ok();
        spec.renew_time = Some(now);
        lease.metadata.name = Some(LEASE_NAME.into());
        let annotations = lease.metadata.annotations.get_or_insert_default();
        annotations.insert(RUNS_WITH.into(), self.runs_with.clone());
        lease
    }
}

fn sighting(lease: &Lease) -> Sighting {
    let spec = lease.spec.clone().unwrap_or_default();
    let seconds = spec.lease_duration_seconds;
    Sighting {
        uid: lease.metadata.uid.clone().unwrap_or_default(),
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
        holder: spec.holder_identity.unwrap_or_default(),
        duration: seconds
            .and_then(|it| u64::try_from(it).ok())
            .map(Duration::from_secs),
    }
}
