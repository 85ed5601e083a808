//! Metrics about this process under the names that Prometheus' client libraries use: CPU time, memory, files. They are read
//! from `/proc` for each scrape; an unreadable one is left out.
//!
//! The `process` feature of the `prometheus` crate counts CPU time in whole seconds, which hides low usage, and lacks the limit
//! of the address space.

use std::fs;

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Counter, Gauge};
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

/// A metric's name and help.
type NameAndHelp = (&'static str, &'static str);

const CPU_SECONDS: NameAndHelp = (
    "process_cpu_seconds_total",
    "CPU time that the process has taken.",
);
const GAUGES: [NameAndHelp; 6] = [
    (
        "process_resident_memory_bytes",
        "Memory of the process that is in RAM.",
    ),
    (
        "process_virtual_memory_bytes",
        "Address space of the process.",
    ),
    (
        "process_virtual_memory_max_bytes",
        "Address space that the process may have, -1 for any.",
    ),
    ("process_open_fds", "Files that the process has open."),
    (
        "process_max_fds",
        "Files that the process may have open at a time.",
    ),
    (
        "process_start_time_seconds",
        "When the process started, since the epoch.",
    ),
];

#[derive(Debug)]
pub(crate) struct ProcessMetrics {
    descriptions: Vec<Desc>,
}

impl ProcessMetrics {
    pub(crate) fn new() -> Self {
        let mut descriptions: Vec<_> = counter(CPU_SECONDS, 0.0)
            .desc()
            .into_iter()
            .cloned()
            .collect();
        for named in GAUGES {
            descriptions.extend(gauge(named, 0.0).desc().into_iter().cloned());
        }
        Self { descriptions }
    }
}

impl Collector for ProcessMetrics {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let stat = fs::read_to_string("/proc/self/stat").ok();
        let usage = stat.and_then(|stat| Usage::read(&stat));
        let usage = usage.as_ref();
        let booted = fs::read_to_string("/proc/stat").ok();
        let booted = booted.and_then(|stat| boot_time(&stat));
        // In the order of `GAUGES`.
        let values = [
            usage.map(|usage| usage.resident),
            usage.map(|usage| usage.virtual_),
            Some(limit(Resource::As)),
            open_files(),
            Some(limit(Resource::Nofile)),
            (usage.zip(booted)).map(|(usage, booted)| booted + usage.started_after_boot),
        ];
        let cpu = usage.map(|usage| counter(CPU_SECONDS, usage.cpu_seconds).collect());
        let gauges = GAUGES.into_iter().zip(values);
        let gauges = gauges.filter_map(|(named, value)| Some(gauge(named, value?).collect()));
        cpu.into_iter().chain(gauges).flatten().collect()
    }
}

fn counter((name, help): NameAndHelp, value: f64) -> Counter {
    let counter = Counter::new(name, help).expect("the name of the metric is valid");
    counter.inc_by(value);
    counter
}

fn gauge((name, help): NameAndHelp, value: f64) -> Gauge {
    let gauge = Gauge::new(name, help).expect("the name of the metric is valid");
    gauge.set(value);
    gauge
}

/// Values from `/proc/self/stat`: times in seconds, memory in bytes.
#[derive(Debug, PartialEq)]
struct Usage {
    cpu_seconds: f64,
    started_after_boot: f64,
    virtual_: f64,
    resident: f64,
}

impl Usage {
    /// Parses the line; `proc_pid_stat(5)` describes its fields.
    fn read(stat: &str) -> Option<Self> {
        // The program's name is in parentheses, and may contain blanks and parentheses. Field 3 follows it.
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        #[expect(
            clippy::cast_precision_loss,
            reason = "both are small powers of two and ten"
        )]
        let (tick, page) = (clock_ticks_per_second() as f64, page_size() as f64);
        Some(Self {
            cpu_seconds: (field(14)? + field(15)?) / tick,
            started_after_boot: field(22)? / tick,
            virtual_: field(23)?,
            resident: field(24)? * page,
        })
    }
}

/// When the machine booted, in seconds since the epoch, from `/proc/stat`.
fn boot_time(stat: &str) -> Option<f64> {
    let mut lines = stat.lines();
    let time = lines.find_map(|line| line.strip_prefix("btime "))?;
    time.trim().parse().ok()
}

fn open_files() -> Option<f64> {
    let count = fs::read_dir("/proc/self/fd").ok()?.count();
    // The directory itself is open while it is read.
    u32::try_from(count.saturating_sub(1)).ok().map(f64::from)
}

/// The process's limit of a resource; -1 for no limit, as in Go's client.
#[expect(
    clippy::cast_precision_loss,
    reason = "a limit of petabytes need not be exact"
)]
fn limit(resource: Resource) -> f64 {
    getrlimit(resource)
        .current
        .map_or(-1.0, |limit| limit as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_program_with_an_odd_name_is_read() {
        let mut line =
            "42 (a (b) c) S 1 42 42 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 8 0 1200 4096000 500"
                .to_owned();
        line.push_str(" 18446744073709551615 1 1 0 0 0\n");
        #[expect(
            clippy::cast_precision_loss,
            reason = "both are small powers of two and ten"
        )]
        let (tick, page) = (clock_ticks_per_second() as f64, page_size() as f64);
        let expected = Usage {
            cpu_seconds: 200.0 / tick,
            started_after_boot: 1200.0 / tick,
            virtual_: 4_096_000.0,
            resident: 500.0 * page,
        };
        assert_eq!(Usage::read(&line), Some(expected));
        assert_eq!(Usage::read("42 (short) S 1"), None);
        assert_eq!(Usage::read(""), None);
    }

    #[test]
    fn this_process_is_measured() {
        let metrics = ProcessMetrics::new();
        let measured = metrics.collect();
        let names: Vec<_> = measured.iter().map(MetricFamily::name).collect();
        let described: Vec<_> = metrics
            .desc()
            .iter()
            .map(|desc| desc.fq_name.as_str())
            .collect();
        assert_eq!(names, described);
        let value = |name: &str| {
            let family = measured.iter().find(|family| family.name() == name);
            family.unwrap().get_metric()[0].get_gauge().get_value()
        };
        assert!(value("process_resident_memory_bytes") > 1e5);
        assert!(value("process_open_fds") >= 3.0);
        assert!(value("process_max_fds") >= value("process_open_fds"));
        let now = jiff::Timestamp::now().as_duration().as_secs_f64();
        let age = now - value("process_start_time_seconds");
        assert!((-5.0..3600.0).contains(&age), "{age} s");
    }
}
