//! What a machine loses when it goes down: every process of containers, and every mount that was made for them.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::mount::{MntFlags, umount2};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

/// Where containers and pods have mounts.
const MOUNTED: [&str; 4] = [
    "/run/containerd/",
    "/run/netns/",
    "/var/lib/containerd/",
    "/var/lib/kubelet/",
];

/// Folders that are in the memory of a machine.
const IN_MEMORY: [&str; 2] = ["/run/containerd", "/run/netns"];

/// A process as `/proc` has it.
#[derive(Debug)]
struct Seen {
    pid: i32,
    arguments: Vec<String>,
    /// Whether its processes are counted from 1, as a container's are.
    is_contained: bool,
}

impl Seen {
    fn is_of_containers(&self) -> bool {
        let program = self.arguments.first().map_or("", String::as_str);
        self.is_contained || program.contains("containerd-shim")
    }
}

fn processes() -> Result<Vec<Seen>> {
    let ours = fs::read_link("/proc/self/ns/pid").context("asking for this process's namespace")?;
    let entries = fs::read_dir("/proc").context("listing processes")?;
    let mut seen = Vec::new();
    for entry in entries.filter_map(Result::ok) {
        let Ok(pid) = entry.file_name().to_string_lossy().parse() else {
            continue;
        };
        // It may end at any moment.
        let Ok(space) = fs::read_link(entry.path().join("ns/pid")) else {
            continue;
        };
        let Ok(line) = fs::read_to_string(entry.path().join("cmdline")) else {
            continue;
        };
        let arguments = line.split_terminator('\0').map(str::to_owned);
        seen.push(Seen {
            pid,
            arguments: arguments.collect(),
            is_contained: space != ours,
        });
    }
    Ok(seen)
}

/// Kills what runs with these first arguments in containers, and says how many that were.
pub fn kill_with_arguments(arguments: &[&str]) -> Result<usize> {
    let arguments: Vec<String> = arguments.iter().map(|&one| one.to_owned()).collect();
    kill_contained(|seen| seen.arguments.starts_with(&arguments))
}

/// Kills what runs with this environment variable in containers, and says how many that were.
pub fn kill_with_variable(name: &str, value: &str) -> Result<usize> {
    let variable = format!("{name}={value}");
    kill_contained(|seen| {
        let path = format!("/proc/{}/environ", seen.pid);
        fs::read_to_string(path)
            .is_ok_and(|variables| variables.split('\0').any(|one| one == variable))
    })
}

fn kill_contained(is_meant: impl Fn(&Seen) -> bool) -> Result<usize> {
    let mut meant = processes()?;
    meant.retain(|seen| seen.is_contained && is_meant(seen));
    for process in &meant {
        kill(Pid::from_raw(process.pid), Signal::SIGKILL)
            .with_context(|| format!("killing {:?}", process.arguments))?;
    }
    Ok(meant.len())
}

/// Kills everything that runs in containers, and what watches over it; then nothing of it is mounted any more.
pub fn clear() -> Result<()> {
    let started = Instant::now();
    loop {
        let mut left = processes()?;
        left.retain(Seen::is_of_containers);
        if left.is_empty() {
            break;
        }
        ensure!(started.elapsed() < PATIENCE, "cannot be killed: {left:?}");
        for process in left {
            // One that is gone by now is as good as killed.
            let _ = kill(Pid::from_raw(process.pid), Signal::SIGKILL);
        }
        std::thread::sleep(POLL);
    }
    let mounts = fs::read_to_string("/proc/self/mounts").context("listing mounts")?;
    let mut points: Vec<&str> = mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(1))
        .filter(|point| MOUNTED.iter().any(|folder| point.starts_with(folder)))
        .collect();
    // The last one may be over an earlier one.
    points.reverse();
    for point in points {
        umount2(point, MntFlags::MNT_DETACH).with_context(|| format!("unmounting {point}"))?;
    }
    for folder in IN_MEMORY.map(Path::new) {
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
        }
    }
    Ok(())
}
