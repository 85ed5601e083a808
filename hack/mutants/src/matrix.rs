//! Which test notices which mutant, and what that says about the code and its tests.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::run::Test;
use crate::sites::Mutant;

/// What became of a mutant: a line of the matrix.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Trial {
    #[serde(flatten)]
    pub(crate) mutant: Mutant,
    /// How many tests pass its switch.
    pub(crate) tests: usize,
    pub(crate) noticed: Vec<String>,
    /// Whether the last of these noticed by not ending.
    pub(crate) hangs: bool,
}

const FILE: &str = "matrix.jsonl";

/// The lines of the matrix. The last one may have been written in part.
pub(crate) fn read(folder: &Path) -> Vec<Trial> {
    let text = fs::read_to_string(folder.join(FILE)).unwrap_or_default();
    let trials = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    trials.collect()
}

/// Where lines are added.
pub(crate) fn open(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).open(folder.join(FILE))
}

pub(crate) fn clear(folder: &Path) -> io::Result<()> {
    open(folder)?.set_len(0)
}

/// What the matrix says, the most important last.
pub(crate) struct Report<'a> {
    pub(crate) root: &'a Path,
    pub(crate) mutants: &'a [Mutant],
    pub(crate) trials: &'a [Trial],
    pub(crate) tests: &'a [Test],
}

impl Report<'_> {
    /// How many of the mutants were noticed, in percent.
    pub(crate) fn rate(&self) -> usize {
        let noticed = self.trials.iter().filter(|it| !it.noticed.is_empty());
        noticed.count() * 100 / self.trials.len().max(1)
    }

    /// How many mutants each test notices, and how many it alone does.
    fn by_test(&self) -> BTreeMap<&str, (usize, usize)> {
        let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for trial in self.trials {
            for test in &trial.noticed {
                let (all, alone) = counts.entry(test).or_default();
                *all += 1;
                *alone += usize::from(trial.noticed.len() == 1);
            }
        }
        counts
    }

    /// Few tests that together notice whatever any test does: always the one that notices most of what is left.
    fn smallest_set(&self) -> BTreeSet<&str> {
        let noticed = self.trials.iter().filter(|it| !it.noticed.is_empty());
        let mut left: Vec<&Trial> = noticed.collect();
        let mut set = BTreeSet::new();
        loop {
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            for test in left.iter().flat_map(|trial| &trial.noticed) {
                *counts.entry(test).or_default() += 1;
            }
            let most = counts
                .iter()
                .max_by_key(|(test, count)| (**count, Reverse(**test)));
            let Some((&most, _)) = most else {
                return set;
            };
            set.insert(most);
            left.retain(|trial| trial.noticed.iter().all(|test| test != most));
        }
    }

    fn write_tests(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by_test = self.by_test();
        let needed = self.smallest_set();
        let slow = self.tests.iter().filter(|test| test.is_slow());
        let slow: BTreeSet<&str> = slow.map(|test| &*test.name).collect();
        let mut files: BTreeMap<String, Vec<(usize, String)>> = BTreeMap::new();
        for (test, (all, _)) in &by_test {
            // Slow tests did not run with most mutants, so nothing is known of them.
            if needed.contains(test) || slow.contains(test) {
                continue;
            }
            let (file, line, lines) =
                place(self.root, test).unwrap_or(("elsewhere".to_owned(), 0, 0));
            let name = test.rsplit("::").next().unwrap_or(test);
            let row = format!("  {line}: {name} ({all})");
            files.entry(file).or_default().push((lines, row));
        }
        writeln!(
            f,
            "Tests that may go: {} of the {} that notice any of these mutants notice all. The others, with what each notices:",
            needed.len(),
            by_test.len()
        )?;
        for (file, rows) in files {
            let lines: usize = rows.iter().map(|(lines, _)| lines).sum();
            writeln!(f, "{file}: {} tests, {lines} lines", rows.len())?;
            for (_, row) in rows {
                writeln!(f, "{row}")?;
            }
        }
        writeln!(f, "\nTests that alone notice a mutant, and how many:")?;
        for (test, (_, alone)) in by_test.iter().filter(|(_, (_, alone))| *alone > 0) {
            writeln!(f, "  {test} ({alone})")?;
        }
        Ok(())
    }

    fn write_mutants(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nMutants that no test notices:")?;
        let unnoticed = self.trials.iter().filter(|it| it.noticed.is_empty());
        let mut unnoticed: Vec<_> = unnoticed.collect();
        unnoticed.sort_by_key(|it| it.mutant.id);
        for trial in unnoticed {
            let unreached = ["", " (no test comes there)"][usize::from(trial.tests == 0)];
            writeln!(f, "  {}{unreached}", trial.mutant)?;
        }
        Ok(())
    }

    fn write_folders(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut folders: BTreeMap<String, [usize; 4]> = BTreeMap::new();
        let mut count = |mutant: &Mutant, counted: [bool; 4]| {
            let inner = mutant.file.strip_prefix("src/").unwrap_or(&mutant.file);
            for folder in [inner.split('/').next().unwrap_or(inner), "all"] {
                let counts = folders.entry(folder.to_owned()).or_default();
                for (count, counts) in counts.iter_mut().zip(counted) {
                    *count += usize::from(counts);
                }
            }
        };
        for mutant in self.mutants {
            count(mutant, [true, false, false, false]);
        }
        for trial in self.trials {
            let is_noticed = !trial.noticed.is_empty();
            count(&trial.mutant, [false, true, is_noticed, trial.hangs]);
        }
        writeln!(
            f,
            "\n| folder | mutants | tried | noticed | by hanging | noticed, % |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for (folder, [mutants, tried, noticed, hangs]) in folders {
            let rate = noticed * 100 / tried.max(1);
            writeln!(
                f,
                "| {folder} | {mutants} | {tried} | {noticed} | {hangs} | {rate} |"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_tests(f)?;
        self.write_mutants(f)?;
        self.write_folders(f)
    }
}

/// The file of a test, its first line, and how many it has.
fn place(root: &Path, test: &str) -> Option<(String, usize, usize)> {
    let mut modules: Vec<&str> = test.split("::").collect();
    let function = format!("fn {}(", modules.pop()?);
    while !modules.is_empty() {
        let path = modules.join("/");
        for file in [format!("src/{path}.rs"), format!("src/{path}/mod.rs")] {
            let Ok(text) = fs::read_to_string(root.join(&file)) else {
                continue;
            };
            let lines: Vec<&str> = text.lines().collect();
            let first = lines.iter().position(|line| line.contains(&function))?;
            let indent = lines[first].len() - lines[first].trim_start().len();
            let is_end = |line: &&str| line.trim_start() == "}" && line.len() == indent + 1;
            let end = lines[first..].iter().position(is_end)?;
            return Some((file, first + 1, end + 1));
        }
        modules.pop();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_tests_that_notice_the_same_one_is_enough() {
        let trials: Vec<_> = [&["a", "b"][..], &["a"], &["b", "c"], &[]]
            .into_iter()
            .map(|noticed| Trial {
                mutant: serde_json::from_str(
                    r#"{"id": 1, "file": "src/plan/make.rs", "line": 1, "column": 1, "change": ""}"#,
                )
                .unwrap(),
                tests: 3,
                noticed: noticed.iter().map(|&it| it.to_owned()).collect(),
                hangs: false,
            })
            .collect();
        let report = Report {
            root: Path::new("."),
            mutants: &[],
            trials: &trials,
            tests: &[],
        };
        assert_eq!(report.smallest_set(), BTreeSet::from(["a", "b"]));
        assert_eq!(
            report.by_test(),
            BTreeMap::from([("a", (2, 1)), ("b", (2, 0)), ("c", (1, 0))])
        );
        assert_eq!(report.rate(), 75);
    }
}
