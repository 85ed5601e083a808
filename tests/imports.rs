//! Laws about the imports of the library: its folders import each other in no cycle, nor do the files and folders of the engine (files
//! of another folder may know each other); whatever decides is pure; and nobody imports the command line or the controller, nor does
//! one of them the other. The command line may import the deciding code. In the testkit, what is about any cluster knows no Nodegate.
//!
//! An import counts for the file that defines the imported item, however it is re-exported. Paths in expressions and macros
//! count too; test code does not.

#[path = "imports/circles.rs"]
mod circles;
#[path = "imports/modules.rs"]
mod modules;

use std::path::Path;

use modules::Modules;

/// Folders that must be pure.
const PURE: [&str; 7] = [
    "src/rule",
    "src/plan",
    "src/repair",
    "src/guard",
    "src/condition",
    "src/selector",
    "src/engine",
];

/// What pure code must not use: other tasks, the network, clocks and global state.
const BESIDE: [&[&str]; 6] = [
    &["tokio"],
    &["kube", "Client"],
    &["prometheus"],
    &["Instant", "now"],
    &["SystemTime", "now"],
    &["Timestamp", "now"],
];

fn library() -> Modules {
    of_crate("")
}

/// The modules of the crate in this folder.
fn of_crate(folder: &str) -> Modules {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    Modules::read(&folder.join("src/lib.rs"))
}

/// What files outside this folder import from it.
fn imported_from(folder: &str, modules: &Modules) -> Vec<String> {
    let files = modules.imports().into_iter();
    let others = files.filter(|(file, _)| !file.starts_with(folder));
    let imported = others.flat_map(|(file, imported)| {
        let imported = imported.into_iter().filter(|it| it.starts_with(folder));
        imported.map(move |it| format!("{file}: {it}"))
    });
    imported.collect()
}

/// The folder of `src` that a file belongs to, or the file itself where it is in none.
fn folder(file: &str) -> String {
    let inner = file.strip_prefix("src/").unwrap_or(file);
    let first = inner.split('/').next().unwrap_or(inner);
    first.trim_end_matches(".rs").to_owned()
}

/// The circles of imports between these parts of the library; `None` for files that are of no part.
fn circles_between(part: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut imports = circles::Imports::new();
    for (file, imported) in library().imports() {
        let Some(from) = part(&file) else {
            continue;
        };
        let others = imported.iter().filter_map(|it| part(it));
        let others = others.filter(|it| *it != from).collect::<Vec<_>>();
        imports.entry(from).or_default().extend(others);
    }
    let circles = circles::of(&imports).into_iter();
    circles.map(|circle| circle.join(" -> ")).collect()
}

#[test]
fn folders_import_each_other_in_no_circle() {
    let circles = circles_between(|file| Some(folder(file)));
    assert!(circles.is_empty(), "{circles:#?}");
}

#[test]
fn inside_the_engine_nothing_imports_what_imports_it() {
    let circles = circles_between(room);
    assert!(circles.is_empty(), "{circles:#?}");
}

/// The file or folder of the engine that a file is in.
fn room(file: &str) -> Option<String> {
    let inner = file.strip_prefix("src/engine/")?;
    let is_of_room = inner != "mod.rs" && !inner.starts_with("tests/");
    is_of_room.then(|| folder(inner))
}

/// The impure part of the command line.
const SHELL: [&str; 4] = [
    "src/cli/check/installation.rs",
    "src/cli/dump",
    "src/cli/read",
    "src/cli/run",
];

fn is_pure(file: &str) -> bool {
    let is_of = |starts: &[&str]| starts.iter().any(|start| file.starts_with(start));
    is_of(&PURE) || (file.starts_with("src/cli/") && !is_of(&SHELL))
}

#[test]
fn nobody_imports_the_command_line_or_the_controller() {
    for program in ["src/cli/", "src/controller/"] {
        let wrong = imported_from(program, &library());
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

#[test]
fn what_is_about_any_cluster_imports_nothing_about_nodegate() {
    let wrong = imported_from("src/nodegate/", &of_crate("e2e/testkit"));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn code_that_decides_is_pure() {
    let is_beside = |path: &Vec<String>| {
        BESIDE.iter().any(|names| match names {
            [krate] => path.first().is_some_and(|first| first == krate),
            names => path.windows(names.len()).any(|part| part == *names),
        })
    };
    let mut impure = Vec::new();
    for (file, paths) in library().mentions() {
        if is_pure(&file) {
            let paths = paths.iter().filter(|path| is_beside(path));
            impure.extend(paths.map(|path| format!("{file}: {}", path.join("::"))));
        }
    }
    assert!(impure.is_empty(), "{impure:#?}");
}
