//! The pages under `docs/reference/`, generated from the code: the resource's schema, the command line, the events and the
//! metrics. `make docs` writes them, and a test fails when they are out of date.

mod api;
mod events;
mod flags;
mod markdown;
mod metrics;

use crate::api::crd;
use crate::engine::notice;
use crate::{controller, reporter};

/// A page of the reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferencePage {
    /// Its file name in `docs/reference/`.
    pub file: &'static str,
    /// Its text.
    pub text: String,
}

/// All pages; `command` is the command line to document.
pub fn pages(command: clap::Command) -> Vec<ReferencePage> {
    let parts = [
        ("The controller", controller::metric_descriptions()),
        ("The reporter", reporter::metric_descriptions()),
    ];
    vec![
        ReferencePage {
            file: "api.md",
            text: api::page(&crd()),
        },
        ReferencePage {
            file: "events.md",
            text: events::page(notice::TOPICS),
        },
        ReferencePage {
            file: "flags.md",
            text: flags::page(command),
        },
        ReferencePage {
            file: "metrics.md",
            text: metrics::page(&parts),
        },
    ]
}
