//! What a machine loses when it powers off: all container processes, and all their mounts.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::mount::{MntFlags, umount2};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

/// The folders under which containers and pods have mounts.
const MOUNTED: [&str; 4] = [
    "/run/containerd/",
    "/run/netns/",
    "/var/lib/containerd/",
    "/var/lib/kubelet/",
];

/// Folders in a machine's memory.
const IN_MEMORY: [&str; 2] = ["/run/containerd", "/run/netns"];

#[derive(Debug)]
struct Seen {
    pid: i32,
    arguments: Vec<String>,
    /// Whether it is in a PID namespace of its own, as containers are.
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

/// Kills container processes with these first arguments, and returns how many.
pub(crate) fn kill_with_arguments(arguments: &[&str]) -> Result<usize> {
    let arguments: Vec<String> = arguments.iter().map(|&one| one.to_owned()).collect();
    kill_contained(|seen| seen.arguments.starts_with(&arguments))
}

/// Kills container processes with this environment variable, and returns how many.
pub(crate) fn kill_with_variable(name: &str, value: &str) -> Result<usize> {
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

/// Kills all container processes and their shims, and unmounts their file systems.
pub(crate) fn clear() -> Result<()> {
    let started = Instant::now();
    loop {
        let mut left = processes()?;
        left.retain(Seen::is_of_containers);
        if left.is_empty() {
            break;
        }
        ensure!(started.elapsed() < PATIENCE, "cannot be killed: {left:?}");
        for process in left {
            // It may be gone by now.
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
    // Later mounts may lie over earlier ones.
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
