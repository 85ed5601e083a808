//! The simulation finds what is known to be a fault: each protection of [`PROTECTIONS`] is taken out of a copy of the sources, and
//! a law breaks. Each is taken out behind a switch, so that the copy is built once.

mod table;

use std::fs;
use std::num::NonZero;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use nodegate_simulation::sim::{laws, scenarios};
use table::{PROTECTIONS, Protection};

/// The variable that names the protection to take out.
const SWITCH: &str = "NODEGATE_TAKEN_OUT";
/// For how many seconds schedules are tried without a protection, and with all of them.
const SECONDS: [&str; 2] = ["60", "2"];
/// What Cargo needs to build the simulation.
const SOURCES: [&str; 7] = [
    "Cargo.toml",
    "Cargo.lock",
    "rust-toolchain.toml",
    "src",
    "benches",
    "e2e",
    "hack",
];

#[test]
fn each_protection_has_a_law_and_a_scenario() {
    let laws = laws::all();
    let scenarios = scenarios::all();
    for it in PROTECTIONS {
        let bug = it.bug;
        assert!(laws.iter().any(|(law, _)| *law == it.law), "{bug}");
        let mut known = scenarios.iter();
        assert!(known.any(|known| known.name() == it.scenario), "{bug}");
    }
}

#[test]
#[ignore = "builds the simulation anew, and runs it for minutes: make protections"]
fn without_any_one_protection_a_law_breaks() {
    let lab = build();
    let mut intact: Vec<_> = PROTECTIONS.iter().map(|it| it.scenario).collect();
    intact.sort_unstable();
    intact.dedup();
    let intact = intact.into_iter().map(|scenario| (scenario, None));
    let without = PROTECTIONS.iter().map(|it| (it.scenario, Some(it)));
    let runs = Mutex::new(intact.chain(without));
    let failures = Mutex::new(Vec::new());
    let work = || {
        loop {
            let next = runs.lock().unwrap().next();
            let Some((scenario, without)) = next else {
                return;
            };
            if let Err(why) = run(&lab, scenario, without) {
                failures.lock().unwrap().push(why);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(work);
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Builds the simulation with all switches; returns the program.
fn build() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("protections");
    let copy = folder.join("sources");
    let _ = fs::remove_dir_all(&copy);
    fs::create_dir_all(&copy).unwrap();
    let mut cp = Command::new("cp");
    cp.arg("-r").args(SOURCES).arg(&copy).current_dir(root());
    assert!(cp.status().unwrap().success(), "the sources are not copied");
    add_switches(&copy);
    let target = folder.join("target");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--profile", "lab"])
        .args(["--package", "nodegate-simulation", "--bin", "lab"])
        .current_dir(&copy)
        .env("CARGO_TARGET_DIR", &target)
        .status();
    assert!(status.unwrap().success(), "the copy cannot be built");
    target.join("lab/lab")
}

fn add_switches(copy: &Path) {
    let mut files: Vec<_> = all_edits().map(|(_, (file, ..))| file).collect();
    files.sort_unstable();
    files.dedup();
    for file in files {
        let path = copy.join(file);
        let mut source = fs::read_to_string(&path).unwrap_or_default();
        let edits = all_edits().filter(|(_, (it, ..))| *it == file);
        let edits = edits.map(|(it, (_, old, new))| {
            let places = places(&source, old);
            let [place] = &places[..] else {
                panic!(
                    "{}: {file} has this {} times, not once: {old}\nThe code moved: say anew in tests/protections/table.rs \
                     how it is taken out.",
                    it.bug,
                    places.len()
                );
            };
            let is_taken_out = format!("crate::taken_out({:?})", it.bug);
            let new = if new.contains("TAKEN_OUT") {
                new.replace("TAKEN_OUT", &is_taken_out)
            } else {
                format!("(if {is_taken_out} {{ {new} }} else {{ {old} }})")
            };
            (place.clone(), new)
        });
        let mut edits: Vec<_> = edits.collect();
        edits.sort_by_key(|(place, _)| place.start);
        for pair in edits.windows(2) {
            let is_apart = pair[0].0.end <= pair[1].0.start;
            assert!(is_apart, "two edits of {file} overlap: {pair:?}");
        }
        for (place, new) in edits.into_iter().rev() {
            source.replace_range(place, &new);
        }
        fs::write(&path, source).unwrap();
    }
    for member in ["core", "engine"] {
        let library = copy.join("src").join(member).join("lib.rs");
        let source = fs::read_to_string(&library).unwrap();
        let switch = format!(
            "/// Whether this protection is taken out.
            pub(crate) fn taken_out(protection: &str) -> bool {{
                static WHICH: std::sync::OnceLock<String> = std::sync::OnceLock::new();
                let which = || std::env::var({SWITCH:?}).unwrap_or_default();
                WHICH.get_or_init(which) == protection
            }}"
        );
        let source = format!("#![allow(warnings)]\n{source}\n{switch}\n");
        fs::write(&library, source).unwrap();
    }
}

fn all_edits() -> impl Iterator<Item = (&'static Protection, table::Edit)> {
    let edits = |it: &'static Protection| it.edits.iter().map(move |edit| (it, *edit));
    PROTECTIONS.iter().flat_map(edits)
}

/// Where a text is in a source, however its lines are broken.
fn places(source: &str, text: &str) -> Vec<Range<usize>> {
    let is_ink = |it: &(usize, char)| !it.1.is_whitespace();
    let source: Vec<_> = source.char_indices().filter(is_ink).collect();
    let text: Vec<_> = text.chars().filter(|it| !it.is_whitespace()).collect();
    let is_it = |at: &&[(usize, char)]| at.iter().map(|(_, it)| it).eq(&text);
    let places = source.windows(text.len()).filter(is_it);
    let places = places.filter_map(|at| {
        let (last, it) = at.last()?;
        Some(at[0].0..last + it.len_utf8())
    });
    places.collect()
}

/// Tries schedules of a scenario, without a protection until its law breaks.
fn run(lab: &Path, scenario: &str, without: Option<&Protection>) -> Result<(), String> {
    let began = Instant::now();
    let mut command = Command::new(lab);
    command.args(["--scenario", scenario]);
    let Some(protection) = without else {
        command.args(["--seconds", SECONDS[1]]);
        let output = command.output().unwrap();
        let findings = String::from_utf8_lossy(&output.stdout);
        let is_good = output.status.success();
        return is_good.then_some(()).ok_or_else(|| {
            format!("{scenario} breaks a law with all protections in place:\n{findings}")
        });
    };
    let Protection { bug, law, .. } = protection;
    command.args(["--seconds", SECONDS[0], "--until-broken", law]);
    let output = command.env(SWITCH, bug).output().unwrap();
    let findings = String::from_utf8_lossy(&output.stdout);
    let seconds = began.elapsed().as_secs();
    let mut broken = findings.lines().filter_map(|line| line.strip_prefix("# "));
    if broken.any(|it| it.starts_with(&format!("{law}, after "))) {
        println!("{bug}: {law} ({scenario}, {seconds} s)");
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{bug}: {scenario} did not break the law in {seconds} s: {law}\n{findings}{errors}"
    ))
}
