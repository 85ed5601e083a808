//! Those who act in the cluster beside Nodegate: the kubelet, the controllers, people.

use super::cluster::{Change, Cluster};
use super::rng::Rng;
use super::time::Time;

/// Somebody who acts in the cluster. Nothing goes wrong for actors: each request is answered at once.
pub trait Actor {
    /// Its name, as [`super::Who::Actor`] carries it.
    fn name(&self) -> &'static str;

    /// When it acts next, unless something changes before. In the past: at once.
    fn wake(&self) -> Option<Time>;

    /// Its time has come: it does what is due by [`Cluster::now`]. Afterwards [`Self::wake`] is later than that, or `None`.
    fn act(&mut self, cluster: &mut Cluster, rng: &mut Rng);

    /// Something has changed, by whomever, itself included. It takes note, and acts when it next wakes: whoever reacts sets
    /// that to a moment later, as watches take their time.
    fn changed(&mut self, _change: &Change, _cluster: &Cluster, _rng: &mut Rng) {}
}
