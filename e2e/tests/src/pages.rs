//! This repository's pages and their fenced blocks.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use testkit::nodegate::install::repository;

/// Pages outside the documentation folders.
const OUTSIDE: [&str; 6] = [
    "README.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "charts/nodegate/README.md",
];

/// A fenced block on a page.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// The page, by its path in the repository.
    pub page: String,
    /// Its line on the page.
    pub line: usize,
    /// Its content; for a terminal session, only the typed commands.
    pub text: String,
}

impl Block {
    /// Its page and line.
    pub fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }
}

/// All pages, by their paths in the repository.
pub fn pages() -> Result<BTreeMap<String, String>> {
    let mut pages = BTreeMap::new();
    for page in OUTSIDE {
        let text = fs::read_to_string(repository().join(page)).context(page)?;
        pages.insert(page.to_owned(), text);
    }
    for folder in ["docs", "examples"] {
        for (path, text) in files(&repository().join(folder), "md")? {
            let page = path.strip_prefix(repository())?.to_string_lossy();
            pages.insert(page.into_owned(), text);
        }
    }
    Ok(pages)
}

/// The files with this extension in a folder and below, with their contents.
pub fn files(folder: &Path, extension: &str) -> Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path, extension)?);
        } else if path.extension().is_some_and(|kind| kind == extension) {
            let text = fs::read_to_string(&path);
            let text = text.with_context(|| path.display().to_string())?;
            found.push((path, text));
        }
    }
    Ok(found)
}

/// All blocks with commands to type, ordered by page.
pub fn typed() -> Result<Vec<Block>> {
    fenced(&["sh", "console"])
}

/// All YAML blocks.
pub fn yaml() -> Result<Vec<Block>> {
    fenced(&["yaml"])
}

fn fenced(kinds: &[&str]) -> Result<Vec<Block>> {
    let pages = pages()?;
    let blocks = pages
        .iter()
        .flat_map(|(page, text)| on_page(page, text, kinds));
    Ok(blocks.collect())
}

/// The blocks of these languages on a page.
fn on_page(page: &str, text: &str, kinds: &[&str]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let fence = line.trim_start();
        let indent = line.len() - fence.len();
        let Some(kind) = fence.strip_prefix("```") else {
            continue;
        };
        let body = lines.by_ref().map(|(_, line)| line);
        let body = body.take_while(|line| !line.trim_start().starts_with("```"));
        // A block in a list is indented with the list.
        let body = body.map(|line| line.get(indent..).unwrap_or_default());
        let body: Vec<&str> = match kind {
            "console" => body.filter_map(|line| line.strip_prefix("$ ")).collect(),
            _ => body.collect(),
        };
        if kinds.contains(&kind) && !body.is_empty() {
            blocks.push(Block {
                page: page.to_owned(),
                line: index + 1,
                text: body.join("\n") + "\n",
            });
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_commands_of_a_session_are_taken() {
        let page =
            "```sh\na\n```\n\n- so:\n\n  ```console\n  $ b -c\n  said\n  ```\n\n```text\nd\n```\n";
        let blocks = on_page("p", page, &["sh", "console"]);
        let found: Vec<_> = blocks
            .iter()
            .map(|it| (it.place(), it.text.as_str()))
            .collect();
        assert_eq!(found, [("p:1".into(), "a\n"), ("p:7".into(), "b -c\n")]);
    }
}
