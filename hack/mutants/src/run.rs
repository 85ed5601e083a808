//! Runs the unit tests: each alone, to see which switches it passes, and all that pass a switch with its mutant.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// A slower test would be most of what a mutant takes.
const SLOW: f64 = 0.5;
/// A test that takes longer, and several times as long as without a mutant, does not end.
const PATIENCE: Duration = Duration::from_secs(5);
/// All tests together take some seconds.
const MOST: Duration = Duration::from_secs(60);
/// The memory of the tests, in KiB: some mutants would take all.
const MEMORY: u32 = 4 << 20;
const POLL: Duration = Duration::from_millis(5);

/// A unit test that succeeds without mutants.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Test {
    pub(crate) name: String,
    pub(crate) seconds: f64,
    /// The mutants whose switches it passes.
    pub(crate) passes: Vec<u32>,
}

impl Test {
    /// Whether it runs only where no other test has noticed.
    pub(crate) fn is_slow(&self) -> bool {
        self.seconds > SLOW
    }
}

/// What became of tests.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The tests that failed, and at the end the one that did not.
    pub(crate) failed: Vec<String>,
    /// Whether the last of them went on and on.
    pub(crate) hangs: bool,
}

/// The unit tests with all switches.
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// The tree it was built from.
    pub(crate) copy: PathBuf,
}

impl Program {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            path: folder.join("unit-tests"),
            copy: folder.join("tree"),
        }
    }

    pub(crate) fn tests(&self) -> Result<Vec<String>> {
        let mut command = Command::new(&self.path);
        let output = command.args(["--list", "--format", "terse"]).output()?;
        ensure!(output.status.success(), "the unit tests cannot be listed");
        let names = String::from_utf8(output.stdout)?;
        let names = names.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(str::to_owned).collect())
    }

    /// Runs a test without mutants. Files are written to `folder`. `None` if it fails.
    pub(crate) fn measure(&self, name: &str, folder: &Path) -> Result<Option<Test>> {
        let passed = folder.join("passed");
        File::create(&passed)?;
        let began = Instant::now();
        let variable = ("MUTANTS_PASSED", &*passed.to_string_lossy());
        let outcome = self.run(variable, &[name], MOST, folder)?;
        let seconds = began.elapsed().as_secs_f64();
        let passed = fs::read(&passed)?;
        let (passes, _) = passed.as_chunks::<4>();
        Ok(outcome.failed.is_empty().then(|| Test {
            name: name.to_owned(),
            seconds,
            passes: passes.iter().map(|it| u32::from_le_bytes(*it)).collect(),
        }))
    }

    /// Runs tests with a mutant.
    pub(crate) fn try_mutant(&self, id: u32, tests: &[&Test], folder: &Path) -> Result<Outcome> {
        if tests.is_empty() {
            return Ok(Outcome::default());
        }
        let names: Vec<&str> = tests.iter().map(|test| &*test.name).collect();
        let slowest = tests.iter().map(|test| test.seconds).fold(0.0, f64::max);
        let patience = PATIENCE.max(Duration::from_secs_f64(5.0 * slowest));
        self.run(("MUTANT", &id.to_string()), &names, patience, folder)
    }

    /// Runs tests until they end or one goes on for too long.
    fn run(
        &self,
        (variable, value): (&str, &str),
        tests: &[&str],
        patience: Duration,
        folder: &Path,
    ) -> Result<Outcome> {
        let printed = folder.join("printed");
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"")]);
        command
            .arg(&self.path)
            .args(["--test-threads", "1", "--exact"]);
        command
            .args(tests)
            .env(variable, value)
            .current_dir(&self.copy);
        // The same cases each time. Those that fail are neither made small nor kept.
        command.envs([
            ("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1"),
            ("PROPTEST_MAX_SHRINK_ITERS", "0"),
            ("PROPTEST_RNG_SEED", "1"),
            ("RUST_BACKTRACE", "0"),
        ]);
        command
            .stdout(File::create(&printed)?)
            .stderr(Stdio::null());
        let mut child = command.spawn().context("cannot run the unit tests")?;
        let began = Instant::now();
        let (mut length, mut since) = (0, began);
        let mut hangs = false;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            let longer = fs::metadata(&printed)?.len();
            if longer != length {
                (length, since) = (longer, Instant::now());
            }
            if !hangs && (since.elapsed() > patience || began.elapsed() > MOST) {
                hangs = true;
                child.kill()?;
            }
            thread::sleep(POLL);
        };
        let printed = fs::read(&printed)?;
        let failed = failed(&String::from_utf8_lossy(&printed));
        let is_told = status.success() || !failed.is_empty();
        ensure!(is_told, "the unit tests do not run: {status}");
        Ok(Outcome { failed, hangs })
    }
}

/// The tests that did not succeed by what was printed, the one at which it ended included.
fn failed(printed: &str) -> Vec<String> {
    let lines = printed.lines();
    let lines = lines.filter_map(|line| line.strip_prefix("test "));
    let lines = lines.filter_map(|line| line.split_once(" ... "));
    let failed = lines.filter(|(_, result)| *result != "ok" && !result.starts_with("ignored"));
    let names = failed.map(|(name, _)| name.trim_end_matches(" - should panic").to_owned());
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_fail_or_do_not_end_have_noticed() {
        let printed = "\nrunning 4 tests\ntest a::b ... ok\ntest a::c ... FAILED\ntest a::d - should panic ... FAILED\n\
                       test a::e ... ignored, why\ntest a::f ... ";
        assert_eq!(failed(printed), ["a::c", "a::d", "a::f"]);
        assert!(failed("test result: ok. 3 passed; 0 failed\n").is_empty());
    }
}
