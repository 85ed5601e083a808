//! Cohorts of pods and `DaemonSet`s that are listed and watched together: those of a class, or of one `DaemonSet` that rules
//! wait for by name.

use smallvec::SmallVec;

use crate::object::ObjectKey;

/// What tells a cohort from all others. Classes have their index in the configuration; a `DaemonSet` that rules wait for by
/// name has a number above those, which is never given again while the process lives.
pub type Cohort = usize;

/// A `DaemonSet` that rules wait for by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedDaemonSet {
    /// Its namespace and name.
    pub key: ObjectKey,
    /// The cohort of it and its pods.
    pub cohort: Cohort,
    /// Whether everything has been seen that there is of it. Nothing is decided by it before.
    pub is_seen: bool,
}

/// Something of each cohort; few cohorts have any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByCohort<T>(SmallVec<[(Cohort, T); 1]>);

impl<T> Default for ByCohort<T> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

impl<T> ByCohort<T> {
    /// What there is of a cohort.
    #[must_use]
    pub fn get(&self, cohort: Cohort) -> Option<&T> {
        let mut of_it = self.0.iter().filter(|(of, _)| *of == cohort);
        of_it.next().map(|(_, it)| it)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, cohort: Cohort) -> Option<&mut T> {
        let mut of_it = self.0.iter_mut().filter(|(of, _)| *of == cohort);
        of_it.next().map(|(_, it)| it)
    }

    /// What there is of each cohort.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, it)| it)
    }

    /// Drops what there is of a cohort.
    pub fn remove(&mut self, cohort: Cohort) -> Option<T> {
        let index = self.0.iter().position(|(of, _)| *of == cohort)?;
        Some(self.0.remove(index).1)
    }
}

impl<T: Default> ByCohort<T> {
    /// What there is of a cohort, from now on if there was nothing.
    pub fn entry(&mut self, cohort: Cohort) -> &mut T {
        let index = self.0.iter().position(|(of, _)| *of == cohort);
        let index = index.unwrap_or_else(|| {
            self.0.push((cohort, T::default()));
            self.0.len() - 1
        });
        &mut self.0[index].1
    }
}

impl<T> FromIterator<(Cohort, T)> for ByCohort<T> {
    fn from_iter<I: IntoIterator<Item = (Cohort, T)>>(of: I) -> Self {
        Self(of.into_iter().collect())
    }
}
