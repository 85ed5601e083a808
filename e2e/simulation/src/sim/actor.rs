//! What all actors in the cluster, such as the kubelet, the controllers and people, have in common.

use super::cluster::{Change, Cluster};
use super::rng::Rng;
use super::time::Time;

/// Acts in the cluster beside Nodegate. Actors meet no faults: the server answers each request at once.
pub trait Actor {
    /// When it next acts, unless a change wakes it earlier. A time in the past means at once.
    fn wake(&self) -> Option<Time>;

    /// Does what is due by [`Cluster::now`]. Afterwards [`Self::wake`] is later than that, or `None`.
    fn act(&mut self, cluster: &mut Cluster, rng: &mut Rng);

    /// Records a change, which may be its own, and acts when it next wakes. To react, it sets its wake time a little later, as
    /// watches take time.
    fn changed(&mut self, _change: &Change, _cluster: &Cluster, _rng: &mut Rng) {}
}
