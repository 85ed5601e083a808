//! The copy of the tree that has the switches, and how it becomes a program.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::sites::{Mutant, with_switches};

/// Whatever decides. The rest takes a cluster to test.
const DECIDES: [&str; 10] = [
    "src/condition/",
    "src/engine/",
    "src/finding/",
    "src/guard/",
    "src/object/",
    "src/plan/",
    "src/repair/",
    "src/rule/",
    "src/selector/",
    "src/webhook/",
];

/// What each switch calls.
const SWITCH: &str = include_str!("../switch.rs");

/// The files that Git knows, and new ones; and where their copy is.
pub(crate) struct Tree<'a> {
    root: &'a Path,
    copy: &'a Path,
    files: Vec<String>,
}

impl<'a> Tree<'a> {
    pub(crate) fn new(root: &'a Path, copy: &'a Path) -> Result<Self> {
        let mut git = Command::new("git");
        git.args("ls-files -z --cached --others --exclude-standard".split(' '));
        let output = git.current_dir(root).output().context("cannot run git")?;
        ensure!(output.status.success(), "git does not list the files");
        let files = String::from_utf8(output.stdout)?;
        let files = files.split_terminator('\0').map(str::to_owned);
        let files = files.filter(|file| root.join(file).is_file()).collect();
        Ok(Self { root, copy, files })
    }

    /// What changes whenever the library does.
    pub(crate) fn hash(&self) -> Result<u64> {
        let mut hasher = DefaultHasher::new();
        let is_of_library = |file: &&String| file.starts_with("src/") || *file == "Cargo.lock";
        for file in self.files.iter().filter(is_of_library) {
            (file, fs::read(self.root.join(file))?).hash(&mut hasher);
        }
        Ok(hasher.finish())
    }

    /// Builds the unit tests with all switches; returns the program and the mutants in it.
    ///
    /// Some mutants are no Rust, such as a difference of strings. They are left out when the compiler has complained of them.
    pub(crate) fn build(&self, target: &Path) -> Result<(PathBuf, Vec<Mutant>)> {
        if self.copy.exists() {
            fs::remove_dir_all(self.copy)?;
        }
        for file in &self.files {
            let copied = self.copy.join(file);
            fs::create_dir_all(copied.parent().unwrap_or(self.copy))?;
            fs::copy(self.root.join(file), copied)
                .with_context(|| format!("cannot copy {file}"))?;
        }
        let mut left_out = BTreeSet::new();
        loop {
            let mut mutants = self.add_switches(&left_out)?;
            mutants.retain(|it| !left_out.contains(&it.id));
            let errors = match self.compile(target)? {
                Compiled::Program(program) => return Ok((program, mutants)),
                Compiled::Not(errors) => errors,
            };
            let before = left_out.len();
            for (file, line) in errors.iter().flat_map(|error| &error.lines) {
                left_out.extend(narrowest(&mutants, file, *line));
            }
            if left_out.len() == before {
                let errors = errors.into_iter().map(|error| error.text);
                bail!("the copy cannot be built:\n{}", errors.collect::<String>());
            }
            eprintln!("{} mutants are no Rust and left out", left_out.len());
        }
    }

    fn add_switches(&self, left_out: &BTreeSet<u32>) -> Result<Vec<Mutant>> {
        let mut mutants = Vec::new();
        for file in self.files.iter().filter(|file| decides(file)) {
            let source = fs::read_to_string(self.root.join(file))?;
            let text = with_switches(file, &source, left_out, &mut mutants);
            let text = text.with_context(|| format!("cannot read {file}"))?;
            fs::write(self.copy.join(file), text)?;
        }
        let library = fs::read_to_string(self.root.join("src/lib.rs"))?;
        let library = format!("#![allow(warnings)]\n{library}\npub(crate) mod mutants;\n");
        fs::write(self.copy.join("src/lib.rs"), library)?;
        fs::write(self.copy.join("src/mutants.rs"), SWITCH)?;
        Ok(mutants)
    }

    fn compile(&self, target: &Path) -> Result<Compiled> {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(
            "test --package nodegate --lib --no-run --locked --message-format json".split(' '),
        );
        // Built once and run many times. The dependencies are as in other builds.
        for setting in [
            "debug=false",
            "incremental=false",
            "package.nodegate.opt-level=1",
        ] {
            cargo.args(["--config", &format!("profile.dev.{setting}")]);
        }
        cargo.env("CARGO_TARGET_DIR", target).current_dir(self.copy);
        let output = cargo.stderr(Stdio::inherit()).output();
        let output = String::from_utf8(output.context("cannot run cargo")?.stdout)?;
        let mut errors = Vec::new();
        for line in output.lines() {
            let Ok(message) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            if message["target"]["name"] == "nodegate"
                && let Some(program) = message["executable"].as_str()
            {
                return Ok(Compiled::Program(program.into()));
            }
            if message["message"]["level"] == "error" {
                errors.push(Error::of(&message["message"]));
            }
        }
        Ok(Compiled::Not(errors))
    }
}

enum Compiled {
    Program(PathBuf),
    Not(Vec<Error>),
}

struct Error {
    text: String,
    /// The file and line of what it is about, and of the macros that brought it there.
    lines: Vec<(String, usize)>,
}

impl Error {
    fn of(message: &Value) -> Self {
        let mut lines = Vec::new();
        let spans = message["spans"].as_array().into_iter().flatten();
        for mut span in spans.filter(|span| span["is_primary"] == true) {
            while let Some(file) = span["file_name"].as_str() {
                let line = span["line_start"].as_u64().unwrap_or_default();
                lines.push((file.to_owned(), usize::try_from(line).unwrap_or_default()));
                span = &span["expansion"]["span"];
            }
        }
        let text = message["rendered"].as_str().unwrap_or_default().to_owned();
        Self { text, lines }
    }
}

/// The mutants on a line whose switches are around the fewest lines.
fn narrowest(mutants: &[Mutant], file: &str, line: usize) -> Vec<u32> {
    let is_there = |it: &&Mutant| it.file == file && it.lines.0 <= line && line <= it.lines.1;
    let there = mutants.iter().filter(is_there);
    let length = |it: &Mutant| it.lines.1 - it.lines.0;
    let fewest = there.clone().map(length).min();
    let narrowest = there.filter(|it| Some(length(it)) == fewest);
    narrowest.map(|it| it.id).collect()
}

fn decides(file: &str) -> bool {
    let Some(module) = file.strip_suffix(".rs") else {
        return false;
    };
    let mut names = module.split('/');
    let is_test = names.any(|name| matches!(name, "tests" | "testing"));
    !is_test && DECIDES.iter().any(|folder| file.starts_with(folder))
}
