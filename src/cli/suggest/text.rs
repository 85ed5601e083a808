//! Rules as YAML, with comments that say why: ready to be applied.

use std::fmt::Write as _;

use super::{Recognised, Suggestion, Suggestions};
use crate::api::names::{GROUP, KIND, VERSION};
use crate::cli::answer::Answer;
use crate::cli::page::Page;

const HEAD: &str = "\
# Rules for what runs in this cluster, as dry runs: they change nothing, and say in their status what they would do.
#
#   kubectl nodegate suggest | kubectl apply -f -
#   kubectl nodegate status
#
# Where a rule says what you expect, set its dryRun to false.
";

impl Answer for Suggestions {
    fn text(&self, _: &Page) -> String {
        let mut out = if self.rules.is_empty() {
            "# Nothing runs here that is known and not waited for yet.\n".to_owned()
        } else {
            HEAD.to_owned()
        };
        for (daemon_set, rule) in &self.already {
            let _ = writeln!(out, "# {daemon_set} is waited for by rule {rule} already.");
        }
        for note in &self.notes {
            let _ = writeln!(out, "# note: {}", on_one_line(note));
        }
        for rule in &self.rules {
            of_rule(rule, &mut out);
        }
        out
    }

    fn names(&self) -> Vec<String> {
        let rules = self.rules.iter();
        rules.map(|rule| format!("rule/{}", rule.name)).collect()
    }
}

fn of_rule(rule: &Suggestion, out: &mut String) {
    let Suggestion {
        name,
        taint,
        purpose,
        daemon_sets,
    } = rule;
    let conditions: String = daemon_sets.iter().map(of_daemon_set).collect();
    let mut tolerations = String::new();
    for it in daemon_sets.iter().filter(|it| !it.tolerates) {
        let _ = writeln!(
            tolerations,
            "  # {} does not tolerate it yet, and cannot start on a node that has it: add to its pod template\n  \
             #   tolerations: [{{key: {taint}, operator: Exists}}]",
            it.daemon_set
        );
    }
    let _ = write!(
        out,
        "---
# {why}
apiVersion: {GROUP}/{VERSION}
kind: {KIND}
metadata:
  name: {name}
spec:
  dryRun: true
  # A node that has been open stays open while these are updated.
  enforcementMode: bootstrap-only
  # Nodes that are there already are left alone until they join anew.
  existingNodes: Leave
  conditions:
{conditions}{tolerations}  taint:
    key: {taint}
    value: pending
    effect: NoSchedule
  nodeSelector:
    matchLabels:
      kubernetes.io/os: linux
",
        why = purpose.why(),
    );
}

fn of_daemon_set(it: &Recognised) -> String {
    format!(
        "  # {}\n  - type: {}\n    requiredStatus: \"True\"\n",
        on_one_line(&it.what),
        it.condition
    )
}

/// A text that ends no comment.
fn on_one_line(text: &str) -> String {
    text.split(char::is_control).collect::<Vec<_>>().join(" ")
}
