//! Findings for people.

use super::fault::{Check, Severity};
use super::{Fault, Lint};
use crate::cli::answer::Answer;
use crate::cli::page::{Branch, Line, Look, Page};

impl Answer for Lint {
    fn text(&self, page: &Page) -> String {
        let mut out = String::new();
        for fault in &self.findings {
            page.tree(&mut out, &of_fault(fault));
        }
        for note in &self.notes {
            page.line(&mut out, Line::new().with(Look::Poor, "note: ").plain(note));
        }
        let seen = format!(
            "{} and {} looked over: ",
            count(self.rules, "rule"),
            count(self.daemon_sets, "DaemonSet")
        );
        let (errors, warnings) = (self.count(Severity::Error), self.count(Severity::Warning));
        let line = match (errors, warnings) {
            (0, 0) => Line::new().plain(seen).with(Look::Good, "nothing found"),
            (errors, warnings) => {
                let look = if errors > 0 { Look::Bad } else { Look::Poor };
                let found = format!("{}, {}", count(errors, "error"), count(warnings, "warning"));
                Line::new().plain(seen).with(look, found)
            }
        };
        page.line(&mut out, line);
        out
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.findings.iter().map(|it| it.object.clone()).collect();
        names.dedup();
        names
    }

    fn is_no(&self) -> bool {
        self.count(Severity::Error) > 0
    }
}

fn of_fault(fault: &Fault) -> Branch {
    let (look, word) = match fault.severity {
        Severity::Error => (Look::Bad, "error"),
        Severity::Warning => (Look::Poor, "warning"),
    };
    let mut titles = Check::ALL.iter();
    let title = titles.find(|row| row.1 == fault.id).map_or("", |row| row.3);
    let head = Line::new()
        .with(look, format!("{word} {}", fault.id))
        .plain("  ")
        .with(Look::Strong, &fault.object)
        .with(Look::Faint, format!("  {title}"));
    Branch::new(head).over([
        Branch::new(fault.what.as_str()),
        Branch::new(
            Line::new()
                .with(Look::Strong, "way out: ")
                .plain(&fault.way_out),
        ),
        Branch::new(Line::new().with(Look::Faint, &fault.page)),
    ])
}

fn count(count: usize, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        count => format!("{count} {word}s"),
    }
}
