//! The sections of the page.

use super::html::{Html, section, table};
use jiff::Timestamp;

use crate::cli::check::{Checkup, Severity};
use crate::cli::page::age;
use crate::cli::status::ClusterStatus;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReportPage {
    pub at: Timestamp,
    pub status: ClusterStatus,
    pub checkup: Checkup,
}

pub(super) fn head(report: &ReportPage) -> Html {
    let title = Html::text("Nodegate report").within("h1", &[]);
    let leader = report.status.leader.as_ref();
    let leader = leader.map_or_else(
        || match &report.status.leader_unknown {
            Some(_) => "who leads is unknown".to_owned(),
            None => "there is no Lease".to_owned(),
        },
        |leader| match leader.lease.pod() {
            "" => "no instance leads".to_owned(),
            pod => format!("{pod} leads"),
        },
    );
    let line = format!(
        "read at {}; {leader}; made by kubectl nodegate {}",
        report.at, report.status.versions.client
    );
    title
        .with(Html::text(&line).within("p", &[("class", "faint")]))
        .within("header", &[])
}

pub(super) fn fleet(report: &ReportPage) -> Html {
    let nodes = &report.status.nodes;
    let tiles = [
        ("nodes", nodes.total, ""),
        ("held", nodes.held, if nodes.held > 0 { "bad" } else { "" }),
        ("about to be released", nodes.releasing, ""),
        ("not held", nodes.not_held, "good"),
        (
            "waiting to be gated",
            nodes.waiting,
            if nodes.waiting > 0 { "poor" } else { "" },
        ),
        ("not selected", nodes.not_selected, ""),
        (
            "left as they are",
            nodes.left_alone,
            if nodes.left_alone > 0 { "bad" } else { "" },
        ),
    ];
    let tile = |(word, count, class): (&str, usize, &str)| {
        let count = Html::text(&count.to_string()).within("b", &[("class", class)]);
        count
            .with(Html::text(word).within("span", &[]))
            .within("div", &[("class", "tile")])
    };
    let tiles: Html = tiles.into_iter().map(tile).collect();
    section("Fleet", tiles.within("div", &[("class", "tiles")]))
}

pub(super) fn rules(report: &ReportPage) -> Html {
    let rows = report.status.rules.iter().map(|rule| {
        let lacks: Vec<_> = rule
            .lacks
            .iter()
            .map(|lack| format!("{} {} ({})", lack.condition, lack.reason, lack.nodes))
            .collect();
        let published: Vec<_> = rule
            .published
            .iter()
            .map(|it| format!("{}: {}", it.kind, it.message))
            .collect();
        let remarks = [lacks.join("; "), published.join("; ")].join(" ");
        let if_any = |count: bool, class: &'static str| if count { class } else { "" };
        vec![
            (rule.rule.to_string(), "name"),
            (rule.state.word().to_owned(), ""),
            (rule.taint.clone(), ""),
            (rule.matched.to_string(), "number"),
            (rule.held.to_string(), if_any(rule.held > 0, "number bad")),
            (rule.not_held.to_string(), "number"),
            (
                rule.failing.to_string(),
                if_any(rule.failing > 0, "number bad"),
            ),
            (remarks, "faint"),
        ]
    });
    let heads = [
        "Rule",
        "State",
        "Taint",
        "Nodes",
        "Held",
        "Not held",
        "Failing",
        "Unmet conditions",
    ];
    section("Rules", table(&heads, rows))
}

pub(super) fn held(report: &ReportPage) -> Html {
    if report.status.held.is_empty() {
        return Html::default();
    }
    let rows = report.status.held.iter().map(|held| {
        let since = held
            .since
            .map_or_else(String::new, |since| age(report.at, since));
        vec![
            (held.node.to_string(), "name"),
            (held.rule.to_string(), ""),
            (since, "number"),
            (held.why.clone(), "faint"),
        ]
    });
    section(
        "Held nodes, longest first",
        table(&["Node", "Rule", "For", "Why"], rows),
    )
}

pub(super) fn findings(report: &ReportPage) -> Html {
    let rows = report.checkup.findings.iter().map(|finding| {
        let (word, class) = match finding.severity {
            Severity::Error => ("error", "bad"),
            _ => ("warning", "poor"),
        };
        vec![
            (finding.id.to_owned(), "name"),
            (word.to_owned(), class),
            (finding.object.clone(), ""),
            (finding.message.clone(), ""),
            (finding.fix.clone(), "faint"),
        ]
    });
    let content = if report.checkup.findings.is_empty() {
        Html::text("Nothing found.").within("p", &[])
    } else {
        table(&["Id", "", "Object", "What", "Fix"], rows)
    };
    section("Findings", content)
}

pub(super) fn notes(report: &ReportPage) -> Html {
    let mut notes: Vec<&String> = report
        .status
        .notes
        .iter()
        .chain(&report.checkup.notes)
        .collect();
    notes.sort();
    notes.dedup();
    if notes.is_empty() {
        return Html::default();
    }
    let notes: Html = notes
        .into_iter()
        .map(|note| Html::text(note).within("li", &[]))
        .collect();
    section("What could not be read", notes.within("ul", &[]))
}
