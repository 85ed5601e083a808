//! The output of the commands. That it agrees with the controller is checked as the last test ends.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use anyhow::{Result, ensure};
use nodegate_tests::{SOON, has_words, rules};
use serde_json::{Value, json};
use testkit::kubernetes::versions::is_since;
use testkit::nodegate::ask::{ask, ask_json, command};
use testkit::nodegate::changes::{delete_node, patch_node};
use testkit::nodegate::{eventually, fixtures};

use crate::golden::{hold, normal};
use crate::world::{HELD, TURN, World, world};

/// A rule that gates the node that is not held.
const RULES: &str = include_str!("gpu.yaml");

/// Well-known `DaemonSet`s that match no node here, and a rule that waits for one that cannot start.
const PROGRAMS: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: gpu-operator}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: cilium, namespace: kube-system}
spec:
  selector: {matchLabels: {app: cilium}}
  template:
    metadata: {labels: {app: cilium}}
    spec:
      nodeSelector: {there: 'no'}
      tolerations: [{operator: Exists}]
      containers: [{name: agent, image: quay.io/cilium/cilium:v1.18.0}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-proxy, namespace: kube-system, labels: {node.gardener.cloud/critical-component: 'true'}}
spec:
  selector: {matchLabels: {app: kube-proxy}}
  template:
    metadata: {labels: {app: kube-proxy}}
    spec:
      nodeSelector: {there: 'no'}
      tolerations: [{operator: Exists}]
      containers: [{name: proxy, image: registry.k8s.io/kube-proxy:v1.36.0}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: ebs-csi-node, namespace: kube-system}
spec:
  selector: {matchLabels: {app: ebs-csi-node}}
  template:
    metadata: {labels: {app: ebs-csi-node}}
    spec:
      nodeSelector: {there: 'no'}
      containers:
      - {name: plugin, image: 'public.ecr.aws/ebs-csi-driver/aws-ebs-csi-driver:v1.50.0'}
      - {name: registrar, image: 'registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.15.0'}
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: ebs.csi.aws.com}
spec: {attachRequired: true}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: nvidia-device-plugin-daemonset, namespace: gpu-operator}
spec:
  selector: {matchLabels: {app: nvidia-device-plugin-daemonset}}
  template:
    metadata: {labels: {app: nvidia-device-plugin-daemonset}}
    spec:
      nodeSelector: {nvidia.com/gpu.deploy.device-plugin: 'true'}
      containers: [{name: plugin, image: 'nvcr.io/nvidia/k8s-device-plugin:v0.17.4'}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: istio-cni, namespace: kube-system}
spec:
  selector: {matchLabels: {app: istio-cni}}
  template:
    metadata: {labels: {app: istio-cni}}
    spec:
      nodeSelector: {there: 'no'}
      containers: [{name: agent, image: example.com/mesh-agent}]
---
apiVersion: readiness.node.x-k8s.io/v1alpha1
kind: NodeReadinessRule
metadata: {name: mesh}
spec:
  enforcementMode: bootstrap-only
  conditions: [{type: daemonset.nodegate.dev/kube-system.istio-cni, requiredStatus: 'True'}]
  taint: {key: readiness.k8s.io/mesh, effect: NoSchedule}
  nodeSelector: {matchLabels: {there: 'no'}}
";

async fn leader(world: &World) -> Result<String> {
    let status = ask_json(&world.cluster.kubeconfig(), &["status"]).await?;
    let holder = status["leader"]["holder"].as_str().unwrap_or_default();
    Ok(holder.split('_').next().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn what_the_documentation_shows_is_what_is_printed() -> Result<()> {
    let world = world().await?;
    let _turn = TURN.lock().await;
    let leader = leader(world).await?;
    let gpu = world.path("gpu.yaml");
    std::fs::write(&gpu, RULES)?;
    let client = world.cluster.client().await?;
    let is_new = is_since(&client, 36, "the page about check").await?;
    let held = format!("node/{HELD}");
    let page = "kubectl.md";
    #[rustfmt::skip]
    let cases = [
        (page, "explain-node", vec!["explain", &held], 0),
        (page, "explain-rule", vec!["explain", "rule/network"], 0),
        (page, "explain-pod", vec!["explain", "pod/shop", "-n", "default"], 0),
        (page, "status", vec!["status"], 0),
        (page, "preview", vec!["preview", "-f", &gpu], 2),
        ("kubectl/check.md", "check", vec!["check"], 0),
    ];
    for (page, name, arguments, code) in cases {
        let said = world.asks(&arguments, code).await?;
        // Older versions cannot check that nodes are gated at creation.
        if name == "check" && !is_new {
            continue;
        }
        hold(world, &leader, page, name, &said.out)?;
    }
    Ok(())
}

#[tokio::test]
async fn what_the_documentation_shows_of_findings_and_suggestions_is_what_is_printed() -> Result<()>
{
    let world = world().await?;
    let _turn = TURN.lock().await;
    let leader = leader(world).await?;
    world.cluster.apply(PROGRAMS).await?;
    for (page, name, arguments, code) in [
        ("kubectl/check.md", "check-findings", vec!["check"], 2),
        ("kubectl.md", "suggest", vec!["suggest"], 0),
    ] {
        let said = world.asks(&arguments, code).await?;
        // What is well is on the page already.
        let lines = said.out.lines().filter(|line| !line.starts_with("ok  "));
        let out: String = lines.flat_map(|line| [line, "\n"]).collect();
        // Of several rules, the page has the first.
        let parts: Vec<&str> = out.split("\n---\n").take(2).collect();
        let shown = parts.join("\n---\n");
        hold(
            world,
            &leader,
            page,
            name,
            &format!("{}\n", shown.trim_end()),
        )?;
    }
    for arguments in [&["suggest"][..], &["suggest", "-o", "yaml"]] {
        let said = world.asks(arguments, 0).await?;
        let file = world.path("suggested.yaml");
        std::fs::write(&file, &said.out)?;
        let apply = format!("apply --dry-run=server -f {file}");
        let applied = world.cluster.types(&apply).await?;
        assert_eq!(applied.lines().count(), 3, "{arguments:?}: {applied}");
    }
    for namespace in ["kube-system", "gpu-operator"] {
        let delete = format!("delete daemonsets --all -n {namespace}");
        world.cluster.types(&delete).await?;
    }
    let client = world.cluster.client().await?;
    rules::delete(&client, "mesh").await
}

/// A `DaemonSet` that no node has room for.
const CROWDED: &str = "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: crowded, namespace: default}
spec:
  selector: {matchLabels: {app: crowded}}
  template:
    metadata: {labels: {app: crowded}}
    spec:
      nodeSelector: {pool: crowded}
      tolerations: [{operator: Exists}]
      containers: [{name: agent, image: example.com/agent, resources: {requests: {cpu: 100}}, readinessProbe: {exec: {command: [a]}}}]
";

#[tokio::test]
async fn why_a_daemon_set_has_no_pod_on_a_node_is_said() -> Result<()> {
    let world = world().await?;
    let _turn = TURN.lock().await;
    let client = world.cluster.client().await?;
    world.cluster.apply(CROWDED).await?;
    let rule = fixtures::rule("crowded", "readiness.k8s.io/crowded").selects("pool", "crowded");
    let rule = rule.waits_for("daemonset.nodegate.dev/default.crowded");
    rule.create(&client).await?;
    let node = fixtures::node("crowded").label("pool", "crowded");
    let node = node.allocatable("pods", "100").allocatable("cpu", "8");
    node.managed_by_kwok().create(&client).await?;
    let explain = ["explain", "node/crowded", "-o", "json"];
    eventually("it says what the scheduler says", SOON * 3, async || {
        let said = ask(&world.cluster.kubeconfig(), &explain).await?;
        Ok(said.out.contains("Insufficient cpu").then_some(()))
    })
    .await?;
    let delete = "delete daemonset crowded -n default";
    world.cluster.types(delete).await?;
    rules::delete(&client, "crowded").await?;
    delete_node(&client, "crowded").await
}

#[tokio::test]
async fn what_somebody_keeps_undoing_is_said() -> Result<()> {
    const KEY: &str = "readiness.k8s.io/undone";
    const UNDONE: &str = "somebody else keeps putting back taint";
    let world = world().await?;
    let _turn = TURN.lock().await;
    let client = world.cluster.client().await?;
    let rule = fixtures::rule("undone", KEY).waits_for("example.com/Undone");
    let rule = rule.bootstrap_only().selects("pool", "undone");
    rule.create(&client).await?;
    let node = fixtures::node("undone").label("pool", "undone");
    let node = node.condition("example.com/Undone", "True");
    node.taint(KEY, "NoSchedule").create(&client).await?;
    let taints = json!({"spec": {"taints": [{"key": KEY, "effect": "NoSchedule"}]}});
    let explain = ["explain", "node/undone", "-o", "json"];
    eventually("the rule waits", SOON * 3, async || {
        patch_node(&client, "undone", &taints).await?;
        let said = ask(&world.cluster.kubeconfig(), &explain).await?;
        Ok(said.out.contains(UNDONE).then_some(()))
    })
    .await?;
    let said = world.asks(&["check", "-o", "json"], 2).await?;
    has_words(&said.out, UNDONE)?;
    rules::delete(&client, "undone").await?;
    delete_node(&client, "undone").await
}

#[tokio::test]
async fn a_dump_answers_as_the_cluster_does() -> Result<()> {
    let world = world().await?;
    let _turn = TURN.lock().await;
    let dump = world.path("dump");
    world.asks(&["dump", &dump], 0).await?;
    let held = format!("node/{HELD}");
    for question in [
        ["explain", held.as_str()],
        ["explain", "rule/network"],
        ["explain", "pod/shop"],
    ] {
        let live = world.asks(&question, 0).await?;
        let question = [&question[..], &["--from", &dump]].concat();
        let dumped = world.asks(&question, 0).await?;
        assert_eq!(normal(&live.out), normal(&dumped.out));
    }
    let again = world.asks(&["dump", &dump], 1).await?;
    has_words(&again.err, "not empty")?;
    let about = format!("{dump}/dump.json");
    let text = std::fs::read_to_string(&about)?;
    std::fs::write(&about, text.replace("\"form\": 1", "\"form\": 99"))?;
    let other = world.asks(&["status", "--from", &dump], 1).await?;
    has_words(&other.err, "form 99")?;
    let redacted = world.path("redacted");
    world.asks(&["dump", "--redact", &redacted], 0).await?;
    for file in std::fs::read_dir(&redacted)? {
        let file = file?;
        let mode = file.metadata()?.permissions().mode();
        ensure!(mode & 0o777 == 0o600, "{file:?} has mode {mode:o}");
        let text = std::fs::read_to_string(file.path())?;
        ensure!(!text.contains("Back-off"), "{text}");
    }
    let question = ["status", "--from", &redacted];
    world.asks(&question, 0).await.map(drop)
}

#[tokio::test]
async fn a_closed_pipe_is_no_error() -> Result<()> {
    let world = world().await?;
    let mut child = command(&world.cluster.kubeconfig(), &["status", "-o", "json"])?
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    drop(child.stdout.take());
    let output = tokio::task::spawn_blocking(move || child.wait_with_output()).await??;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success() && complaint.is_empty(),
        "{output:?}"
    );
    Ok(())
}

#[tokio::test]
async fn wait_for_a_held_node_ends_when_the_time_is_up() -> Result<()> {
    let world = world().await?;
    let question = ["status", "--wait", "--timeout=2s"];
    let said = world.asks(&question, 2).await?;
    for told in ["waiting: ", "time is up after 2s: ", HELD] {
        has_words(&said.err, told)?;
    }
    Ok(())
}

#[tokio::test]
async fn a_preview_goes_by_the_limits_that_the_leader_says() -> Result<()> {
    let world = world().await?;
    let _turn = TURN.lock().await;
    let kubeconfig = world.cluster.kubeconfig();
    let rule =
        fixtures::rule("limited", "readiness.k8s.io/limited").waits_for("example.com/Nobody");
    let rule = rule.selects("pool", "workers");
    let file = world.path("limited.json");
    std::fs::write(&file, rule.build().to_string())?;
    let preview = ["preview", "-f", &file];
    let said = ask_json(&kubeconfig, &preview).await?;
    assert_eq!(said["notes"], Value::Null, "{said:#}");
    // A dump contains enough for the same answer.
    let dump = world.path("limits");
    world.asks(&["dump", &dump], 0).await?;
    let from_dump = [&preview[..], &["--from", &dump]].concat();
    let again = ask_json(&kubeconfig, &from_dump).await?;
    assert_eq!(again["rules"], said["rules"]);
    let not_asked = "whether the API server takes the rules was not asked: this is a dump";
    assert_eq!(again["notes"], json!([not_asked]), "{again:#}");
    // Nobody leads any more.
    let leases = format!("{dump}/leases.json");
    let ended = std::fs::read_to_string(&leases)?.replace("\"renewTime\"", "\"renewedBefore\"");
    std::fs::write(&leases, ended)?;
    let unknown = ask_json(&kubeconfig, &from_dump).await?;
    has_words(
        &unknown["notes"].to_string(),
        "no controller that leads says what its limits are",
    )
}

#[tokio::test]
async fn a_preview_says_what_the_api_server_refuses_and_whether_it_was_asked() -> Result<()> {
    let world = world().await?;
    let _turn = TURN.lock().await;
    let client = world.cluster.client().await?;
    let kubeconfig = world.cluster.kubeconfig();
    let rule = |fields: Value| {
        let rule = fixtures::rule("refused", "readiness.k8s.io/refused");
        let rule = rule.waits_for("example.com/Nobody").selects("a", "b");
        let fields = fields.as_object().into_iter().flatten();
        fields.fold(rule, |rule, (name, value)| rule.spec(name, value.clone()))
    };
    let file = world.path("refused.json");
    let preview = ["preview", "-f", &file];
    let refusals = async |fields: Value| {
        std::fs::write(&file, rule(fields).build().to_string())?;
        let said = ask_json(&kubeconfig, &preview).await?;
        anyhow::Ok(said["rules"][0]["refusals"].to_string().replace('\\', ""))
    };
    #[rustfmt::skip]
    let cases = [
        (json!({"gracePeriode": "1m"}), "unknown field \"spec.gracePeriode\""),
        (json!({"gracePeriod": "1m"}), "`gracePeriod` belongs under `spec.nodegate`"),
        (json!({"enforcementMode": "bootstrap-only", "nodegate": { "gracePeriod": "1m" }}), "gracePeriod"),
        (json!({"nodegate": { "heartbeatTimeout": "5s" }}), "heartbeatTimeout"),
        (json!({"nodegate": { "repair": {"readinessTTL": "10s", "action": "Release"} }}), "readinessTTL"),
        (json!({"nodeSelector": {}}), "nodeSelector"),
    ];
    for (fields, expected) in cases {
        let refusals = refusals(fields).await?;
        has_words(&refusals, expected)?;
        world.asks(&preview, 2).await?;
    }
    // What cannot be changed of a rule that is there.
    rule(json!({})).create(&client).await?;
    let refusals = refusals(json!({"enforcementMode": "bootstrap-only"})).await?;
    has_words(&refusals, "enforcementMode is immutable")?;
    rules::delete(&client, "refused").await?;

    let previewer = world.account("previewer", "nodegate-view").await?;
    let said = ask(&previewer, &preview).await?;
    has_words(&said.out, "not asked: no permission to create rules")
}
