//! Maps and sets that go through their entries in the same order in every process that does the same things with them, so
//! that a run of the laboratory can be repeated. Keys come from the API server, and a flood of them that collide would
//! have to get past it first.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, DefaultHasher};

type Hasher = BuildHasherDefault<DefaultHasher>;

/// A map with a fixed hasher.
pub type Map<K, V> = HashMap<K, V, Hasher>;

/// A set with a fixed hasher.
pub type Set<K> = HashSet<K, Hasher>;
