//! What the Grafana dashboard shows, as a picture for those who read about it: each of its queries, answered by a real Prometheus
//! over a story of four minutes.
//!
//! ```text
//! script    what happens, and when
//! scene     the cluster, and how it happens there
//! panels    the dashboard as its file has it
//! answers   what Prometheus answers, as curves
//! picture   the panels with their curves
//! ```

mod answers;
mod panels;
mod picture;
mod scene;
mod script;

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nodegate_testbed::install::config;

use answers::Curve;
use panels::{Dashboard, Kind, Panel};
use scene::Played;

/// How often Prometheus scrapes, and how far apart the points of the curves are.
const SCRAPE: Duration = Duration::from_secs(2);

/// What `$__rate_interval` is then: Grafana takes four scrapes at least.
const RATES: &str = "8s";

/// The most that the picture may have, in bytes.
const PICTURE: usize = 200_000;

/// Makes `dashboard.svg` in this folder.
///
/// # Errors
///
/// When something does not happen in time, a query is not understood, or the file cannot be written.
pub async fn draw(folder: &Path) -> Result<()> {
    let file = config("prometheus").join("dashboard.json");
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let dashboard = Dashboard::read(&text)?;
    let played = scene::play().await?;
    let mut panels = Vec::new();
    for panel in &dashboard.panels {
        panels.push((panel, ask(&dashboard, panel, &played).await?));
    }
    let picture = picture::draw(&panels, script::LENGTH);
    ensure!(
        picture.len() <= PICTURE,
        "the picture has {} bytes",
        picture.len()
    );
    let path = folder.join("dashboard.svg");
    fs::write(&path, picture).with_context(|| path.display().to_string())
}

/// What a panel's queries have yielded; of a figure, at the end alone.
async fn ask(dashboard: &Dashboard, panel: &Panel, played: &Played) -> Result<Vec<Curve>> {
    let end = played.begun + u64::from(script::LENGTH);
    let begin = match panel.kind {
        Kind::Stat => end,
        Kind::Row | Kind::Timeseries => played.begun,
    };
    let mut curves = Vec::new();
    for target in &panel.targets {
        let expression = dashboard.expression(target, RATES)?;
        let prometheus = &played.prometheus;
        let answer = prometheus.query_range(&expression, (begin, end), SCRAPE);
        let answer = answer.await?;
        curves.extend(answers::curves(&answer, &target.legend, played.begun)?);
    }
    Ok(curves)
}
