//! One table, for people.

use super::closed::Fleet;
use super::draw::{HEADS, head, row};
use crate::cli::answer::Answer;
use crate::cli::page::{Line, Look, Page};

impl Answer for Fleet {
    fn text(&self, page: &Page) -> String {
        let mut out = String::new();
        for line in head(self, page).into_iter().filter(|it| !it.is_empty()) {
            page.line(&mut out, line);
        }
        out.push('\n');
        if self.closed.is_empty() {
            page.line(&mut out, Line::new().with(Look::Good, "no node is closed"));
        } else {
            let rows: Vec<_> = self.closed.iter().map(|it| row(it, page)).collect();
            page.table(&mut out, &HEADS, &rows);
        }
        out
    }

    fn names(&self) -> Vec<String> {
        let closed = self.closed.iter();
        closed.map(|it| format!("node/{}", it.node)).collect()
    }
}
