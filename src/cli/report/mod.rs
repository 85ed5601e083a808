//! `report`: one self-contained HTML page for a post-mortem or a pull request. It has no scripts and no external resources,
//! supports dark and light themes, and can be printed.

mod html;
mod sections;
#[cfg(test)]
mod tests;

use html::Html;
pub(super) use sections::ReportPage;

impl ReportPage {
    pub(super) fn page(&self) -> String {
        let body = Html::raw("")
            .with(sections::head(self))
            .with(sections::fleet(self))
            .with(sections::rules(self))
            .with(sections::held(self))
            .with(sections::findings(self))
            .with(sections::notes(self));
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>Nodegate report</title>\n<style>\n{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
            include_str!("style.css"),
            body.into_string()
        )
    }
}
