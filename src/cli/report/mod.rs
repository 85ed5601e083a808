//! `report`: one page for a post-mortem or a pull request, which needs nothing beside itself: no script, nothing from elsewhere,
//! dark and light, readable on paper.
//!
//! | file | what it does |
//! |---|---|
//! | `content` | what it is made of |
//! | `html` | elements, with everything escaped |
//! | `bars` | drawings of how long what took |
//! | `sections` | what the page says |
//! | `style.css` | how it looks |

mod bars;
mod content;
mod html;
mod sections;
#[cfg(test)]
mod tests;

pub use content::Report;
use html::Html;

impl Report {
    /// The page.
    #[must_use]
    pub fn page(&self) -> String {
        let body = Html::raw("")
            .with(sections::head(self))
            .with(sections::fleet(self))
            .with(sections::rules(self))
            .with(sections::held(self))
            .with(sections::starts(self))
            .with(sections::conditions(self))
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
