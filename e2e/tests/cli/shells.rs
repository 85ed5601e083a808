//! Completion in real shells. Since not every machine has fish and zsh, only `make nightly` runs theirs.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use testkit::nodegate::install::program;
use tokio::process::Command;

use crate::terminal::Terminal;
use crate::world::{HELD, world};

/// A shell's command, which finds the plugin and the cluster.
async fn shell(name: &str) -> Result<Command> {
    let path = std::env::var_os("PATH").context("no PATH")?;
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let plugin = program("kubectl-nodegate")?;
    folders.insert(0, plugin.parent().context("no folder")?.into());
    let mut command = Command::new(name);
    command
        .env("PATH", std::env::join_paths(folders)?)
        .env("KUBECONFIG", world().await?.cluster.kubeconfig());
    Ok(command)
}

/// A shell's output for a script.
async fn answers(name: &str, arguments: &[&str], script: &str) -> Result<String> {
    let mut command = shell(name).await?;
    let output = command
        .args(arguments)
        .args(["-c", script])
        .output()
        .await
        .with_context(|| format!("running {name}"))?;
    ensure!(output.status.success(), "{name}: {output:?}");
    Ok(String::from_utf8(output.stdout)?)
}

#[tokio::test]
async fn bash_completes_names_of_nodes_and_rules() -> Result<()> {
    let script = "source <(kubectl-nodegate completion bash)
        complete_after() { COMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1)); _kubectl_nodegate 2> /dev/null; echo \"${COMPREPLY[@]}\"; }
        complete_after kubectl-nodegate explain rule/netw
        complete_after kubectl-nodegate explain node/worker-
        complete_after kubectl-nodegate expl";
    let said = answers("bash", &["--norc"], script).await?;
    let expected = "rule/network\nnode/worker-1 node/worker-2\nexplain\n";
    assert_eq!(said, expected);
    Ok(())
}

#[tokio::test]
#[ignore = "needs fish: make nightly PARTS=programs"]
async fn fish_completes_names_of_nodes_and_rules() -> Result<()> {
    let script = "kubectl-nodegate completion fish | source
        complete -C 'kubectl-nodegate explain rule/netw'
        complete -C 'kubectl-nodegate explain node/worker-'
        complete -C 'kubectl-nodegate expl'
        complete -C 'kubectl-nodegate preview -f /etc/hostn'";
    let said = answers("fish", &["--no-config"], script).await?;
    let lines: Vec<&str> = said.split_whitespace().collect();
    let expected = [
        "rule/network",
        HELD_NODE,
        "node/worker-2",
        "explain",
        "/etc/hostname",
    ];
    assert_eq!(lines, expected);
    Ok(())
}

/// The completion of the held node.
const HELD_NODE: &str = "node/worker-1";

#[tokio::test]
#[ignore = "needs zsh: make nightly PARTS=programs"]
async fn zsh_completes_names_of_nodes_and_rules() -> Result<()> {
    // zsh only completes interactively.
    let mut command = shell("zsh").await?;
    command.args(["-f", "-i"]);
    let mut terminal = Terminal::open(command)?;
    terminal.types("autoload -U compinit; compinit -D -u; source <(kubectl-nodegate completion zsh); echo so'urced'\n")?;
    terminal.shows("sourced").await?;
    terminal.types("kubectl-nodegate explain rule/netw\t")?;
    terminal.shows("ork").await?;
    // Several matches are listed.
    terminal.types("\u{15}kubectl-nodegate explain node/\t\t")?;
    terminal.shows(HELD).await?;
    terminal.types("\u{15}exit\n")?;
    Ok(())
}
