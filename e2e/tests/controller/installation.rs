//! Incomplete installations and typing errors: the controller reports what is missing and what to type, and continues once that
//! is fixed.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nodegate_tests::gates::{eventually_gated, eventually_released};
use nodegate_tests::network::{CONDITION, TAINT, gates_and_releases};
use nodegate_tests::rules::{create_rule, eventually_gone, key};
use nodegate_tests::{SOON, has_words};
use serde_json::{Value, json};
use testkit::nodegate::changes::delete_rule;
use testkit::nodegate::controller::binary;
use testkit::nodegate::fixtures::node;
use testkit::nodegate::install::{CONTROLLER, CRD};
use testkit::nodegate::state::{has_taint, reasons_about, rule_status};
use testkit::nodegate::{Cluster, Controller, Options, eventually, eventually_eq, never, ports};

const ROLE: &str = "nrr-manager-role";
/// The exit code of a command line that cannot be used.
const USAGE: i32 = 64;

#[tokio::test]
async fn a_crd_may_go_and_come_back_and_without_one_it_says_what_to_install() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    let mut controller = Controller::start(&cluster, &[]).await?;
    node("held").create(&client).await?;
    create_rule(&client, "network", TAINT, CONDITION).await?;
    eventually_gated(&client, "held", TAINT).await?;
    cluster.idles();
    let delete = format!("delete crd {CRD}");
    cluster.types(&delete).await?;
    eventually_released(&client, "held", TAINT).await?;
    let remedy = "kubectl apply -k config/crd";
    controller.says(remedy, SOON).await?;
    cluster.install_crd().await?;
    gates_and_releases(&client, "held-again").await?;
    ensure!(controller.exited()?.is_none(), "it had to be restarted");
    controller.stop().await?;

    cluster.types(&delete).await?;
    let controller = Controller::spawn(&cluster, &[], &[]).await?;
    is_not_ready(&controller, &[CRD, remedy]).await?;
    cluster.install_crd().await?;
    controller.until_ready(SOON).await?;
    gates_and_releases(&client, "late").await
}

#[tokio::test]
async fn without_a_permission_it_says_which_and_each_failure_is_in_the_rules_status() -> Result<()>
{
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    cluster.install().await?;
    set_verbs(&cluster, "nodes", &["get"]).await?;
    let unready = Controller::spawn(&cluster, &[], &[]).await?;
    let words = ["watch nodes", "kubectl apply -k config/rbac"];
    is_not_ready(&unready, &words).await?;
    cluster.install_rbac().await?;
    unready.until_ready(SOON).await?;
    gates_and_releases(&client, "permitted").await?;
    unready.stop().await?;

    // Without the permission to write nodes.
    let readable = ["get", "list", "watch"];
    set_verbs(&cluster, "nodes", &readable).await?;
    let controller = Controller::start(&cluster, &[]).await?;
    for name in ["a", "b"] {
        node(name).create(&client).await?;
    }
    create_rule(&client, "network", TAINT, CONDITION).await?;
    let status = async || {
        let status = rule_status(&client, "network").await?;
        let failed = status["failedNodes"].as_array();
        let failed: Vec<Value> = failed
            .into_iter()
            .flatten()
            .map(|failure| json!([failure["nodeName"], failure["reason"]]))
            .collect();
        let counts = [
            &status["nodegate"]["failedNodeCount"],
            &status["nodegate"]["heldNodes"],
        ];
        Ok(json!([counts, failed, status["appliedNodes"]]))
    };
    let error = "EvaluationError";
    let failing = json!([[2, 0], [["a", error], ["b", error]], ["permitted"]]);
    eventually_eq("both failures are told", SOON, failing, status).await?;
    let told = rule_status(&client, "network").await?["failedNodes"][0]["message"].take();
    let told = told.as_str().context("a failure without a message")?;
    ensure!(told.starts_with("failed to add taint: "), "{told}");
    has_words(told, "cannot patch resource \"nodes\"")?;
    has_words(told, "kubectl apply -k config/rbac")?;
    ensure!(controller.log().contains("kubectl apply -k config/rbac"));

    cluster.install_rbac().await?;
    let applied = json!([[0, 2], [], ["a", "b", "permitted"]]);
    eventually_eq("both nodes are applied", SOON, applied, status).await?;
    ensure!(has_taint(&client, "a", TAINT).await? && has_taint(&client, "b", TAINT).await?);

    // A stuck deletion reports why.
    set_verbs(&cluster, "nodes", &readable).await?;
    eventually("the permission is gone", SOON, async || {
        let args = ["auth", "can-i", "patch", "nodes", "--as", CONTROLLER];
        // kubectl fails if the answer is no.
        Ok(cluster.kubectl(&args).await.is_err())
    })
    .await?;
    delete_rule(&client, "network").await?;
    eventually_eq(
        "the rule says what keeps it",
        SOON,
        json!([["a", error], ["b", error]]),
        async || Ok(status().await?[1].take()),
    )
    .await?;
    cluster.install_rbac().await?;
    eventually_gone(&client, "network").await?;
    ensure!(!has_taint(&client, "a", TAINT).await? && !has_taint(&client, "b", TAINT).await?);
    Ok(())
}

#[tokio::test]
async fn the_node_readiness_controllers_role_suffices_for_conditions_that_something_reports()
-> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    cluster.install().await?;
    let group = "readiness.node.x-k8s.io";
    let rules = json!([
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "patch", "update", "watch"]},
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
        {"apiGroups": [group], "resources": ["nodereadinessrules"], "verbs": ["get", "list", "patch", "update", "watch"]},
        {"apiGroups": [group], "resources": ["nodereadinessrules/finalizers"], "verbs": ["update"]},
        {"apiGroups": [group], "resources": ["nodereadinessrules/status"], "verbs": ["get", "patch", "update"]},
    ]);
    set_role(&cluster, "/rules", &rules).await?;
    let ours = "rolebinding/nrr-events-rolebinding";
    cluster.kubectl(&["delete", ours, "-n", "default"]).await?;
    let controller = Controller::start(&cluster, &["--leader-elect"])
        .await?
        .unasked("it may not read all that the command line may");
    gates_and_releases(&client, "first").await?;
    eventually("its role for Events is of before v0.5", SOON, async || {
        let told = reasons_about(&client, "Node", "first").await?;
        Ok(told.contains(&"TaintRemoved".to_owned()))
    })
    .await?;
    let log = controller.log();
    ensure!(!log.contains("no permission"), "{log}");

    // A rule that needs more says what, and keeps no other from working.
    let components = "node.gardener.cloud/CriticalComponentsReady";
    create_rule(&client, "components", &key("components"), components).await?;
    for kind in ["pods", "daemonsets.apps", "csinodes.storage.k8s.io"] {
        let missing = format!("no permission to list and watch {kind}");
        controller.says(&missing, SOON).await?;
    }
    gates_and_releases(&client, "second").await?;
    delete_rule(&client, "components").await?;
    eventually_gone(&client, "components").await
}

#[tokio::test]
async fn without_a_cluster_it_keeps_trying() -> Result<()> {
    let folder = tempfolder("no-cluster")?;
    let nowhere = format!("https://127.0.0.1:{}", ports::free()?);
    let kubeconfig = write_kubeconfig(&folder, &nowhere)?;
    let mut command = Command::new(binary()?);
    command
        .arg("--health-probe-bind-address=0")
        .args(["--metrics-bind-address=0", "--kubeconfig", &kubeconfig])
        .stderr(Stdio::piped());
    let mut controller = command.spawn()?;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let is_running = controller.try_wait()?.is_none();
    controller.kill()?;
    let log = String::from_utf8(controller.wait_with_output()?.stderr)?;
    ensure!(is_running, "it gave up: {log}");
    has_words(&log, "cannot reach the API server at https://127.0.0.1:")?;
    has_words(&log, "check that it runs")?;
    let lines = log.lines().count();
    ensure!(lines < 20, "it says the same thing over and over:\n{log}");
    Ok(())
}

#[tokio::test]
async fn a_file_or_address_that_cannot_be_used_is_named_in_one_line() -> Result<()> {
    let folder = tempfolder("mistakes")?;
    let file = |name: &str, content: &str| {
        let path = folder.join(name);
        std::fs::write(&path, content).map(|()| path.display().to_string())
    };
    let good = write_kubeconfig(&folder, "https://127.0.0.1:1")?;
    let missing = folder.join("missing").display().to_string();
    let broken = file("broken", "clusters: [")?;
    let empty = file("empty", "{}")?;
    let unknown = file("unknown", "criticalComponents: []")?;
    let wrong = file("wrong", "passingTaints: ['a b']")?;
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let taken = taken.local_addr()?.to_string();
    let gone = "No such file";

    for (path, words) in [
        (&missing, [gone, "--kubeconfig"]),
        (&broken, ["line 1", "--kubeconfig"]),
        (&empty, ["current context", "--kubeconfig"]),
    ] {
        let said = refuses(&["--kubeconfig", path], 1, &words).await?;
        has_words(&said, path)?;
    }
    for (path, words) in [
        (&missing, [&missing, gone]),
        (&broken, [&broken, "line 1"]),
        (&unknown, [&unknown, "criticalComponents"]),
        (&wrong, ["passingTaints[0]", "a b"]),
    ] {
        refuses(&["--kubeconfig", &good, "--config", path], 1, &words).await?;
    }
    for flag in ["--health-probe-bind-address", "--metrics-bind-address"] {
        let address = format!("{flag}={taken}");
        let words = [&*taken, "in use", flag];
        refuses(&["--kubeconfig", &good, &address], 1, &words).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_flag_that_cannot_be_used_is_named() -> Result<()> {
    #[rustfmt::skip]
    let cases = [
        ("--nonsense", ["--nonsense", "unexpected"]),
        ("--health-probe-bind-address=here", ["here", "[HOST]:PORT"]),
        ("--node-concurrent-reconciles=1025", ["--node-concurrent-reconciles", "at most 1024 nodes"]),
        ("--publish-conditions=maybe", ["--publish-conditions", "maybe"]),
        ("--zap-log-level=loud", ["'loud' for '--zap-log-level", "nodegate=debug"]),
        ("--zap-log-level=a=b=c", ["'a=b=c' for '--zap-log-level", "nodegate=debug"]),
    ];
    for (flag, words) in cases {
        refuses(&[flag], USAGE, &words).await?;
    }
    Ok(())
}

#[tokio::test]
async fn no_token_gets_into_the_log() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    let environment = [("NODEGATE_LOG", "trace,nodegate=trace")];
    let controller = Controller::spawn(&cluster, &[], &environment).await?;
    let controller = controller
        .once_ready()
        .await?
        .unasked("its writes are refused at the end");
    gates_and_releases(&client, "logged").await?;
    cluster.stop_api_server();
    tokio::time::sleep(Duration::from_secs(2)).await;
    cluster.start_api_server().await?;
    gates_and_releases(&client, "logged-again").await?;
    set_verbs(&cluster, "nodes", &["get", "list", "watch"]).await?;
    node("refused").create(&client).await?;
    create_rule(&client, "refused", "readiness.k8s.io/refused", CONDITION).await?;
    controller.says("cannot patch resource", SOON).await?;

    let log = controller.log();
    ensure!(log.lines().count() > 100, "there is little in the log");
    let mut tokens = 0;
    for entry in std::fs::read_dir(cluster.folder())? {
        let path = entry?.path();
        if path.extension().is_none_or(|it| it != "kubeconfig") {
            continue;
        }
        let kubeconfig: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
        let token = kubeconfig["users"][0]["user"]["token"].as_str();
        let token = token.with_context(|| format!("no token in {}", path.display()))?;
        tokens += 1;
        // The last part of a service account's token is its signature.
        let signature = token.rsplit('.').next().unwrap_or(token);
        let is_told = log.contains(token) || log.contains(signature);
        ensure!(!is_told, "the token of {} is in the log", path.display());
    }
    ensure!(tokens >= 2, "{tokens} tokens were looked for");
    Ok(())
}

/// Waits until the controller is not ready for a reason that contains all these words, and its log contains them, too.
async fn is_not_ready(controller: &Controller, words: &[&str]) -> Result<()> {
    for words in words {
        controller.until_unready(words, SOON).await?;
        has_words(&controller.log(), words)?;
    }
    let second = Duration::from_secs(1);
    never("it gets ready all the same", second, async || {
        Ok(controller.is_ready().await)
    })
    .await
}

/// Leaves the controller only these verbs on a resource; [`Cluster::install_rbac`] restores all.
async fn set_verbs(cluster: &Cluster, resource: &str, verbs: &[&str]) -> Result<()> {
    let role = format!("get clusterrole {ROLE} -o json");
    let role: Value = serde_json::from_str(&cluster.types(&role).await?)?;
    let rules = role["rules"].as_array().context("a role without rules")?;
    let index = rules
        .iter()
        .position(|rule| rule["resources"] == json!([resource]));
    let index = index.with_context(|| format!("{resource} is not in the role"))?;
    set_role(cluster, &format!("/rules/{index}/verbs"), &json!(verbs)).await
}

/// Replaces this part of the controller's role.
async fn set_role(cluster: &Cluster, path: &str, value: &Value) -> Result<()> {
    let patch = json!([{"op": "replace", "path": path, "value": value}]).to_string();
    let patch = ["patch", "clusterrole", ROLE, "--type=json", "-p", &patch];
    cluster.kubectl(&patch).await.map(drop)
}

/// Checks that the controller ends at once with this code and an error with all these words; returns the error. It is one line,
/// apart from the usage after a mistyped flag.
async fn refuses(arguments: &[&str], code: i32, words: &[&str]) -> Result<String> {
    let mut command = Command::new(binary()?);
    command.args(arguments);
    for flag in ["--health-probe-bind-address", "--metrics-bind-address"] {
        if !arguments.iter().any(|argument| argument.starts_with(flag)) {
            command.arg(format!("{flag}=0"));
        }
    }
    // A developer's setting must not affect a user's output.
    command.env("RUST_BACKTRACE", "1");
    let child = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let ended = tokio::task::spawn_blocking(|| child.wait_with_output());
    let output = tokio::time::timeout(SOON, ended)
        .await
        .with_context(|| format!("{arguments:?} goes on and on"))??
        .context("waiting for the controller")?;
    let said = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    for word in words {
        ensure!(said.contains(word), "{arguments:?}: no {word:?} in {said}");
    }
    let has_usage = code == USAGE;
    ensure!(
        has_usage || said.lines().count() == 1,
        "{arguments:?}: {said}"
    );
    Ok(said)
}

fn write_kubeconfig(folder: &Path, server: &str) -> Result<String> {
    let path = folder.join("kubeconfig");
    let content = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": server}}],
        "users": [{"name": "test", "user": {"token": "secret"}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    });
    std::fs::write(&path, content.to_string())?;
    Ok(path.display().to_string())
}

fn tempfolder(name: &str) -> Result<std::path::PathBuf> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&path)?;
    Ok(path)
}
