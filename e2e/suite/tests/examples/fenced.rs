//! The YAML in README, documentation and examples: it can be read, and what is a whole manifest is taken by an API server.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nodegate_testbed::{Cluster, Options};
use serde_json::Value;

use nodegate_testbed::install::repository;

/// Whole manifests that are for somebody else than the API server of a test.
const ELSEWHERE: [&str; 2] = ["KubeletConfiguration", "NodePool"];

/// A fenced block of a page.
struct Block {
    page: String,
    line: usize,
    indent: usize,
    text: String,
}

impl Block {
    fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }
}

/// All Markdown files of a folder and below.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            pages(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    Ok(())
}

/// The blocks that are fenced as YAML.
fn blocks() -> Result<Vec<Block>> {
    let root = repository();
    let mut files = vec![root.join("README.md")];
    pages(&root.join("docs"), &mut files)?;
    pages(&root.join("examples"), &mut files)?;
    let mut blocks = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file)?;
        let page = file.strip_prefix(&root)?.display().to_string();
        let mut open: Option<Block> = None;
        for (index, line) in text.lines().enumerate() {
            match &mut open {
                Some(_) if line.trim_start().starts_with("```") => blocks.extend(open.take()),
                Some(block) => {
                    // A block in a list is indented as the list is.
                    block
                        .text
                        .push_str(line.get(block.indent..).unwrap_or_default());
                    block.text.push('\n');
                }
                None if line.trim_start() == "```yaml" => {
                    open = Some(Block {
                        indent: line.len() - line.trim_start().len(),
                        page: page.clone(),
                        line: index + 1,
                        text: String::new(),
                    });
                }
                None => {}
            }
        }
    }
    Ok(blocks)
}

#[tokio::test]
async fn an_api_server_takes_every_whole_manifest_in_the_documentation() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install().await?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fenced");
    fs::create_dir_all(&folder)?;
    let mut whole = 0;
    for block in blocks()? {
        let documents: Vec<Value> = serde_saphyr::from_multiple(&block.text)
            .with_context(|| format!("{}: not YAML", block.place()))?;
        let is_whole = |document: &Value| {
            let kind = document["kind"].as_str();
            document["metadata"]["name"].is_string()
                && kind.is_some_and(|kind| !ELSEWHERE.contains(&kind))
        };
        if documents.is_empty() || !documents.iter().all(is_whole) {
            continue;
        }
        whole += 1;
        let file = folder.join(format!("{whole}.yaml"));
        fs::write(&file, &block.text)?;
        let file = file.to_string_lossy();
        let arguments = [
            "apply",
            "--dry-run=server",
            "--validate=strict",
            "-f",
            &file,
        ];
        let taken = cluster.kubectl(&arguments).await;
        taken.with_context(|| block.place())?;
    }
    assert!(whole > 0, "no whole manifest was found");
    Ok(())
}
