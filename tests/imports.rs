//! What each file of the library imports, held against two laws: no file imports, directly or round several others, what
//! imports it; and whatever decides is pure.
//!
//! An import counts for the file that defines what is imported, whichever way it is re-exported. Paths in expressions count,
//! too, and those within macros. What is there for tests alone is left out.

#[path = "imports/circles.rs"]
mod circles;
#[path = "imports/modules.rs"]
mod modules;

use std::path::Path;

use modules::Modules;

/// Where circles remain, by how the paths of all their files begin.
const CIRCLES: [&str; 4] = [
    "src/engine/",
    "src/reporter/check/",
    "src/serve/server",
    "src/serve/tls/",
];

/// What has to be pure.
const PURE: [&str; 7] = [
    "src/rule",
    "src/plan",
    "src/repair",
    "src/guard",
    "src/condition",
    "src/selector",
    "src/engine",
];

/// What ought to be pure and is not, by how the paths begin.
const IMPURE: [&str; 1] = ["src/engine/"];

/// What those who are pure do without: other tasks, the network, clocks, and what counts for everybody.
const BESIDE: [&[&str]; 6] = [
    &["tokio"],
    &["kube", "Client"],
    &["prometheus"],
    &["Instant", "now"],
    &["SystemTime", "now"],
    &["Timestamp", "now"],
];

fn library() -> Modules {
    Modules::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs"))
}

/// What is not among the exceptions, which are each for something.
fn news<'a>(found: &'a [Vec<String>], exceptions: &[&str]) -> Vec<&'a Vec<String>> {
    let is_beneath = |files: &[String], start: &str| files.iter().all(|it| it.starts_with(start));
    for start in exceptions {
        assert!(
            found.iter().any(|files| is_beneath(files, start)),
            "nothing is amiss beneath {start}: take it off the list"
        );
    }
    let is_known = |files: &[String]| exceptions.iter().any(|start| is_beneath(files, start));
    found.iter().filter(|files| !is_known(files)).collect()
}

#[test]
fn no_file_imports_what_imports_it() {
    let circles = circles::of(&library().imports());
    let news: Vec<String> = news(&circles, &CIRCLES)
        .iter()
        .map(|circle| circle.join(" -> "))
        .collect();
    assert!(
        news.is_empty(),
        "{} circles:\n{}",
        news.len(),
        news.join("\n")
    );
}

#[test]
fn whoever_decides_is_pure() {
    let is_beside = |path: &Vec<String>| {
        BESIDE.iter().any(|names| match names {
            [krate] => path.first().is_some_and(|first| first == krate),
            names => path.windows(names.len()).any(|part| part == *names),
        })
    };
    let mut impure = Vec::new();
    for (file, paths) in library().mentions() {
        if PURE.iter().any(|start| file.starts_with(start)) {
            let paths = paths.iter().filter(|path| is_beside(path));
            impure.extend(paths.map(|path| vec![format!("{file}: {}", path.join("::"))]));
        }
    }
    let news = news(&impure, &IMPURE);
    assert!(news.is_empty(), "{news:#?}");
}
