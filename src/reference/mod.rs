//! The pages under `docs/reference/`, written from the code that they are about: the resource's schema, the command line,
//! the events and the metrics. `make docs` writes them, and a test fails when they are out of date.

mod api;
mod events;
mod flags;
mod metrics;

use crate::engine::notice;
use crate::{api::crd, controller, reporter};

/// A page of the reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its file under `docs/reference/`.
    pub file: &'static str,
    /// Its text.
    pub text: String,
}

/// All pages, given the command line.
#[must_use]
pub fn pages(command: clap::Command) -> Vec<Page> {
    let parts = [
        ("The controller", controller::metric_descriptions()),
        ("The reporter", reporter::metric_descriptions()),
    ];
    vec![
        Page {
            file: "api.md",
            text: api::page(&crd()),
        },
        Page {
            file: "events.md",
            text: events::page(notice::TOPICS),
        },
        Page {
            file: "flags.md",
            text: flags::page(command),
        },
        Page {
            file: "metrics.md",
            text: metrics::page(&parts),
        },
    ]
}

/// The remark at the top of a generated page.
const GENERATED: &str = "<!-- Written by `make docs` from the code; change that. -->\n";

/// Text as a cell of a table takes it.
fn cell(text: &str) -> String {
    text.trim()
        .replace('|', "\\|")
        .replace("\n\n", "<br>")
        .replace('\n', " ")
}
