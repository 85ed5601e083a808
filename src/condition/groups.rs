//! Component groups: pods and `DaemonSet`s that are listed and watched together.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::object::ObjectKey;

/// A group of pods and `DaemonSet`s that are listed and watched together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ComponentGroup {
    /// The components of the critical component class with this index in the configuration.
    Class(usize),
    /// What rules wait for by name ([`Component`]). The number is never reused in this process.
    Named(usize),
}

impl ComponentGroup {
    /// The index of the class, if it is one.
    pub fn class(self) -> Option<usize> {
        match self {
            Self::Class(index) => Some(index),
            Self::Named(_) => None,
        }
    }
}

/// What a rule waits for by name. It is watched from when the first rule names it until the last one does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// A `DaemonSet`, and its pods.
    DaemonSet(ObjectKey),
    /// Every `DaemonSet` of the cluster, and their pods.
    AllDaemonSets,
    /// The pods of a check: their namespace, and the value of their label [`CHECK_LABEL`].
    Check(ObjectKey),
    /// The `ResourceSlice`s of a DRA driver.
    Devices(Arc<str>),
}

/// A pod with this label is a run of the check that its value names.
pub(crate) const CHECK_LABEL: &str = "nodegate.dev/check";

/// A component that rules wait for by name, as far as it is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedComponent {
    /// What it is.
    pub component: Component,
    /// The group of its objects.
    pub group: ComponentGroup,
    /// Whether everything of it has been seen. Nothing may be decided by it before.
    pub is_seen: bool,
    /// Whether the cluster has its kind of object, as far as is known.
    pub is_served: bool,
}

/// A map by component group, for few entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByGroup<T>(SmallVec<[(ComponentGroup, T); 1]>);

impl<T> Default for ByGroup<T> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

impl<T> ByGroup<T> {
    /// The value of a group.
    pub fn get(&self, group: ComponentGroup) -> Option<&T> {
        let mut of_it = self.0.iter().filter(|(of, _)| *of == group);
        of_it.next().map(|(_, it)| it)
    }

    /// The value of a group, mutably.
    pub fn get_mut(&mut self, group: ComponentGroup) -> Option<&mut T> {
        let mut of_it = self.0.iter_mut().filter(|(of, _)| *of == group);
        of_it.next().map(|(_, it)| it)
    }

    /// All values.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, it)| it)
    }

    /// Removes the value of a group.
    pub fn remove(&mut self, group: ComponentGroup) -> Option<T> {
        let index = self.0.iter().position(|(of, _)| *of == group)?;
        Some(self.0.remove(index).1)
    }
}

impl<T: Default> ByGroup<T> {
    /// The value of a group, created if missing.
    pub fn entry(&mut self, group: ComponentGroup) -> &mut T {
        let index = self.0.iter().position(|(of, _)| *of == group);
        let index = index.unwrap_or_else(|| {
            self.0.push((group, T::default()));
            self.0.len() - 1
        });
        &mut self.0[index].1
    }
}

impl<T> FromIterator<(ComponentGroup, T)> for ByGroup<T> {
    fn from_iter<I: IntoIterator<Item = (ComponentGroup, T)>>(of: I) -> Self {
        Self(of.into_iter().collect())
    }
}
