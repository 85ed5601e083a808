//! The watches, what they have shown, and the screen, together: the story tells, waits and looks through it.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use tokio::sync::watch;

use super::layout::Paint;
use super::report::{self, Check};
use super::screen::Screen;
use super::story::Ending;
use super::table::table;
use super::world::{Change, World};

/// How long anything may take that is waited for. It takes a second or ten; a machine that is busy takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often the table is redrawn.
const FRAME: Duration = Duration::from_millis(100);

/// A telling of the story.
#[derive(Debug)]
pub struct Show {
    started: Instant,
    world: watch::Sender<World>,
    screen: Mutex<Screen>,
}

impl Default for Show {
    fn default() -> Self {
        Self::new()
    }
}

impl Show {
    /// On standard output, from now on.
    #[must_use]
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
            world: watch::Sender::new(World::default()),
            screen: Mutex::new(Screen::new()),
        }
    }

    /// The time since the start.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Tells what happens next.
    ///
    /// # Errors
    ///
    /// When standard output cannot be written.
    pub fn say(&self, text: &str) -> Result<()> {
        let label = self.label();
        Ok(self.screen().say(&label, Paint::Strong, text)?)
    }

    /// Shows a manifest as it is.
    ///
    /// # Errors
    ///
    /// When standard output cannot be written.
    pub fn show_manifest(&self, manifest: &str) -> Result<()> {
        let mut screen = self.screen();
        let colours = screen.colours();
        let line = |line: &str| format!("    {}", colours.paint(Paint::Faint, line));
        let lines: Vec<String> = manifest.lines().map(line).collect();
        Ok(screen.print(&lines)?)
    }

    /// Ends the telling: takes the table away and shows what really happened. Whether all that was promised did.
    ///
    /// # Errors
    ///
    /// When standard output cannot be written.
    pub fn sum_up(&self, ending: &Ending) -> Result<bool> {
        let world = self.world.borrow();
        let checks = report::checks(&world, ending);
        let mut screen = self.screen();
        let lines = report::summary(&world, &checks, screen.width(), screen.colours());
        screen.print(&[String::new()])?;
        screen.print(&lines)?;
        Ok(checks.iter().all(|check| matches!(check, Check::Held(_))))
    }

    /// Ends the telling without an ending: what there is to see stays on the screen.
    ///
    /// # Errors
    ///
    /// When standard output cannot be written.
    pub fn break_off(&self) -> Result<()> {
        let mut screen = self.screen();
        let lines = table(
            &self.world.borrow(),
            self.now(),
            screen.width(),
            screen.colours(),
        );
        Ok(screen.print(&lines)?)
    }

    /// What has been seen so far.
    #[must_use]
    pub fn world(&self) -> watch::Receiver<World> {
        self.world.subscribe()
    }

    /// Waits until something is seen.
    ///
    /// # Errors
    ///
    /// When it is not within a minute; the message says what was waited for.
    pub async fn until(&self, what: &str, seen: impl Fn(&World) -> bool) -> Result<()> {
        let mut world = self.world();
        let seen = world.wait_for(|world| seen(world));
        if tokio::time::timeout(PATIENCE, seen).await.is_ok() {
            return Ok(());
        }
        let trouble = self.world.borrow().trouble.clone();
        let trouble = trouble.map(|trouble| format!("; watching went wrong: {trouble}"));
        bail!(
            "waited {} s for this, in vain: {what}{}",
            PATIENCE.as_secs(),
            trouble.unwrap_or_default()
        );
    }

    /// Takes in what `see` makes of the world, and tells the changes where there is no table.
    ///
    /// # Errors
    ///
    /// When standard output cannot be written.
    pub fn take_in(&self, see: impl FnOnce(&mut World, Duration) -> Vec<Change>) -> Result<()> {
        let now = self.now();
        let mut changes = Vec::new();
        self.world.send_modify(|world| changes = see(world, now));
        let mut screen = self.screen();
        if !screen.is_live() {
            let label = self.label();
            for Change { node, news } in changes {
                screen.print(&[format!("{label}  {node}  {news}")])?;
            }
        }
        Ok(())
    }

    /// Watches the cluster's nodes and pods for as long as it is polled.
    ///
    /// # Errors
    ///
    /// When standard output cannot be written.
    pub async fn watch(&self, client: &Client) -> Result<()> {
        let nodes = async {
            let mut nodes = pin!(events(Api::<Node>::all(client.clone())));
            while let Some(event) = nodes.next().await {
                self.take_in(|world, now| match event {
                    Ok(Event::Apply(node) | Event::InitApply(node)) => world.see_node(&node, now),
                    event => world.see_trouble(event),
                })?;
            }
            Ok(())
        };
        let pods = async {
            let mut pods = pin!(events(Api::<Pod>::all(client.clone())));
            while let Some(event) = pods.next().await {
                self.take_in(|world, _| match event {
                    Ok(Event::Apply(pod) | Event::InitApply(pod)) => world.see_pod(&pod),
                    Ok(Event::Delete(pod)) => {
                        world.see_pod_go(&pod);
                        Vec::new()
                    }
                    event => world.see_trouble(event),
                })?;
            }
            Ok(())
        };
        tokio::try_join!(nodes, pods).map(|_| ())
    }

    /// Redraws the table for as long as it is polled, where there is one.
    ///
    /// # Errors
    ///
    /// When standard output cannot be written.
    pub async fn draw(&self) -> Result<()> {
        let mut frames = tokio::time::interval(FRAME);
        loop {
            frames.tick().await;
            let mut screen = self.screen();
            let world = self.world.borrow();
            let is_empty = world.nodes.is_empty() && world.workload.is_empty();
            if screen.is_live() && !is_empty {
                let mut lines = vec![String::new()];
                lines.extend(table(&world, self.now(), screen.width(), screen.colours()));
                screen.draw(&lines)?;
            }
        }
    }

    fn label(&self) -> String {
        format!("{:5.1} s  ", self.now().as_secs_f32())
    }

    fn screen(&self) -> MutexGuard<'_, Screen> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What happens to the objects of a kind. What goes wrong is shown and tried again, soon: the server is next door.
fn events<K>(api: Api<K>) -> impl Stream<Item = watcher::Result<Event<K>>>
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    watcher(api, watcher::Config::default()).default_backoff()
}
