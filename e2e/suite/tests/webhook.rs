//! The validation webhook, called over TLS by a real API server.
//!
//! The test cluster has no network of Services, so the manifest's `clientConfig.service` becomes a URL. All else is the
//! manifest's.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use nodegate_testbed::controller::binary;
use nodegate_testbed::fixtures::{daemon_set, node};
use nodegate_testbed::install::{NAMESPACE, SERVICE_ACCOUNT, config};
use nodegate_testbed::process::{Lifetime, Process};
use nodegate_testbed::{Cluster, Controller, Options, certificate, eventually, ports};
use rcgen::KeyPair;
use serde_json::json;
use tokio::sync::{Mutex, MutexGuard, OnceCell};

const SOON: Duration = Duration::from_secs(30);
const CONFIGURATION: &str = "nrr-validating-webhook-configuration";
const SECRET: &str = "nrr-webhook-server-cert";
const PATH: &str = "/validate-readiness-node-x-k8s-io-v1alpha1-nodereadinessrule";

/// A cluster whose rules are reviewed by the controller in it.
struct Reviewed {
    cluster: Cluster,
    _controller: Controller,
}

/// For the tests that only ask.
async fn reviewed() -> Result<&'static Reviewed> {
    static SHARED: OnceCell<Reviewed> = OnceCell::const_new();
    SHARED
        .get_or_try_init(async || {
            let cluster = Cluster::start(Options::api_only()).await?;
            let port = ports::free()?;
            install(&cluster, port).await?;
            let controller = start(&cluster, port, &[]).await?;
            until_reviewed(&cluster).await?;
            anyhow::Ok(Reviewed {
                cluster,
                _controller: controller,
            })
        })
        .await
}

/// For the tests that break things: a cluster of their own, one test at a time.
async fn own_cluster() -> Result<(MutexGuard<'static, ()>, Cluster)> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());
    let turn = ONE_AT_A_TIME.lock().await;
    Ok((turn, Cluster::start(Options::api_only()).await?))
}

/// Installs CRD, RBAC and webhook, the latter to be called on this port.
async fn install(cluster: &Cluster, port: u16) -> Result<()> {
    cluster.install().await?;
    let folder = config("webhook");
    cluster
        .kubectl(&["apply", "-k", &folder.to_string_lossy()])
        .await?;
    call_at(cluster, &format!("https://127.0.0.1:{port}{PATH}")).await
}

/// Puts the empty Secret back.
async fn apply_secret(cluster: &Cluster) -> Result<()> {
    let secret = config("webhook").join("secret.yaml");
    cluster
        .kubectl(&["apply", "-f", &secret.to_string_lossy()])
        .await?;
    Ok(())
}

/// Has the API server call the webhook at this URL.
async fn call_at(cluster: &Cluster, url: &str) -> Result<()> {
    let patch = json!({"webhooks": [{
        "name": "vnodereadinessrule.readiness.node.x-k8s.io",
        "clientConfig": {"service": null, "url": url},
    }]});
    patch_configuration(cluster, &patch).await
}

/// Has the API server trust this CA.
async fn trust(cluster: &Cluster, ca: &str) -> Result<()> {
    let patch = json!({"webhooks": [{
        "name": "vnodereadinessrule.readiness.node.x-k8s.io",
        "clientConfig": {"caBundle": ByteString(ca.as_bytes().to_vec())},
    }]});
    patch_configuration(cluster, &patch).await
}

async fn patch_configuration(cluster: &Cluster, patch: &serde_json::Value) -> Result<()> {
    let (kind, patch) = ("validatingwebhookconfiguration", patch.to_string());
    cluster
        .kubectl(&["patch", kind, CONFIGURATION, "-p", &patch])
        .await?;
    Ok(())
}

async fn ca_bundle(cluster: &Cluster) -> Result<Option<String>> {
    let api: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client().await?);
    let webhooks = api.get(CONFIGURATION).await?.webhooks.unwrap_or_default();
    let bundle = webhooks.into_iter().next().context("no webhook")?;
    let bundle = bundle.client_config.ca_bundle;
    Ok(bundle.map(|bundle| String::from_utf8_lossy(&bundle.0).into_owned()))
}

/// The certificate in the Secret, and its CAs; nothing while it is empty.
async fn secret(cluster: &Cluster) -> Result<Option<(String, String)>> {
    let api: Api<Secret> = Api::namespaced(cluster.client().await?, NAMESPACE);
    let Some(secret) = api.get_opt(SECRET).await? else {
        return Ok(None);
    };
    let Some(data) = secret.data else {
        return Ok(None);
    };
    let text = |key: &str| {
        let bytes = data.get(key).with_context(|| format!("no {key}"))?;
        anyhow::Ok(String::from_utf8_lossy(&bytes.0).into_owned())
    };
    Ok(Some((text("tls.crt")?, text("ca.crt")?)))
}

async fn start(cluster: &Cluster, port: u16, arguments: &[&str]) -> Result<Controller> {
    let address = address(port);
    let mut all = vec!["--enable-webhook", &address];
    all.extend(arguments);
    Controller::start(cluster, &all).await
}

async fn spawn(cluster: &Cluster, port: u16, arguments: &[&str]) -> Result<Controller> {
    let address = address(port);
    let mut all = vec!["--enable-webhook", &address];
    all.extend(arguments);
    Controller::spawn(cluster, &all, &[]).await
}

fn address(port: u16) -> String {
    format!("--webhook-bind-address=127.0.0.1:{port}")
}

/// A rule with a taint and a node label of its own, and a further spec in YAML.
fn rule(name: &str, spec: &str) -> String {
    format!(
        "
apiVersion: readiness.node.x-k8s.io/v1alpha1
kind: NodeReadinessRule
metadata:
  name: {name}
spec:
  enforcementMode: continuous
  conditions: [{{type: Ready, requiredStatus: 'True'}}]
  {}",
        spec.replace('\n', "\n  ")
    )
}

/// A taint and a node selector.
fn about(taint: &str, effect: &str, zone: &str) -> String {
    format!(
        "taint: {{key: readiness.k8s.io/{taint}, effect: {effect}}}\nnodeSelector: {{matchLabels: {{zone: {zone}}}}}"
    )
}

/// Creates it and answers with the warnings, as kubectl prints them.
async fn create(cluster: &Cluster, manifest: &str) -> Result<String> {
    static FILES: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = FILES.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let file = cluster.folder().join(format!("rule-{number}.yaml"));
    fs::write(&file, manifest)?;
    // The only way to see kubectl's standard error when all is well.
    let created = cluster
        .kubectl(&[
            "create",
            "--warnings-as-errors",
            "-f",
            &file.to_string_lossy(),
        ])
        .await;
    match created {
        Ok(_) => Ok(String::new()),
        Err(error) => match error.to_string() {
            text if text.contains("warning received") => Ok(text),
            text if text.contains("warnings received") => Ok(text),
            _ => Err(error),
        },
    }
}

/// The error of something that must not work.
fn refused<T: std::fmt::Debug>(result: Result<T>) -> Result<String> {
    match result {
        Err(error) => Ok(format!("{error:#}")),
        Ok(done) => bail!("not refused: {done:?}"),
    }
}

/// A dry run that only the webhook turns down.
async fn probe(cluster: &Cluster) -> Result<String> {
    let file = cluster.folder().join("probe.yaml");
    let selector = "taint: {key: readiness.k8s.io/probe, effect: NoSchedule}\nnodeSelector: {matchLabels: {zone: 'a b'}}";
    fs::write(&file, rule("probe", selector))?;
    let file = file.to_string_lossy().into_owned();
    refused(
        cluster
            .kubectl(&["create", "--dry-run=server", "-f", &file])
            .await,
    )
}

/// Whether the API server asks the webhook, and trusts it.
async fn is_reviewed(cluster: &Cluster) -> Result<bool> {
    Ok(probe(cluster)
        .await
        .is_ok_and(|error| error.contains("not a valid value for label")))
}

async fn until_reviewed(cluster: &Cluster) -> Result<()> {
    eventually("the API server asks the webhook", SOON, async || {
        is_reviewed(cluster).await
    })
    .await
}

#[tokio::test]
async fn rules_that_conflict_are_turned_down_and_others_taken() -> Result<()> {
    let cluster = &reviewed().await?.cluster;
    let old = rule("first", &about("conflict", "NoSchedule", "a"));
    create(cluster, &old).await?;

    let new = rule("second", &about("conflict", "NoSchedule", "a"));
    let error = refused(create(cluster, &new).await)?;
    assert!(
        error.contains(
            "(Forbidden): error when creating"
        ) && error.contains(
            "admission webhook \"vnodereadinessrule.readiness.node.x-k8s.io\" denied the request: validation failed: [spec.taint.key: Invalid value: \"readiness.k8s.io/conflict\": conflicts with existing rule 'first' - same taint key 'readiness.k8s.io/conflict' and effect 'NoSchedule' with overlapping node selectors]"
        ),
        "{error}"
    );
    let elsewhere = rule("elsewhere", &about("conflict", "NoSchedule", "b"));
    create(cluster, &elsewhere).await?;
    let other_effect = rule("other-effect", &about("conflict", "PreferNoSchedule", "a"));
    create(cluster, &other_effect).await?;
    let anywhere = "taint: {key: readiness.k8s.io/conflict, effect: NoSchedule}
nodeSelector: {matchExpressions: [{key: zone, operator: NotIn, values: [a, b]}]}";
    create(cluster, &rule("neither", anywhere)).await?;
    let error = refused(create(cluster, &rule("all", &anywhere.replace("a, b", "a, c"))).await)?;
    assert!(error.contains("existing rule 'elsewhere'"), "{error}");

    // The rule itself is no conflict.
    let patch = r#"{"spec":{"dryRun":true}}"#;
    cluster
        .kubectl(&["patch", "nrr", "first", "--type=merge", "-p", patch])
        .await?;
    // Nor is its name in the way of one that takes its place.
    cluster.kubectl(&["delete", "nrr", "first"]).await?;
    create(cluster, &new).await?;
    Ok(())
}

#[tokio::test]
async fn what_is_risky_is_taken_with_a_warning() -> Result<()> {
    let cluster = &reviewed().await?.cluster;
    let client = cluster.client().await?;
    node("risky").label("zone", "risky").create(&client).await?;
    daemon_set("kube-system/cni")
        .critical()
        .node_selector("zone", "risky")
        .create(&client)
        .await?;
    let spec = about("risky", "NoExecute", "risky").replace(
        "taint:",
        "conditions: [{type: example.com/Misspelt, requiredStatus: 'True'}]\ntaint:",
    );
    let manifest = rule("risky", &spec).replace(
        "  conditions: [{type: Ready, requiredStatus: 'True'}]\n",
        "",
    );
    let warnings = create(cluster, &manifest).await?;
    for expected in [
        "Warning: CAUTION: NoExecute with continuous mode evicts pods when conditions fail",
        "Warning: critical DaemonSet kube-system/cni does not tolerate the taint readiness.k8s.io/risky:NoExecute",
        "Warning: no node that the rule selects has a condition of type 'example.com/Misspelt' today",
    ] {
        assert!(warnings.contains(expected), "{warnings}");
    }
    cluster.kubectl(&["get", "nrr", "risky"]).await?;
    Ok(())
}

#[tokio::test]
async fn without_a_webhook_nothing_is_created_and_everything_else_goes_on() -> Result<()> {
    let (_turn, cluster) = own_cluster().await?;
    let port = ports::free()?;
    install(&cluster, port).await?;
    let controller = start(&cluster, port, &[]).await?;
    until_reviewed(&cluster).await?;
    create(&cluster, &rule("old", &about("down", "NoSchedule", "a"))).await?;
    let finalizer = "-o=jsonpath={.metadata.finalizers}";
    eventually("the controller has seen the rule", SOON, async || {
        let finalizers = cluster.kubectl(&["get", "nrr", "old", finalizer]).await?;
        Ok(finalizers.contains("cleanup-taints"))
    })
    .await?;
    controller.stop().await?;

    let new = rule("new", &about("down", "NoSchedule", "b"));
    let error = refused(create(&cluster, &new).await)?;
    assert!(error.contains("failed calling webhook"), "{error}");
    let patch = async |arguments: &[&str], patch: &str| {
        let mut all = vec!["patch", "nrr", "old", "--type=merge", "-p", patch];
        all.extend(arguments);
        cluster.kubectl(&all).await
    };
    let error = refused(patch(&[], r#"{"spec":{"dryRun":true}}"#).await)?;
    assert!(error.contains("failed calling webhook"), "{error}");

    patch(&[], r#"{"metadata":{"labels":{"a":"b"}}}"#).await?;
    let status = r#"{"status":{"observedGeneration":1}}"#;
    patch(&["--subresource=status"], status).await?;
    cluster
        .kubectl(&["delete", "nrr", "old", "--wait=false"])
        .await?;
    patch(&[], r#"{"metadata":{"finalizers":null}}"#).await?;
    let left = cluster
        .kubectl(&["get", "nrr", "old", "--ignore-not-found"])
        .await?;
    assert_eq!(left, "");
    Ok(())
}

#[tokio::test]
async fn replicas_share_a_certificate_that_is_made_anew_when_it_no_longer_fits() -> Result<()> {
    let (_turn, cluster) = own_cluster().await?;
    let (one, other) = (ports::free()?, ports::free()?);
    install(&cluster, one).await?;
    assert_eq!(secret(&cluster).await?, None);
    let first = start(&cluster, one, &[]).await?;
    until_reviewed(&cluster).await?;
    let made = secret(&cluster).await?.context("no Secret")?;
    assert_eq!(ca_bundle(&cluster).await?.as_ref(), Some(&made.1));

    let second = start(&cluster, other, &[]).await?;
    call_at(&cluster, &format!("https://127.0.0.1:{other}{PATH}")).await?;
    first.stop().await?;
    until_reviewed(&cluster).await?;
    assert_eq!(secret(&cluster).await?.as_ref(), Some(&made));
    assert!(
        !second.log().contains("certificate made"),
        "{}",
        second.log()
    );

    // Somebody replaces the configuration.
    trust(&cluster, "").await?;
    until_reviewed(&cluster).await?;
    assert_eq!(ca_bundle(&cluster).await?.as_ref(), Some(&made.1));

    // The API server calls by another name; the earlier CA is trusted on.
    call_at(&cluster, &format!("https://localhost:{other}{PATH}")).await?;
    let renewed = eventually("another certificate is made", SOON, async || {
        Ok(secret(&cluster).await?.filter(|secret| *secret != made))
    })
    .await?;
    until_reviewed(&cluster).await?;
    assert_eq!(ca_bundle(&cluster).await?.as_ref(), Some(&renewed.1));
    assert!(
        renewed.1.ends_with(&made.1),
        "the earlier CA is not trusted"
    );

    // Somebody deletes the Secret: what is in use stays, and an empty one is all that is needed.
    cluster
        .kubectl(&["delete", "secret", SECRET, "-n", NAMESPACE])
        .await?;
    eventually("the log says what is missing", SOON, async || {
        let log = second.log();
        Ok(log
            .contains("not found): install config/webhook with `kubectl apply -k config/webhook`"))
    })
    .await?;
    assert!(is_reviewed(&cluster).await?);
    apply_secret(&cluster).await?;
    eventually("it is filled in", SOON, async || {
        Ok(secret(&cluster).await?.is_some())
    })
    .await?;
    until_reviewed(&cluster).await
}

#[tokio::test]
async fn without_permissions_the_webhook_waits_and_says_what_it_needs() -> Result<()> {
    let (_turn, cluster) = own_cluster().await?;
    let port = ports::free()?;
    cluster.install().await?;
    let controller = spawn(&cluster, port, &[]).await?;
    let said = async |expected: &str| {
        eventually(expected, SOON, async || {
            let (status, text) = controller.readiness().await.unwrap_or_default();
            Ok(status == 503 && text.contains(expected))
        })
        .await
        .with_context(|| controller.log())
    };
    said("validatingwebhookconfigurations.admissionregistration.k8s.io \"nrr-validating-webhook-configuration\" is forbidden").await?;
    said("install config/webhook with `kubectl apply -k config/webhook`").await?;
    assert!(controller.log().contains("is forbidden"));

    // A Secret that is not its to overwrite.
    install(&cluster, port).await?;
    for command in ["delete secret", "create secret generic"] {
        let mut arguments: Vec<_> = command.split(' ').collect();
        arguments.extend([SECRET, "-n", NAMESPACE]);
        cluster.kubectl(&arguments).await?;
    }
    said("is somebody else's: serve from it with --webhook-cert-dir, or delete it").await?;
    let role = ["role", "nrr-webhook-certificate-role", "-n", NAMESPACE];
    cluster.kubectl(&[&["delete"], &role[..]].concat()).await?;
    said("cannot read Secret nrr-system/nrr-webhook-server-cert").await?;
    cluster
        .kubectl(&["delete", "secret", SECRET, "-n", NAMESPACE])
        .await?;
    apply_secret(&cluster).await?;
    let role = config("webhook").join("role.yaml");
    cluster
        .kubectl(&["apply", "-f", &role.to_string_lossy()])
        .await?;
    eventually("the controller is ready", SOON, async || {
        Ok(controller.is_ready().await)
    })
    .await?;
    until_reviewed(&cluster).await?;

    let binding = "clusterrolebinding/nrr-manager-rolebinding";
    cluster.kubectl(&["delete", binding]).await?;
    eventually(
        "a webhook that cannot list rules fails closed",
        SOON,
        async || {
            let manifest = rule("unseen", &about("unseen", "NoSchedule", "a"));
            let result = create(&cluster, &manifest).await;
            let is_refused = result.is_err_and(|error| {
                error
                    .to_string()
                    .contains("the webhook has no permission to list rules")
            });
            if !is_refused {
                cluster
                    .kubectl(&[
                        "delete",
                        "nrr",
                        "unseen",
                        "--wait=false",
                        "--ignore-not-found",
                    ])
                    .await?;
            }
            Ok(is_refused)
        },
    )
    .await
}

#[tokio::test]
async fn an_api_server_that_is_away_at_start_is_waited_for() -> Result<()> {
    let (_turn, cluster) = own_cluster().await?;
    let port = ports::free()?;
    install(&cluster, port).await?;
    let kubeconfig = cluster
        .kubeconfig_for_service_account(NAMESPACE, SERVICE_ACCOUNT)
        .await?;
    cluster.stop_api_server();
    let mut command = Command::new(binary()?);
    command
        .arg("controller")
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .arg("--health-probe-bind-address=0")
        .args(["--enable-webhook", &address(port)]);
    let log = cluster.folder().join("early.log");
    let mut early = Process::start("early", command, log, Lifetime::Owner)?;
    eventually("it says what it waits for", SOON, async || {
        early.ensure_running()?;
        Ok(early
            .log()
            .contains("cannot reach the API server to read ValidatingWebhookConfiguration"))
    })
    .await?;
    cluster.start_api_server().await?;
    until_reviewed(&cluster).await
}

#[tokio::test]
async fn a_certificate_from_files_is_followed_when_it_is_rotated() -> Result<()> {
    let (_turn, cluster) = own_cluster().await?;
    let port = ports::free()?;
    install(&cluster, port).await?;
    let folder = cluster.folder().join("certificate");
    fs::create_dir(&folder)?;
    let argument = format!("--webhook-cert-dir={}", folder.display());
    let controller = spawn(&cluster, port, &[&argument]).await?;
    eventually("a missing file is waited for", SOON, async || {
        let (status, text) = controller.readiness().await.unwrap_or_default();
        Ok(status == 503 && text.contains("tls.crt is not there"))
    })
    .await?;
    trust(&cluster, &certificate::write(&folder)?).await?;
    eventually("the controller is ready", SOON, async || {
        Ok(controller.is_ready().await)
    })
    .await?;
    until_reviewed(&cluster).await?;

    trust(&cluster, &certificate::write(&folder)?).await?;
    until_reviewed(&cluster).await?;

    let good = fs::read(folder.join("tls.key"))?;
    fs::write(folder.join("tls.key"), KeyPair::generate()?.serialize_pem())?;
    eventually("a key that does not fit is told of", SOON, async || {
        let log = controller.log();
        Ok(log.contains("tls.key: the private key does not belong to the certificate"))
    })
    .await?;
    assert!(
        is_reviewed(&cluster).await?,
        "the earlier one is served no more"
    );
    fs::write(folder.join("tls.key"), good)?;
    assert!(controller.is_ready().await);
    assert_eq!(secret(&cluster).await?, None, "a Secret nobody asked for");
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_mended_by_waiting_ends_the_start_with_one_clear_line() -> Result<()> {
    let cluster = &reviewed().await?.cluster;
    let folder = |name: &str| cluster.folder().join(name);
    for name in ["mismatched", "unreadable", "keyless"] {
        certificate::write(&folder(name))?;
    }
    fs::write(
        folder("mismatched").join("tls.key"),
        KeyPair::generate()?.serialize_pem(),
    )?;
    fs::write(folder("unreadable").join("tls.crt"), "nonsense")?;
    fs::write(folder("keyless").join("tls.key"), "")?;
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let taken = taken.local_addr()?.to_string();
    for (what, argument, expected) in [
        (
            "a key of another certificate",
            format!("--webhook-cert-dir={}", folder("mismatched").display()),
            "mismatched/tls.key: the private key does not belong to the certificate",
        ),
        (
            "no certificate",
            format!("--webhook-cert-dir={}", folder("unreadable").display()),
            "unreadable/tls.crt: the certificate cannot be used: it has no PEM certificate",
        ),
        (
            "no key",
            format!("--webhook-cert-dir={}", folder("keyless").display()),
            "keyless/tls.key: the private key cannot be used: it has no PEM private key",
        ),
        (
            "no folder",
            format!("--webhook-cert-dir={}", folder("nowhere").display()),
            "nowhere is not a folder",
        ),
        (
            "a port in use",
            format!("--webhook-bind-address={taken}"),
            "for the webhook: Address already in use (os error 98) (choose another --webhook-bind-address)",
        ),
    ] {
        let arguments = ["--enable-webhook", argument.as_str()];
        let mut controller = Controller::spawn(cluster, &arguments, &[]).await?;
        let status = eventually(what, SOON, async || controller.exited()).await?;
        assert!(!status.success(), "{what}");
        let log = controller.log();
        assert!(log.contains(expected), "{what}: {log}");
    }
    Ok(())
}
