//! The rooms of a crate: the files and folders beside its `lib.rs`. Those that use each other in a circle cannot be understood one
//! by one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The rooms of the crate in this folder that are part of a circle or lead to one, each with the rooms that it uses.
pub(crate) fn circles(krate: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut uses = BTreeMap::new();
    for entry in fs::read_dir(krate).unwrap() {
        let path = entry.unwrap().path();
        let room = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if !["lib", "main", "testing", "tests"].contains(&&*room) {
            read(&path, true, uses.entry(room).or_default());
        }
    }
    let rooms: BTreeSet<_> = uses.keys().cloned().collect();
    for (room, used) in &mut uses {
        used.retain(|it| it != room && rooms.contains(it));
    }
    loop {
        let left: BTreeSet<_> = uses.keys().cloned().collect();
        uses.retain(|_, used| !used.is_disjoint(&left));
        if uses.len() == left.len() {
            return uses;
        }
    }
}

/// Adds what follows `crate::` in the code of a file or folder, and `super::` in a file beside `lib.rs`.
fn read(path: &Path, beside: bool, used: &mut BTreeSet<String>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            read(&entry.unwrap().path(), false, used);
        }
        return;
    }
    if path.extension() != Some("rs".as_ref()) || path.to_str().unwrap().contains("tests") {
        return;
    }
    let text = fs::read_to_string(path).unwrap();
    let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap();
    let lines = code.lines().filter(|line| !line.trim().starts_with("//"));
    for root in ["crate::", "super::"]
        .iter()
        .take(if beside { 2 } else { 1 })
    {
        for after in lines.clone().flat_map(|line| line.split(root).skip(1)) {
            let is_name = |c: char| c.is_alphanumeric() || c == '_';
            let name: String = after.chars().take_while(|c| is_name(*c)).collect();
            used.insert(name);
        }
    }
}
