//! The machine's current boot, and whether a condition was written during it.

use std::fs;
use std::time::Duration;

use jiff::Timestamp;

/// The kernel's boot ID and uptime. The kubelet reports the same ID in its Node's status.
const FILES: [&str; 2] = ["/proc/sys/kernel/random/boot_id", "/proc/uptime"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Boot {
    id: String,
    uptime: Duration,
}

impl Boot {
    /// `None` if the kernel does not provide them.
    pub(super) fn read() -> Option<Self> {
        let [id, uptime] = FILES.map(fs::read_to_string);
        Self::parse(&id.ok()?, &uptime.ok()?)
    }

    fn parse(id: &str, uptime: &str) -> Option<Self> {
        let id = id.trim();
        let seconds: f64 = uptime.split_whitespace().next()?.parse().ok()?;
        let uptime = Duration::try_from_secs_f64(seconds).ok()?;
        (!id.is_empty()).then(|| Self {
            id: id.to_owned(),
            uptime,
        })
    }

    /// Whether a condition of this time was written during this boot. If the Node reports another boot ID, its kubelet has not
    /// started in this one yet. A time in the future proves nothing: some clocks are wrong until they sync over the network.
    pub(super) fn has_seen(&self, node_boot_id: &str, written: Timestamp, now: Timestamp) -> bool {
        let age = Duration::try_from(now.duration_since(written));
        self.id == node_boot_id && age.is_ok_and(|age| age < self.uptime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn only_what_was_written_since_the_machine_has_started_is_of_this_boot() {
        let boot = Boot::parse("b\n", "100.25 733.98\n").unwrap();
        for (name, node_boot_id, written, expected) in [
            ("just now", "b", 1000, true),
            ("since the start", "b", 900, true),
            ("before the start", "b", 899, false),
            ("before the start, by another boot", "a", 899, false),
            ("the kubelet has not started yet", "a", 950, false),
            ("the Node does not tell", "", 950, false),
            ("by a clock that was ahead", "b", 1001, false),
        ] {
            let answer = boot.has_seen(node_boot_id, at(written), at(1000));
            assert_eq!(answer, expected, "{name}");
        }
    }

    #[test]
    fn unreadable_boot_files_yield_no_boot() {
        for (id, uptime) in [("", "1.0 2.0"), ("b", ""), ("b", "long"), ("b", "-1 0")] {
            assert_eq!(Boot::parse(id, uptime), None, "{id:?} {uptime:?}");
        }
    }
}
