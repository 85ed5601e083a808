//! The page is complete and well-formed, and hostile names stay text.

use super::*;
use crate::check::{Check, Checkup, Finding};
use crate::explain::explain_node;
use crate::startup::tests::drawn;
use crate::status::status;
use crate::testing::Scene;
use crate::testing::{Builder, GATE, at, node, rule};
use serde_json::json;

const HOSTILE: &str = "</title><script>alert(1)</script>\"'&<img src=x onerror=y>\u{7}\u{202e}";

fn reported(word: &str) -> String {
    let held = node("held").created(at(0)).taint(GATE, "NoSchedule");
    let held = held.condition("example.com/a", "False");
    let network = rule("network").waits_for("example.com/a");
    let read = Scene::default().rule(&network).node(held).read(at(60));
    let mut status = status(&read);
    status.notes.push(word.into());
    let event = json!({"reason": word, "message": word, "lastTimestamp": at(7), "metadata": {}, "involvedObject": {}});
    let events = vec![serde_json::from_value(event).unwrap()];
    let held = vec![(explain_node(&read, "held").unwrap(), events)];
    let checkup = Checkup {
        rules: 1,
        daemon_sets: 0,
        findings: vec![Finding::new(Check::CONFLICT, word, word, word)],
        notes: Vec::new(),
        unread: None,
    };
    let mut starts = drawn();
    starts.components[0].component = word.into();
    starts.nodes[0].components[0].notes = vec![word.into()];
    let at = at(60) + jiff::SignedDuration::from_millis(1);
    report(at, word, &status, &held, &starts, &checkup)
}

/// The page's element names, in order; fails if an element is not closed correctly.
fn elements(page: &str) -> Vec<&str> {
    let mut open = Vec::new();
    let mut all = Vec::new();
    for part in page.split('<').skip(1) {
        let (tag, _) = part.split_once('>').expect("a tag that does not end");
        let name = tag.split(' ').next().unwrap_or_default();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{page}"),
            None if ["!doctype", "meta"].contains(&name) => {}
            None => {
                open.push(name);
                all.push(name);
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
    all
}

#[test]
fn the_page_has_all_that_it_is_about() {
    let page = reported("example.com/Slow");
    for text in [
        "cluster example.com/Slow, read at 2026-01-01T00:01:00Z; ",
        "its reporter on this node reports so",
        "2026-01-01T00:00:07Z </span>",
        "NG012",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let (_, starts) = page.split_once("LAST").unwrap();
    let cells = starts.split("</tr>").nth(1).unwrap().split("\">").skip(1);
    let cells = cells.map(|it| it.split('<').next().unwrap());
    let known = [
        "example.com/Slow",
        "1",
        "-",
        "-",
        "-",
        "41s/41s",
        "13s/13s",
        "-",
        "13s/13s",
    ];
    assert_eq!(cells.collect::<Vec<_>>(), known);
    let bars = page.matches("<rect class=\"bar-2588\"").count();
    assert_eq!(bars, 4 + 19);
    let count = |name: &str| elements(&page).iter().filter(|it| **it == name).count();
    assert_eq!((count("script"), count("link")), (0, 0));
    assert!(
        !page.contains("src=") && !page.contains("href=") && !page.contains("url("),
        "{page}"
    );
}

#[test]
fn hostile_names_add_no_markup_to_the_page() {
    let (plain, hostile) = (reported("example.com/Slow"), reported(HOSTILE));
    assert_eq!(elements(&plain), elements(&hostile));
    assert!(
        hostile.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;"),
        "{hostile}"
    );
    for order in ["<script", "<img", "\u{7}", "\u{202e}"] {
        assert!(!hostile.contains(order), "{order:?}");
    }
}
