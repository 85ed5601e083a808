//! The recording that opens the README: what `kubectl nodegate` prints in a terminal, on a cluster of its own, about a node that
//! stays closed until the image of its network is mended.
//!
//! ```text
//! scene      the cluster, and what happens in it
//! terminal   types commands and runs them in a terminal, and keeps what is to be seen, and when
//! svg        the same as a picture that moves by CSS alone
//! ```

mod scene;
mod svg;
mod terminal;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// The most that the picture may have, in bytes.
const PICTURE: usize = 150_000;

/// Makes `recording.cast` (asciicast v2) and `recording.svg` in this folder.
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
