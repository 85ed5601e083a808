//! HTML elements. Text is always escaped.

use std::fmt::Write as _;

use crate::cli::printable::printable;

#[derive(Debug, Clone, Default)]
pub(super) struct Html(String);

impl Html {
    /// Markup from the source code, unescaped.
    pub(super) fn raw(markup: &'static str) -> Self {
        Self(markup.into())
    }

    pub(super) fn text(text: &str) -> Self {
        Self(escaped(text))
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self([self.0, other.0].concat())
    }

    pub(super) fn within(self, kind: &'static str, attributes: &[(&'static str, &str)]) -> Self {
        let mut out = format!("<{kind}");
        for (name, value) in attributes {
            let _ = write!(out, " {name}=\"{}\"", escaped(value));
        }
        Self(format!("{out}>{}</{kind}>\n", self.0))
    }

    pub(super) fn into_string(self) -> String {
        self.0
    }
}

impl FromIterator<Html> for Html {
    fn from_iter<T: IntoIterator<Item = Html>>(pieces: T) -> Self {
        Self(pieces.into_iter().map(Self::into_string).collect())
    }
}

pub(super) fn section(title: &str, content: Html) -> Html {
    let heading = Html::text(title).within("h2", &[]);
    heading.with(content).within("section", &[])
}

/// A table of texts with CSS classes, which may be empty.
pub(super) fn table(
    heads: &[&str],
    rows: impl IntoIterator<Item = Vec<(String, &'static str)>>,
) -> Html {
    let heads: Html = heads
        .iter()
        .map(|head| Html::text(head).within("th", &[]))
        .collect();
    let row = |row: Vec<(String, &'static str)>| {
        let cells = row
            .into_iter()
            .map(|(text, class)| Html::text(&text).within("td", &[("class", class)]));
        cells.collect::<Html>().within("tr", &[])
    };
    let rows: Html = rows.into_iter().map(row).collect();
    let head = heads.within("tr", &[]).within("thead", &[]);
    head.with(rows.within("tbody", &[])).within("table", &[])
}

/// Escapes a text for an element or an attribute.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in printable(text).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            character => out.push(character),
        }
    }
    out
}
