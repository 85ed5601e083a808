//! The watches: one for each kind of object that the engine asks for, each a `kube::runtime::watcher`. All feed one channel.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures::stream::StreamExt;
use kube::Client;
use kube::runtime::watcher;
use prometheus::IntCounter;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tracing::{debug, info, warn};

use super::health::Readiness;
use super::metrics::Metrics;
use nodegate_cluster::{Events, client, events, explain, refusal};
use nodegate_core::backoff::{Backoff, Pauses};
use nodegate_core::condition::Watch;
use nodegate_core::selector::Filter;
use nodegate_engine::LONGEST_WAIT;
use nodegate_engine::io::Seen;

/// The pauses before a failed watch goes on: short, so that a server that is back is noticed; a few requests a second are cheap.
const PAUSES: Pauses = Pauses::between(Duration::from_millis(50), Duration::from_secs(1));
/// How often to check whether an optional resource has been installed.
const NOT_INSTALLED_PAUSE: Duration = Duration::from_secs(10);
/// The pause once a watch has started three times in as long: an API server may end each at once.
const SPACING: Duration = Duration::from_secs(1);

/// What all watches report to.
#[derive(Clone)]
pub(crate) struct Feeder {
    pub changes: mpsc::Sender<Seen>,
    pub readiness: watch::Sender<Readiness>,
    /// Receives when any watch last showed something. A list does not count: with lists alone an instance sees changes late.
    pub last_event: watch::Sender<Instant>,
    /// The API server's address, for error messages.
    pub server: String,
}

pub(crate) struct Watches {
    /// A client that shows bookmarks.
    client: Client,
    feeder: Feeder,
    metrics: Metrics,
    under_way: HashMap<Watch, JoinHandle<()>>,
}

impl Watches {
    pub(crate) fn new(client: Client, feeder: Feeder, metrics: Metrics) -> Self {
        Self {
            client,
            feeder,
            metrics,
            under_way: HashMap::new(),
        }
    }

    /// Starts a watch, or starts it again. It ends at the latest when the receiver of the changes is dropped.
    pub(crate) fn begin(&mut self, watch: Watch, scope: &Filter) {
        let previous = self.under_way.remove(&watch);
        let labels = &[watch.name()];
        let restarts = self.metrics.watch_restarts.with_label_values(labels);
        if let Some(previous) = &previous {
            previous.abort();
            restarts.inc();
        } else {
            info!(source = watch.name(), "Starting EventSource");
        }
        let failures = self.metrics.watch_failures.with_label_values(labels);
        let feed = Feed {
            watch,
            feeder: self.feeder.clone(),
            problem: None,
            is_listing: false,
            has_shown: false,
            starts: [None; 2],
            retry: Backoff::default(),
            failures,
        };
        let events = events(&self.client, watch, scope);
        let begun = tokio::spawn(async move {
            // Nothing of the earlier one comes once this one lists.
            if let Some(previous) = previous {
                let _ = previous.await;
            }
            feed.run(events).await;
        });
        self.under_way.insert(watch, begun);
    }

    pub(crate) fn end(&mut self, watch: Watch) {
        if let Some(begun) = self.under_way.remove(&watch) {
            begun.abort();
        }
    }
}

struct Feed {
    watch: Watch,
    feeder: Feeder,
    /// The problem that was last reported.
    problem: Option<String>,
    is_listing: bool,
    /// Whether a list has shown something, and none has been complete since.
    has_shown: bool,
    /// When the watch last showed how far it is, and the time before.
    starts: [Option<Instant>; 2],
    retry: Backoff,
    failures: IntCounter,
}

impl Feed {
    /// Passes on what the watch shows, until nobody receives it.
    async fn run(mut self, mut events: Events) {
        while let Some(event) = events.next().await {
            let now = Instant::now();
            let (seen, pause) = match event {
                Ok(seen) => {
                    let pause = self.saw(&seen, now);
                    (Some(seen), pause)
                }
                Err(error) => {
                    let (seen, pause) = self.failed(&error, now);
                    (seen, Some(pause))
                }
            };
            if let Some(seen) = seen
                && self.feeder.changes.send(seen).await.is_err()
            {
                return;
            }
            // Even the shortest sleep takes a millisecond, in which nothing is read.
            if let Some(pause) = pause {
                tokio::time::sleep(pause).await;
            }
        }
    }

    /// Notes what was seen; returns the pause before the watch goes on. The objects of a list do not prove that it will end.
    fn saw(&mut self, seen: &Seen, now: Instant) -> Option<Duration> {
        match seen {
            Seen::Init(..) => self.is_listing = true,
            Seen::InitDone(_) => self.is_listing = false,
            _ if self.is_listing => self.has_shown = true,
            _ => {
                self.feeder.last_event.send_replace(now);
            }
        }
        if !self.is_listing {
            self.works();
        }
        match seen {
            Seen::Progress(..) => spacing(&mut self.starts, now),
            _ => None,
        }
    }

    /// Reports a new failure; returns what it shows, and the pause before the watch goes on: no less than the API server asks for.
    fn failed(&mut self, error: &watcher::Error, now: Instant) -> (Option<Seen>, Duration) {
        self.failures.inc();
        self.tell(error);
        let refusal = refusal(error);
        if self.watch.is_optional() && refusal.is_some_and(|it| it.code == 404) {
            return (Some(Seen::NotInstalled(self.watch)), NOT_INSTALLED_PAUSE);
        }
        // A list begins again with its first page.
        let pauses = if self.has_shown {
            Pauses::REFUSED
        } else {
            PAUSES
        };
        let pause = self.retry.failed(pauses, now).duration_since(now);
        let asked = refusal.and_then(client::retry_after).unwrap_or_default();
        (None, pause.max(asked.min(LONGEST_WAIT)))
    }

    fn tell(&mut self, error: &watcher::Error) {
        let watch = self.watch;
        let Some(problem) = explain(error, watch, &self.feeder.server) else {
            debug!(watch = %watch.name(), %error, "going on");
            return;
        };
        if self.problem.as_ref() == Some(&problem) {
            return;
        }
        warn!(watch = %watch.name(), "{problem}; trying again");
        self.feeder
            .readiness
            .send_modify(|it| drop(it.problems.insert(watch.name(), problem.clone())));
        self.problem = Some(problem);
    }

    /// Clears the problem after the watch has shown something.
    fn works(&mut self) {
        let watch = self.watch;
        self.retry = Backoff::default();
        self.has_shown = false;
        if self.problem.take().is_some() {
            info!(watch = %watch.name(), "watch works again");
            self.feeder
                .readiness
                .send_modify(|it| drop(it.problems.remove(watch.name())));
        }
    }
}

/// The pause after a start or bookmark of a watch. Two within a second are usual: its last bookmark, and the start of the next one.
fn spacing(earlier: &mut [Option<Instant>; 2], now: Instant) -> Option<Duration> {
    let [last, before] = *earlier;
    *earlier = [Some(now), last];
    let is_often = before.is_some_and(|before| now.duration_since(before) < SPACING);
    is_often.then_some(SPACING)
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use serde_json::json;

    use super::*;
    use nodegate_core::object::Watched;
    use nodegate_engine::io::Object;

    /// The watch of nodes, and what it passes on.
    fn feed() -> (Feed, mpsc::Receiver<Seen>) {
        let (changes, seen) = mpsc::channel(16);
        let feeder = Feeder {
            changes,
            readiness: watch::channel(Readiness::default()).0,
            last_event: watch::channel(Instant::now()).0,
            server: String::new(),
        };
        let feed = Feed {
            watch: Watch::Nodes,
            feeder,
            problem: None,
            is_listing: false,
            has_shown: false,
            starts: [None; 2],
            retry: Backoff::default(),
            failures: IntCounter::new("failures", "failures").unwrap(),
        };
        (feed, seen)
    }

    fn node() -> Seen {
        Seen::Apply(Object::Node(Watched::of("{}")))
    }

    fn refused(code: u16, retry_after: u32) -> kube::Error {
        let details = json!({ "retryAfterSeconds": retry_after });
        let status = Status::failure("m", "r").with_code(code);
        let status = status.with_details(serde_json::from_value(details).unwrap());
        kube::Error::Api(status.boxed())
    }

    #[tokio::test]
    async fn events_are_fed_without_pauses() {
        let (feed, mut seen) = feed();
        let events = futures::stream::iter((0..10_000).map(|_| Ok(node()))).boxed();
        let began = Instant::now();
        let receives = async {
            let mut count = 0;
            while seen.recv().await.is_some() {
                count += 1;
            }
            count
        };
        let (count, ()) = futures::join!(receives, feed.run(events));
        assert_eq!(count, 10_000);
        // With a millisecond for each it is ten seconds at least.
        assert!(began.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_list_whose_second_page_fails_begins_again_ever_more_rarely_until_one_is_complete() {
        const MINUTE: Duration = Duration::from_secs(60);
        let fails = |feed: &mut Feed, retry_after, now| {
            let error = watcher::Error::InitialListFailed(refused(429, retry_after));
            let (seen, pause) = feed.failed(&error, now);
            assert!(seen.is_none());
            pause
        };
        // In seconds, what the API server asks for.
        for (retry_after, expected) in [(0, 10..=14), (5, 8..=12), (3600, 1..=1)] {
            let (mut feed, _seen) = feed();
            let start = Instant::now();
            let (mut now, mut lists) = (start, 0);
            while now < start + MINUTE {
                for seen in [Seen::Init(Watch::Nodes, now), node(), node()] {
                    assert_eq!(feed.saw(&seen, now), None);
                }
                now += fails(&mut feed, retry_after, now);
                lists += 1;
            }
            assert!(expected.contains(&lists), "{lists} with {retry_after} s");
            for seen in [Seen::InitDone(Watch::Nodes), node()] {
                feed.saw(&seen, now);
                let pause = fails(&mut feed, 0, now);
                assert!(pause <= Duration::from_millis(50), "{pause:?}");
            }
        }
    }

    #[test]
    fn only_a_watch_that_starts_again_and_again_is_slowed_down() {
        let start = Instant::now();
        let mut earlier = [None; 2];
        // A bookmark, a start, and a bookmark after twelve seconds; then an API server that ends each watch at once.
        for (after, is_slowed) in [
            (0, false),
            (970, false),
            (12_970, false),
            (13_940, false),
            (13_941, true),
            (14_942, false),
            (14_943, false),
            (14_944, true),
        ] {
            let pause = spacing(&mut earlier, start + Duration::from_millis(after));
            assert_eq!(pause, is_slowed.then_some(SPACING), "after {after} ms");
        }
    }
}
