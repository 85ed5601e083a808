//! Compares output with the documentation, except for ages and the column widths that depend on them. `UPDATE_GOLDEN=1`
//! rewrites the documentation.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::world::World;

/// The name of the pod in the documentation.
const POD: &str = "cni-x7k2p";
/// The name of the leader in the documentation.
const LEADER: &str = "nrr-controller-manager-0";

/// Compares printed output with the documentation's.
pub(crate) fn hold(
    world: &World,
    leader: &str,
    page: &str,
    name: &str,
    printed: &str,
) -> Result<()> {
    let printed = printed.replace(&world.network_pod, POD);
    let named = |name| ["leading  ", "controller: "].map(|before| format!("{before}{name} "));
    let leaders = named(leader).into_iter().zip(named(LEADER));
    let printed = leaders.fold(printed, |text, (is, shown)| text.replace(&is, &shown));
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let path = path.join(page);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let shown = block(&text, name).with_context(|| format!("docs/{page} does not show {name}"))?;
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return fs::write(&path, text.replacen(shown, &printed, 1))
            .with_context(|| path.display().to_string());
    }
    ensure!(
        normal(shown) == normal(&printed),
        "docs/{page} shows a {name} that is not printed any more; UPDATE_GOLDEN=1 writes it anew\nshown:\n{shown}\nprinted:\n{printed}"
    );
    Ok(())
}

/// The block of this name, which a comment before it gives.
fn block<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = page.split_once(&format!("<!-- printed: {name} -->"))?;
    let (_, fenced) = after.split_once("```")?;
    let (_, block) = fenced.split_once('\n')?;
    Some(block.split_once("```")?.0)
}

/// A text without anything that varies between runs.
pub(crate) fn normal(text: &str) -> String {
    let words = text.lines().map(|line| {
        let words = line.split_whitespace().map(word);
        words.collect::<Vec<_>>().join(" ")
    });
    words.collect::<Vec<_>>().join("\n")
}

fn word(word: &str) -> String {
    let (head, rest) = word.split_at(word.len() - word.trim_start_matches('(').len());
    let core = rest.trim_end_matches([')', ',', ':', '.']);
    let tail = &rest[core.len()..];
    if is_age(core) {
        format!("{head}AGE{tail}")
    } else if core.ends_with('Z') && core.contains('T') && core.starts_with("20") {
        format!("{head}TIME{tail}")
    } else if !core.is_empty() && core.chars().all(|it| ('█'..='▏').contains(&it)) {
        "BAR".to_owned()
    } else {
        word.to_owned()
    }
}

/// Whether this is an age, such as `2m5s`.
fn is_age(text: &str) -> bool {
    let parts: Vec<&str> = text.split_inclusive(['s', 'm', 'h', 'd']).collect();
    let is_part = |part: &&str| {
        let number = part.trim_end_matches(['s', 'm', 'h', 'd']);
        number.len() + 1 == part.len()
            && !number.is_empty()
            && number.bytes().all(|it| it.is_ascii_digit() || it == b'.')
    };
    !parts.is_empty() && parts.len() <= 2 && parts.iter().all(is_part)
}

#[test]
fn ages_and_times_do_not_differ() {
    for (a, b) in [
        ("held for 2m5s:", "held   for 17s:"),
        ("x (3s)", "x (4h)"),
        ("a ██▍ 1.0s", "a ▏ 1m04s"),
        ("at 2026-11-22T11:48:01Z at", "at 2027-01-01T00:00:00Z at"),
    ] {
        assert_eq!(normal(a), normal(b));
    }
    assert_ne!(normal("3 nodes"), normal("4 nodes"));
}
