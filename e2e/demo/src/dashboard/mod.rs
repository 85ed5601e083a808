//! Draws the Grafana dashboard for the documentation: a real Prometheus answers each of its queries over a story of four
//! minutes.

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

/// The scrape interval, and the distance of the curves' points.
const SCRAPE: Duration = Duration::from_secs(2);

/// The value of `$__rate_interval`: Grafana uses at least four scrapes.
const RATES: &str = "8s";

/// The largest size of the picture, in bytes.
const PICTURE: usize = 200_000;

/// Writes `dashboard.svg` into this folder.
///
/// # Errors
///
/// When something does not happen in time, a query fails, or the file cannot be written.
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

/// The curves of a panel's queries; for a single figure, only at the end.
async fn ask(dashboard: &Dashboard, panel: &Panel, played: &Played) -> Result<Vec<Curve>> {
    let end = played.begun + u64::from(script::LENGTH);
    let begin = match panel.kind {
        Kind::Stat => end,
        Kind::Row | Kind::Timeseries | Kind::StateTimeline => played.begun,
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
