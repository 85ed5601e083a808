//! Checks README, documentation and examples: relative links lead to existing files, anchors to headings; the book contains
//! every page, and each alert has a runbook. It also checks that CI only calls what anybody can type, and that build tools are
//! pinned.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use nodegate_tests::pages::{files, pages, typed};
use serde_json::Value;
use testkit::nodegate::install::{config, repository};

/// The lines of a page outside its code blocks.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// The targets of the links on a page.
fn links(page: &str) -> impl Iterator<Item = &str> {
    prose(page).flat_map(|line| {
        line.split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
    })
}

/// The anchors of a page's headings, as GitHub and mdBook generate them.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let headings = prose(page).filter(|line| line.starts_with('#'));
    for heading in headings {
        let anchor: String = heading
            .trim_start_matches('#')
            .trim()
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let mut unique = anchor.clone();
        let mut number = 1;
        while !anchors.insert(unique.clone()) {
            unique = format!("{anchor}-{number}");
            number += 1;
        }
    }
    anchors
}

/// Resolves a path relative to a page from the repository's root.
fn resolve(page: &str, relative: &str) -> Option<String> {
    if relative.is_empty() {
        return Some(page.to_owned());
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in relative.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Whether there is a page or other file of this path in the repository, with the anchor of a link, if it has one.
fn leads(pages: &BTreeMap<String, String>, path: &str, anchor: &str) -> bool {
    let has_anchor = || {
        pages
            .get(path)
            .is_some_and(|it| anchors(it).contains(anchor))
    };
    repository().join(path).exists() && (anchor.is_empty() || has_anchor())
}

#[test]
fn every_relative_link_leads_somewhere() -> Result<()> {
    let pages = pages()?;
    let mut broken = Vec::new();
    for (page, text) in &pages {
        for link in links(text).filter(|link| !link.contains("://")) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = resolve(page, path);
            if !target.is_some_and(|target| leads(&pages, &target, anchor)) {
                broken.push(format!("{page}: {link}"));
            }
        }
    }
    ensure!(broken.is_empty(), "{}", broken.join("\n"));
    Ok(())
}

#[test]
fn files_that_pages_name_exist() -> Result<()> {
    let folders = ["charts/", "config/", "e2e/", "hack/", "src/", "tests/"];
    let is_of_paths = |c: char| c.is_alphanumeric() || "/._-".contains(c);
    let mut missing = Vec::new();
    for (page, text) in pages()? {
        // The CHANGELOG names what was.
        let spans = text.split('`').skip(1).step_by(2);
        let paths = spans.filter(|span| {
            let is_path = folders.iter().any(|folder| span.starts_with(folder));
            is_path && span.chars().all(is_of_paths) && page != "CHANGELOG.md"
        });
        let gone = paths.filter(|path| !repository().join(path).exists());
        missing.extend(gone.map(|path| format!("{page}: {path}")));
    }
    ensure!(missing.is_empty(), "{}", missing.join("\n"));
    Ok(())
}

#[test]
fn the_book_has_every_page() -> Result<()> {
    let pages = pages()?;
    let summary = "docs/SUMMARY.md";
    let listed: BTreeSet<String> = links(&pages[summary])
        .filter_map(|link| resolve(summary, link))
        .collect();
    let missing: Vec<_> = pages
        .keys()
        .filter(|page| page.as_str() != summary)
        .filter(|page| !listed.contains(*page))
        .collect();
    ensure!(missing.is_empty(), "not in {summary}: {missing:?}");
    Ok(())
}

/// `docs/glossary.md` defines the words; these others for *held*, *released* and *remove* slip in easily.
#[test]
fn a_held_node_is_called_held() -> Result<()> {
    const NOT: [&str; 8] = [
        "closed node",
        "closes nodes",
        "closes the node",
        "closed at birth",
        "open node",
        "opens the node",
        "lifts",
        "lifted",
    ];
    let pages = pages()?;
    let written = pages
        .iter()
        .filter(|(page, _)| !page.starts_with("docs/reference/"));
    for (page, text) in written {
        for line in prose(text) {
            let words: String = line.split('`').step_by(2).collect();
            let not = NOT.iter().find(|not| words.contains(**not));
            ensure!(not.is_none(), "{page}: {line}");
        }
    }
    Ok(())
}

/// The pages that messages and `--help` link to, as the sources name them.
#[test]
fn pages_that_the_program_links_to_exist() -> Result<()> {
    const NAMED: &str = "documentation::page(\"";
    let pages = pages()?;
    let mut found = BTreeSet::new();
    for (_, text) in files(&repository().join("src"), "rs")? {
        let links = text.split(NAMED).skip(1);
        let links = links.filter_map(|rest| rest.split('"').next());
        found.extend(links.map(str::to_owned));
    }
    ensure!(found.len() >= 4, "{found:?}");
    for link in &found {
        let (page, anchor) = link.split_once('#').unwrap_or((link, ""));
        let page = format!("docs/{page}");
        ensure!(leads(&pages, &page, anchor), "{link} is not there");
    }
    Ok(())
}

#[test]
fn anchors_are_made_as_readers_expect() {
    let page = "# A `code` title\n\n## Status, events\n\n```sh\n# no heading\n```\n\n## Twice\n\n## Twice\n";
    let expected = ["a-code-title", "status-events", "twice", "twice-1"];
    assert_eq!(anchors(page), expected.map(String::from).into());
}

#[test]
fn commands_in_pages_name_files_and_targets_that_exist() -> Result<()> {
    let makefile = read("Makefile")?;
    let is_target = |word: &str| makefile.contains(&format!("\n{word}:"));
    let mut wrong = Vec::new();
    for block in typed()? {
        let place = block.place();
        for line in block.text.lines() {
            let command = line.split(" #").next().unwrap_or_default();
            let words: Vec<&str> = command.split_whitespace().collect();
            for (index, word) in words.iter().enumerate() {
                let path = word.trim_matches(|c: char| "'\"`,;)".contains(c));
                let path = path.split_once('=').map_or(path, |(_, path)| path);
                let folders = ["config/", "charts/", "examples/", "hack/", "docs/"];
                let is_path = folders.iter().any(|folder| path.starts_with(folder));
                if is_path && !path.contains('*') && !repository().join(path).exists() {
                    wrong.push(format!("{place}: no {path}: {line}"));
                }
                let target = words
                    .get(index + 1)
                    .filter(|_| *word == "make" && index == 0);
                if target.is_some_and(|target| !target.contains('=') && !is_target(target)) {
                    wrong.push(format!("{place}: no target: {line}"));
                }
            }
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn scripts_are_valid_and_the_one_for_trying_it_out_names_what_is_there() -> Result<()> {
    for entry in fs::read_dir(repository().join("hack"))? {
        let path = entry?.path();
        if path.is_file() && fs::read_to_string(&path)?.starts_with("#!/usr/bin/env bash") {
            let checked = Command::new("bash").arg("-n").arg(&path).status()?;
            ensure!(checked.success(), "{}", path.display());
        }
    }
    let script = repository().join("hack/try-cluster");
    for cluster in ["kind", "k3d", "k3s"] {
        let printed = Command::new(&script)
            .args([cluster, "--dry-run"])
            .output()?;
        ensure!(printed.status.success(), "{cluster}");
        let printed = String::from_utf8(printed.stderr)?;
        let words: Vec<&str> = printed.split_whitespace().collect();
        ensure!(words.contains(&cluster), "{printed}");
        let folders = ["config/", "docs/", "hack/"];
        let is_path = |word: &&str| folders.iter().any(|folder| word.starts_with(folder));
        for path in words.into_iter().filter(is_path) {
            let path = path.trim_end_matches(',');
            ensure!(repository().join(path).exists(), "{cluster}: no {path}");
        }
    }
    Ok(())
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(repository().join(path)).with_context(|| path.to_owned())
}

#[test]
fn every_alert_has_a_runbook_of_its_own() -> Result<()> {
    const PAGE: &str = "docs/troubleshooting.md#";
    let alerts = fs::read_to_string(config("prometheus").join("alerts.yaml"))?;
    let alerts: Value = serde_saphyr::from_str(&alerts)?;
    let alerts = alerts["groups"][0]["rules"].as_array();
    let headings: BTreeSet<String> = anchors(&read("docs/troubleshooting.md")?)
        .into_iter()
        .filter(|heading| heading.starts_with("nodegate"))
        .collect();
    let mut told = BTreeSet::new();
    for alert in alerts.context("no alerts")? {
        let name = alert["alert"].as_str().context("an alert without name")?;
        let url = alert["annotations"]["runbook_url"].as_str();
        let anchor = url.and_then(|url| url.strip_prefix(PAGE));
        ensure!(anchor == Some(&name.to_lowercase()), "{name}: {url:?}");
        told.insert(name.to_lowercase());
    }
    assert_eq!(told, headings, "what alerts link to, and headings");
    Ok(())
}

#[test]
fn releases_are_built_with_a_toolchain_that_is_named_and_new_enough() -> Result<()> {
    let version = |text: &str| -> Option<Vec<u32>> {
        let numbers = text.split('.').map(|number| number.parse().ok());
        numbers.collect()
    };
    let manifest = read("Cargo.toml")?;
    let oldest = manifest
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'));
    let oldest = oldest.and_then(version).context("no rust-version")?;
    let named = read("hack/toolchain")?;
    let named = named.split("echo ").nth(1).context("no version")?.trim();
    let used = version(named).with_context(|| format!("{named} is no version"))?;
    ensure!(used.len() == 3 && used >= oldest, "{named}");
    let dockerfile = read("Dockerfile")?;
    for name in [
        format!("rust:{named}-"),
        format!("RUSTUP_TOOLCHAIN={named}\n"),
    ] {
        ensure!(dockerfile.contains(&name), "the Dockerfile has no {name}");
    }
    Ok(())
}

#[test]
fn workflows_run_what_anybody_can_type_and_name_what_is_used_of_others_by_commit() -> Result<()> {
    let makefile = read("Makefile")?;
    let mut steps = 0;
    for entry in fs::read_dir(repository().join(".github/workflows"))? {
        let path = entry?.path();
        let workflow: Value = serde_saphyr::from_str(&fs::read_to_string(&path)?)?;
        let jobs = workflow["jobs"].as_object().context("no jobs")?;
        let all = jobs.values().filter_map(|job| job["steps"].as_array());
        for step in all.flatten() {
            steps += 1;
            if let Some(action) = step["uses"].as_str() {
                let commit = action.split_once('@').map(|(_, commit)| commit);
                let is_commit = |text: &str| {
                    text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
                };
                ensure!(commit.is_some_and(is_commit), "{action}");
                continue;
            }
            let run = step["run"].as_str().context("a step that does nothing")?;
            let words: Vec<&str> = run.split(' ').collect();
            let is_target = |target: &&str| makefile.contains(&format!("\n{target}:"));
            let is_script = |word: &&str| repository().join(word).is_file();
            let is_typed = match words[..] {
                ["make", ref targets @ ..] => targets.iter().all(is_target),
                ["gh" | "sudo", ..] => true,
                ref scripts => scripts
                    .iter()
                    .all(|word| word.starts_with('-') || is_script(word)),
            };
            ensure!(is_typed, "{run}");
        }
    }
    assert!(steps > 0, "no steps");
    Ok(())
}

#[test]
fn every_part_of_a_night_has_a_machine_of_its_own() -> Result<()> {
    let makefile = read("Makefile")?;
    let parts = makefile
        .lines()
        .find_map(|line| line.strip_prefix("PARTS ?= "));
    let nightly: Value = serde_saphyr::from_str(&read(".github/workflows/nightly.yml")?)?;
    let machines = nightly["jobs"]["part"]["strategy"]["matrix"]["part"].as_array();
    let machines: Option<Vec<&str>> = machines
        .context("no parts")?
        .iter()
        .map(Value::as_str)
        .collect();
    assert_eq!(machines, parts.map(|parts| parts.split(' ').collect()));
    Ok(())
}
