//! One rule's guard: which of its waiting nodes may be gated now.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::bucket::TokenBucket;
use super::limits::Limits;
use super::report::{Report, ZoneReport};
use super::zone::{Zone, ZoneState, Zones, zone_state};

/// How long a granted node delays the others if its taint is not written.
const GRANT_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Member {
    Met,
    /// Its conditions are unmet, and it has the taint or is within its grace period.
    Held,
    /// Its conditions are unmet and it is not held, so it is to be gated.
    Waiting {
        since: Timestamp,
    },
}

/// One rule's guard over its nodes. Time passes only in [`Self::grant`]: call it after every change, and at [`Self::next_grant`].
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// Effective from the next [`Self::grant`].
    pub limits: Limits,
    members: BTreeMap<Arc<str>, (Zones, Member)>,
    /// Each zone that has nodes, or has not filled its bucket yet.
    buckets: BTreeMap<Zone, Bucket>,
    /// What the members come to; counted anew after a change.
    counts: OnceCell<Counts>,
    /// Whether the next [`Self::grant`] empties all buckets first.
    starts_over: bool,
}

/// A zone's permission to gate one node at a time: the last token taken is the granted node's, and grants do not accumulate.
#[derive(Debug, Clone)]
struct Bucket {
    /// One per node; the burst of 1 is `EvictionRateLimiterBurst` of `pkg/controller/nodelifecycle/scheduler`. As in its
    /// `SwapLimiter`, rate 0 empties the bucket, so that the other nodes can recover. Unlike there, other changes keep the tokens.
    tokens: TokenBucket,
    granted: Option<(Arc<str>, Instant)>,
    /// When waiting nodes were granted without being gated: they come last.
    missed: BTreeMap<Arc<str>, Instant>,
}

impl Default for Bucket {
    fn default() -> Self {
        Self {
            tokens: TokenBucket::full(1.0),
            granted: None,
            missed: BTreeMap::new(),
        }
    }
}

#[derive(Debug, Clone, Default)]
struct Counts {
    zones: BTreeMap<Zone, ZoneCount>,
    /// Whether every zone is fully disrupted: no node anywhere meets its conditions (`handleDisruption`).
    is_halted: bool,
}

#[derive(Debug, Clone, Default)]
struct ZoneCount {
    met: usize,
    unmet: usize,
    /// The nodes to be gated, the granted one included.
    waiting: Vec<(Timestamp, Arc<str>)>,
    /// The nodes of other zones that have named this one since they joined.
    named_by_met: usize,
    named_by_unmet: usize,
}

impl ZoneCount {
    /// The lowest rate, with the state, met and unmet nodes behind it: of those that have named the zone since they joined, as
    /// many count as keep most nodes from being gated. None makes the rate higher, whatever the others do.
    fn at_worst(&self, limits: &Limits) -> (f64, ZoneState, usize, usize) {
        let met = self.met.max(self.named_by_met.min(1));
        let rated = |met, unmet| {
            let state = zone_state(met, unmet, limits.unhealthy_zone_threshold);
            (limits.rate(state, met + unmet), state, met, unmet)
        };
        let more = (0..=self.named_by_unmet).map(|more| rated(met, self.unmet + more));
        more.fold(rated(self.met, self.unmet), |worst, it| {
            if it.0 < worst.0 { it } else { worst }
        })
    }
}

impl Guard {
    /// Takes back what was granted, and lets the zones fill their buckets anew from the next [`Self::grant`] on.
    pub fn start_over(&mut self) {
        self.starts_over = true;
        for bucket in self.buckets.values_mut() {
            bucket.granted = None;
        }
    }

    /// Notes a node's zones and how it counts (`None`: it is joining, or not selected); returns whether that is new.
    pub fn observe(&mut self, node: &Arc<str>, zones: Zones, member: Option<Member>) -> bool {
        let Some(member) = member else {
            return self.forget(node);
        };
        if member == Member::Held {
            self.gated(node);
        }
        let before = self.members.insert(node.clone(), (zones, member));
        self.changed(node, before)
    }

    /// Notes that a node is gone or does not count any more. Returns whether it counted.
    pub fn forget(&mut self, node: &str) -> bool {
        let before = self.members.remove(node);
        self.changed(node, before)
    }

    fn changed(&mut self, node: &str, before: Option<(Zones, Member)>) -> bool {
        let now = self.members.get(node);
        if before.as_ref() == now {
            return false;
        }
        self.counts.take();
        if let Some((Zones { home, .. }, Member::Waiting { .. })) = before
            && !matches!(now, Some((now, Member::Waiting { .. })) if now.home == home)
            && let Some(bucket) = self.buckets.get_mut(&home)
        {
            bucket.missed.remove(node);
            // A granted node has not been gated, so it returns its token.
            if bucket.granted.take_if(|(it, _)| **it == *node).is_some() {
                bucket.tokens.give_back();
            }
        }
        true
    }

    /// Notes that a node was gated, which spends its token: to be gated again it needs another, whatever it is observed as next.
    pub fn gated(&mut self, node: &str) {
        if let Some((zones, _)) = self.members.get(node)
            && let Some(bucket) = self.buckets.get_mut(&zones.home)
        {
            bucket.granted.take_if(|(granted, _)| **granted == *node);
        }
    }

    /// The nodes that may be gated from now on, longest-waiting first; each has taken a token of its zone. [`Self::gated`] or
    /// [`Member::Held`] spends it; any other observation returns it. A zone has one such node at a time; one that is not gated
    /// within half a minute goes behind the others.
    pub fn grant(&mut self, now: Instant) -> Vec<Arc<str>> {
        let mut buckets = std::mem::take(&mut self.buckets);
        for zone in self.counts().zones.keys() {
            buckets.entry(zone.clone()).or_default();
        }
        let starts_over = std::mem::take(&mut self.starts_over);
        let nobody = ZoneCount::default();
        let mut granted = Vec::new();
        buckets.retain(|zone, bucket| {
            let tally = self.counts().zones.get(zone).unwrap_or(&nobody);
            let rate = self.rate(tally);
            bucket.tokens.settle(now, rate);
            if starts_over || rate <= 0.0 {
                bucket.tokens.empty();
            }
            if rate <= 0.0 {
                bucket.granted = None;
            } else {
                granted.extend(bucket.grant(tally, now));
            }
            tally.met + tally.unmet > 0 || !bucket.tokens.has_token()
        });
        self.buckets = buckets;
        granted.sort();
        granted.into_iter().map(|(_, node)| node).collect()
    }

    /// Whether this node has been granted, and may still be gated.
    pub fn may_gate(&self, node: &str) -> bool {
        self.members
            .get(node)
            .is_some_and(|(Zones { home, .. }, _)| {
                let granted = self.buckets.get(home).and_then(|it| it.granted.as_ref());
                granted.is_some_and(|(granted, _)| **granted == *node)
                    && self.rate(&self.counts().zones[home]) > 0.0
            })
    }

    /// When [`Self::grant`] may return a node although nothing has changed; `None` if no waiting node may be gated.
    pub fn next_grant(&self, now: Instant) -> Option<Instant> {
        let next = self.counts().zones.iter().filter_map(|(zone, tally)| {
            let rate = self.rate(tally);
            let bucket = self.buckets.get(zone);
            let granted = bucket.and_then(|bucket| bucket.granted.as_ref());
            if rate <= 0.0 || tally.waiting.len() == usize::from(granted.is_some()) {
                return None;
            }
            let token = bucket.map_or(Some(now), |it| it.tokens.next_token(now, rate))?;
            Some(granted.map_or(token, |(_, at)| token.max(*at + GRANT_TIMEOUT)))
        });
        next.min()
    }

    pub fn report(&self) -> Report {
        let zones = self.counts().zones.iter().map(|(zone, tally)| {
            let rate = self.rate(tally);
            let (_, state, met, unmet) = tally.at_worst(&self.limits);
            let bucket = self.buckets.get(zone);
            let is_granted = bucket.is_some_and(|bucket| bucket.granted.is_some()) && rate > 0.0;
            ZoneReport {
                zone: zone.clone(),
                state,
                met,
                unmet,
                waiting: tally.waiting.len() - usize::from(is_granted),
                rate,
            }
        });
        let zones: Vec<_> = zones.collect();
        Report {
            unmet: zones.iter().map(|zone| zone.unmet).sum(),
            waiting: zones.iter().map(|zone| zone.waiting).sum(),
            all_zones_disrupted: self.counts().is_halted,
            zones,
        }
    }

    fn counts(&self) -> &Counts {
        self.counts.get_or_init(|| {
            let mut zones: BTreeMap<Zone, ZoneCount> = BTreeMap::new();
            for (node, (Zones { home, .. }, member)) in &self.members {
                let tally = zones.entry(home.clone()).or_default();
                match member {
                    Member::Met => tally.met += 1,
                    Member::Held => tally.unmet += 1,
                    Member::Waiting { since } => {
                        tally.unmet += 1;
                        tally.waiting.push((*since, node.clone()));
                    }
                }
            }
            for (Zones { other, .. }, member) in self.members.values() {
                if let Some(tally) = other.as_ref().and_then(|zone| zones.get_mut(zone)) {
                    let is_met = *member == Member::Met;
                    tally.named_by_met += usize::from(is_met);
                    tally.named_by_unmet += usize::from(!is_met);
                }
            }
            let is_halted = !zones.is_empty() && zones.values().all(|tally| tally.met == 0);
            Counts { zones, is_halted }
        })
    }

    /// Nodes a second that may be gated in a zone.
    fn rate(&self, tally: &ZoneCount) -> f64 {
        if self.counts().is_halted {
            return 0.0;
        }
        tally.at_worst(&self.limits).0
    }
}

impl Bucket {
    /// The next node that may be gated, with its place in the queue; `None` if there is none now.
    fn grant(&mut self, tally: &ZoneCount, now: Instant) -> Option<(Timestamp, Arc<str>)> {
        if tally.waiting.len() == usize::from(self.granted.is_some()) || !self.tokens.has_token() {
            return None;
        }
        if let Some((node, _)) = self.granted.take_if(|(_, at)| now >= *at + GRANT_TIMEOUT) {
            self.missed.insert(node, now);
        }
        if self.granted.is_some() {
            return None;
        }
        let place = |it: &&(Timestamp, Arc<str>)| (self.missed.get(&it.1).copied(), (*it).clone());
        let (since, node) = tally.waiting.iter().min_by_key(place)?.clone();
        self.tokens.take();
        self.granted = Some((node.clone(), now));
        Some((since, node))
    }
}
