//! Hashes, and maps and sets, with a fixed hasher: they iterate in the same order in every process, so simulated runs can be repeated. Keys
//! come from the API server, which makes collision attacks impractical.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

type Hasher = BuildHasherDefault<DefaultHasher>;

pub(super) type Map<K, V> = HashMap<K, V, Hasher>;

pub(super) type Set<K> = HashSet<K, Hasher>;

pub(super) fn hash(value: impl Hash) -> u64 {
    Hasher::default().hash_one(value)
}
