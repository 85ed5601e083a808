//! What the webhook waits for when it starts, and what makes the start fail.

use std::fs;
use std::process::Command;

use anyhow::Result;
use nodegate_tests::{SOON, has_words};
use rcgen::KeyPair;
use testkit::nodegate::controller::binary;
use testkit::nodegate::install::{NAMESPACE, SERVICE_ACCOUNT, manifests};
use testkit::nodegate::process::{Lifetime, Process};
use testkit::nodegate::{Controller, certificate, eventually, ports};

use super::{
    PATH, SECRET, address, apply_secret, call_at, create, install, own_cluster, reviewed, rule,
    spawn, until_reviewed,
};

#[tokio::test]
async fn without_permissions_the_webhook_waits_and_says_what_it_needs() -> Result<()> {
    let cluster = own_cluster().await?;
    let port = ports::free()?;
    cluster.install().await?;
    let controller = spawn(&cluster, port, &[]).await?;
    let said = async |words: &str| controller.until_unready(words, SOON).await;
    said("validatingwebhookconfigurations.admissionregistration.k8s.io \"nrr-validating-webhook-configuration\" is forbidden").await?;
    said("install config/webhook with `kubectl apply -k config/webhook`").await?;
    assert!(controller.log().contains("is forbidden"));

    // A Secret that it may not overwrite. It exists before the permissions do, so the controller never sees another one.
    let theirs = format!("create secret generic {SECRET} -n {NAMESPACE}");
    cluster.types(&theirs).await?;
    for file in [
        "role.yaml",
        "role_binding.yaml",
        "service.yaml",
        "webhook.yaml",
    ] {
        let file = manifests("webhook").join(file);
        cluster.kubectl_on(&["apply"], &file).await?;
    }
    call_at(&cluster, &format!("https://127.0.0.1:{port}{PATH}")).await?;
    said("is somebody else's: serve from it with --webhook-cert-dir, or delete it").await?;
    let delete = format!("delete role nrr-webhook-certificate-role -n {NAMESPACE}");
    cluster.types(&delete).await?;
    said("cannot read Secret nrr-system/nrr-webhook-server-cert").await?;
    let delete = format!("delete secret {SECRET} -n {NAMESPACE}");
    cluster.types(&delete).await?;
    apply_secret(&cluster).await?;
    let role = manifests("webhook").join("role.yaml");
    cluster.kubectl_on(&["apply"], &role).await?;
    controller.until_ready(SOON).await?;
    until_reviewed(&cluster).await?;

    let binding = "clusterrolebinding/nrr-manager-rolebinding";
    cluster.kubectl(&["delete", binding]).await?;
    let unseen = rule("unseen", "unseen", "a");
    let why = "the webhook has no permission to list rules";
    eventually("it fails closed", SOON, async || {
        let result = create(&cluster, unseen.clone()).await;
        let is_refused = result.is_err_and(|error| error.to_string().contains(why));
        if !is_refused {
            let delete = "delete nrr unseen --wait=false --ignore-not-found";
            cluster.types(delete).await?;
        }
        Ok(is_refused)
    })
    .await
}

#[tokio::test]
async fn an_api_server_that_is_away_at_start_is_waited_for() -> Result<()> {
    let cluster = own_cluster().await?;
    let port = ports::free()?;
    install(&cluster, port).await?;
    let kubeconfig = cluster
        .kubeconfig_for_service_account(NAMESPACE, SERVICE_ACCOUNT)
        .await?;
    cluster.stop_api_server();
    let mut command = Command::new(binary()?);
    command
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .arg("--health-probe-bind-address=0")
        .args(["--enable-webhook", &address(port)]);
    let log = cluster.folder().join("early.log");
    let mut early = Process::start("early", command, log, Lifetime::Owner)?;
    eventually("it says what it waits for", SOON, async || {
        early.ensure_running()?;
        let waits = "cannot reach the API server to read ValidatingWebhookConfiguration";
        Ok(early.log().contains(waits))
    })
    .await?;
    cluster.start_api_server().await?;
    until_reviewed(&cluster).await?;
    // The log line that its documentation looks for.
    early.says("Starting EventSource", SOON).await?;
    early.says("Starting Controller", SOON).await
}

#[tokio::test]
async fn a_fault_that_waiting_cannot_mend_ends_the_start_with_one_line() -> Result<()> {
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
    let certificates = |name: &str| format!("--webhook-cert-dir={}", folder(name).display());
    #[rustfmt::skip]
    let cases = [
        (certificates("mismatched"), "mismatched/tls.key: the private key does not belong to the certificate"),
        (certificates("unreadable"), "unreadable/tls.crt: the certificate cannot be used: it has no PEM certificate"),
        (certificates("keyless"), "keyless/tls.key: the private key cannot be used: it has no PEM private key"),
        (certificates("nowhere"), "nowhere is not a folder"),
        (
            format!("--webhook-bind-address={taken}"),
            "for the webhook: Address already in use (os error 98) (choose another --webhook-bind-address)",
        ),
    ];
    for (argument, expected) in cases {
        let arguments = ["--enable-webhook", argument.as_str()];
        let mut controller = Controller::spawn(cluster, &arguments, &[]).await?;
        let status = eventually(expected, SOON, async || controller.exited()).await?;
        assert!(!status.success(), "{expected}");
        let log = controller.log();
        has_words(&log, expected)?;
    }
    Ok(())
}
