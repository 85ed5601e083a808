//! The recording at the top of the README: what `kubectl nodegate` prints in a terminal about a node that stays closed until
//! the image of its network is repaired.

mod scene;
mod svg;
mod terminal;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// The largest size of the picture, in bytes.
const PICTURE: usize = 150_000;

/// Writes `recording.cast` (asciicast v2) and `recording.svg` into this folder.
///
/// # Errors
///
/// When something does not happen in time, or a file cannot be written.
pub async fn record(folder: &Path) -> Result<()> {
    let terminal = scene::play().await?;
    let picture = svg::draw(&terminal);
    ensure!(
        picture.len() <= PICTURE,
        "the picture has {} bytes",
        picture.len()
    );
    for (name, content) in [
        ("recording.cast", terminal.asciicast()?),
        ("recording.svg", picture),
    ] {
        let path = folder.join(name);
        fs::write(&path, content).with_context(|| path.display().to_string())?;
    }
    Ok(())
}
