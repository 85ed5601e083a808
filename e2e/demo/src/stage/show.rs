//! The watches, the observed world and the screen: a story tells, waits and observes through it.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use kube::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::check::{Check, check_lines};
use super::layout::{Colours, Paint};
use super::screen::Screen;

/// The timeout of every wait. Waits take some seconds; longer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often the picture is redrawn.
const FRAME: Duration = Duration::from_millis(100);

/// The observed state of the cluster, as far as a story needs it.
pub trait World: Default {
    /// Its picture as lines of at most `width`; empty if there is nothing to show.
    fn picture(&self, now: Duration, width: usize, colours: Colours) -> Vec<String>;
}

/// A telling of a story.
#[derive(Debug)]
pub struct Show<W> {
    started: Instant,
    world: watch::Sender<W>,
    screen: Mutex<Screen>,
    /// The last watch error.
    trouble: Mutex<Option<String>>,
}

impl<W: World> Default for Show<W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: World> Show<W> {
    /// A telling on standard output that starts now.
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
            world: watch::Sender::new(W::default()),
            screen: Mutex::new(Screen::new()),
            trouble: Mutex::new(None),
        }
    }

    /// The time since the start.
    pub fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Announces what happens next.
    ///
    /// # Errors
    ///
    /// When standard output cannot be written.
    pub fn say(&self, text: &str) -> Result<()> {
        let label = self.label();
        Ok(self.screen().say(&label, Paint::Strong, text)?)
    }

    /// Prints a manifest unchanged.
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

    /// Prints a permanent copy of the picture.
    ///
    /// # Errors
    ///
    /// When standard output cannot be written.
    pub fn keep_picture(&self) -> Result<()> {
        let mut screen = self.screen();
        let picture = self.picture(&screen);
        Ok(screen.print(&picture)?)
    }

    /// Ends the telling: removes the picture, and prints the summary that `sum_up` makes for a width, and the checks. Returns
    /// whether all promises were kept.
    ///
    /// # Errors
    ///
    /// When standard output cannot be written.
    pub fn end(
        &self,
        checks: &[Check],
        sum_up: impl FnOnce(&W, usize, Colours) -> Vec<String>,
    ) -> Result<bool> {
        let mut screen = self.screen();
        let (width, colours) = (screen.width(), screen.colours());
        let mut lines = vec![String::new()];
        lines.extend(sum_up(&self.world.borrow(), width, colours));
        lines.push(String::new());
        lines.extend(check_lines(checks, width, colours));
        screen.print(&lines)?;
        Ok(Check::problems(checks).is_empty())
    }

    /// The observed state.
    pub fn world(&self) -> watch::Receiver<W> {
        self.world.subscribe()
    }

    /// Waits until the state meets a predicate.
    ///
    /// # Errors
    ///
    /// When it does not within a minute; the message says what was waited for.
    pub async fn until(&self, what: &str, seen: impl Fn(&W) -> bool) -> Result<()> {
        let mut world = self.world();
        let seen = world.wait_for(|world| seen(world));
        if tokio::time::timeout(PATIENCE, seen).await.is_ok() {
            return Ok(());
        }
        let trouble = self.trouble().clone();
        let trouble = trouble.map(|trouble| format!("; watching went wrong: {trouble}"));
        bail!(
            "waited {} s for this, in vain: {what}{}",
            PATIENCE.as_secs(),
            trouble.unwrap_or_default()
        );
    }

    /// Updates the state with `see`, and prints the returned changes if there is no picture.
    ///
    /// # Errors
    ///
    /// When standard output cannot be written.
    pub fn take_in(&self, see: impl FnOnce(&mut W, Duration) -> Vec<String>) -> Result<()> {
        let now = self.now();
        let mut changes = Vec::new();
        self.world.send_modify(|world| changes = see(world, now));
        let mut screen = self.screen();
        if !screen.is_live() {
            let label = self.label();
            for change in changes {
                screen.print(&[format!("{label}  {change}")])?;
            }
        }
        Ok(())
    }

    /// Watches the objects of a kind while polled: records the current state of each, and those that are gone. Errors are
    /// retried soon: the server is local.
    ///
    /// # Errors
    ///
    /// When standard output cannot be written.
    pub async fn watch<K>(
        &self,
        objects: Api<K>,
        see: impl Fn(&mut W, &K, Duration) -> Vec<String>,
        see_go: impl Fn(&mut W, &K),
    ) -> Result<()>
    where
        K: kube::Resource + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
    {
        let mut events = pin!(watcher(objects, watcher::Config::default()).default_backoff());
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Apply(object) | Event::InitApply(object)) => {
                    self.take_in(|world, now| see(world, &object, now))?;
                }
                Ok(Event::Delete(object)) => self.world.send_modify(|world| see_go(world, &object)),
                Ok(Event::Init | Event::InitDone) => {}
                Err(error) => *self.trouble() = Some(error.to_string()),
            }
        }
        Ok(())
    }

    /// Carries out the steps of a story while its watches go on, and redraws the picture.
    ///
    /// # Errors
    ///
    /// When a step or a watch fails, or standard output cannot be written.
    pub async fn tell<T>(
        &self,
        steps: impl Future<Output = Result<T>>,
        watches: impl Future<Output = Result<()>>,
    ) -> Result<T> {
        tokio::select! {
            told = steps => told,
            ended = watches => Err(ended.err().context("watching ended")?),
            ended = self.draw() => Err(ended.err().context("drawing ended")?),
        }
    }

    /// Redraws the picture while polled, if there is one.
    async fn draw(&self) -> Result<()> {
        let mut frames = tokio::time::interval(FRAME);
        loop {
            frames.tick().await;
            let mut screen = self.screen();
            let picture = self.picture(&screen);
            if screen.is_live() && !picture.is_empty() {
                let mut lines = vec![String::new()];
                lines.extend(picture);
                screen.draw(&lines)?;
            }
        }
    }

    fn picture(&self, screen: &Screen) -> Vec<String> {
        let world = self.world.borrow();
        world.picture(self.now(), screen.width(), screen.colours())
    }

    fn label(&self) -> String {
        format!("{:5.1} s  ", self.now().as_secs_f32())
    }

    fn screen(&self) -> MutexGuard<'_, Screen> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trouble(&self) -> MutexGuard<'_, Option<String>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
