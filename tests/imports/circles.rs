//! Cycles in a graph of imports.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Which files each file imports from.
pub(crate) type Imports = BTreeMap<String, BTreeSet<String>>;

/// The shortest cycle through each import that is part of one; each cycle once, shortest first. A cycle begins with its first
/// file by name.
pub(crate) fn of(imports: &Imports) -> Vec<Vec<String>> {
    let mut circles = BTreeSet::new();
    for (file, imported) in imports {
        for next in imported {
            if let Some(mut circle) = path(imports, next, file) {
                let first = (0..circle.len()).min_by_key(|index| &circle[*index]);
                circle.rotate_left(first.unwrap_or_default());
                circles.insert((circle.len(), circle));
            }
        }
    }
    circles.into_iter().map(|(_, circle)| circle).collect()
}

/// The shortest path from one file to another.
fn path(imports: &Imports, from: &str, to: &str) -> Option<Vec<String>> {
    let mut before: BTreeMap<&str, Option<&str>> = BTreeMap::from([(from, None)]);
    let mut queue = VecDeque::from([from]);
    while let Some(file) = queue.pop_front() {
        if file == to {
            let mut path = vec![file.to_owned()];
            let mut at = file;
            while let Some(Some(earlier)) = before.get(at) {
                path.push((*earlier).to_owned());
                at = earlier;
            }
            path.reverse();
            return Some(path);
        }
        for next in imports.get(file).into_iter().flatten() {
            if !before.contains_key(next.as_str()) {
                before.insert(next, Some(file));
                queue.push_back(next);
            }
        }
    }
    None
}

#[test]
fn circles_are_found_shortest_first() {
    let edges = [
        ("a", "b"),
        ("b", "c"),
        ("c", "a"),
        ("d", "c"),
        ("c", "d"),
        ("e", "a"),
    ];
    let mut imports = Imports::new();
    for (from, to) in edges {
        imports.entry(from.into()).or_default().insert(to.into());
    }
    assert_eq!(of(&imports), [vec!["c", "d"], vec!["a", "b", "c"]]);
}
