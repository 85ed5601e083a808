//! The watches, what they have shown, and the screen, together: a story tells, waits and looks through it.

use std::fmt::Display;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures::StreamExt;
use kube::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::check::{Check, check_lines};
use super::layout::{Colours, Paint};
use super::screen::Screen;

/// How long anything may take that is waited for. It takes a second or ten; a machine that is busy takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often the picture is redrawn.
const FRAME: Duration = Duration::from_millis(100);

/// What has been seen of the cluster, as far as a story is about it.
pub trait World: Default {
    /// What it looks like now, in lines none of which is wider than `width`; nothing as long as there is nothing to see.
    fn picture(&self, now: Duration, width: usize, colours: Colours) -> Vec<String>;
}

/// A telling of a story.
#[derive(Debug)]
pub struct Show<W> {
    started: Instant,
    world: watch::Sender<W>,
    screen: Mutex<Screen>,
    /// What went wrong last while watching.
    trouble: Mutex<Option<String>>,
}

impl<W: World> Default for Show<W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: World> Show<W> {
    /// On standard output, from now on.
    #[must_use]
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
            world: watch::Sender::new(W::default()),
            screen: Mutex::new(Screen::new()),
            trouble: Mutex::new(None),
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

    /// Leaves a copy of the picture behind.
    ///
    /// # Errors
    ///
    /// When standard output cannot be written.
    pub fn keep_picture(&self) -> Result<()> {
        let mut screen = self.screen();
        let picture = self.picture(&screen);
        Ok(screen.print(&picture)?)
    }

    /// Ends the telling: takes the picture away and shows what really happened, the summary that `sum_up` makes of what was
    /// seen at a width, and the checks. Whether all that was promised did.
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
        Ok(checks.iter().all(|check| check.problem().is_none()))
    }

    /// What has been seen so far.
    #[must_use]
    pub fn world(&self) -> watch::Receiver<W> {
        self.world.subscribe()
    }

    /// Waits until something is seen.
    ///
    /// # Errors
    ///
    /// When it is not within a minute; the message says what was waited for.
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

    /// Takes in what `see` makes of the world, and tells the changes that it answers where there is no picture.
    ///
    /// # Errors
    ///
    /// When standard output cannot be written.
    pub fn take_in<C: Display>(&self, see: impl FnOnce(&mut W, Duration) -> Vec<C>) -> Result<()> {
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

    /// Watches the objects of a kind for as long as it is polled: takes in each as it is now, and those that are gone.
    /// What goes wrong is tried again, soon: the server is next door.
    ///
    /// # Errors
    ///
    /// When standard output cannot be written.
    pub async fn watch<K, C: Display>(
        &self,
        objects: Api<K>,
        see: impl Fn(&mut W, &K, Duration) -> Vec<C>,
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

    /// Redraws the picture for as long as it is polled, where there is one.
    ///
    /// # Errors
    ///
    /// When standard output cannot be written.
    pub async fn draw(&self) -> Result<()> {
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
