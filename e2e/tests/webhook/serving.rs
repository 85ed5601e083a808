//! The webhook's serving certificate: its own, shared among replicas, or one from files.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use nodegate_tests::SOON;
use rcgen::KeyPair;
use testkit::nodegate::install::{NAMESPACE, manifests};
use testkit::nodegate::{Controller, certificate, eventually, fetch, ports};
use tokio::time::sleep;

use super::{
    PATH, SECRET, address, apply_secret, ca_bundle, call_at, install, is_reviewed, own_cluster,
    secret, spawn, start, trust, until_reviewed,
};

#[tokio::test]
async fn replicas_share_a_certificate_that_is_made_anew_when_it_no_longer_fits() -> Result<()> {
    let cluster = own_cluster().await?;
    let (one, other) = (ports::free()?, ports::free()?);
    install(&cluster, one).await?;
    assert_eq!(secret(&cluster).await?, None);
    let first = start(&cluster, one).await?;
    until_reviewed(&cluster).await?;
    let made = secret(&cluster).await?.context("no Secret")?;
    assert_eq!(ca_bundle(&cluster).await?.as_ref(), Some(&made.1));
    cluster.idles();

    let second = start(&cluster, other).await?;
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

    // The API server calls it by another name; the earlier CA stays trusted.
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

    // Somebody deletes the Secret: the certificate in use stays, and an empty Secret is all that is needed.
    let delete = format!("delete secret {SECRET} -n {NAMESPACE}");
    cluster.types(&delete).await?;
    let missing = "not found): install config/webhook with `kubectl apply -k config/webhook`";
    second.says(missing, SOON).await?;
    assert!(is_reviewed(&cluster).await?);
    apply_secret(&cluster).await?;
    eventually("it is filled in", SOON, async || {
        Ok(secret(&cluster).await?.is_some())
    })
    .await?;
    until_reviewed(&cluster).await
}

/// A cluster whose first IP family is IPv6 calls everything by IPv6. API servers learn with a delay that a replica is no longer
/// an endpoint of the Service.
#[tokio::test]
async fn a_port_alone_is_called_by_ipv4_and_ipv6_and_until_a_moment_after_it_is_told_to_stop()
-> Result<()> {
    let cluster = own_cluster().await?;
    let (port, metrics) = (ports::free()?, ports::free()?);
    install(&cluster, port).await?;
    let webhook = format!("--webhook-bind-address=:{port}");
    let exposed = format!("--metrics-bind-address=:{metrics}");
    let arguments = ["--enable-webhook", &webhook, &exposed, "--leader-elect"];
    let mut controller = Controller::start(&cluster, &arguments).await?;
    until_reviewed(&cluster).await?;
    call_at(&cluster, &format!("https://[::1]:{port}{PATH}")).await?;
    until_reviewed(&cluster).await?;
    for host in ["127.0.0.1", "[::1]"] {
        let (status, _) = fetch::get(format!("{host}:{metrics}").parse()?, "/metrics").await?;
        assert_eq!(status, 200, "{host}");
    }

    let told = Instant::now();
    kill(Pid::from_raw(controller.pid().try_into()?), Signal::SIGTERM)?;
    sleep(Duration::from_secs(2)).await;
    assert!(is_reviewed(&cluster).await?, "{}", controller.log());
    let status = eventually("it ends", SOON, async || controller.exited()).await?;
    assert!(status.success(), "{}", controller.log());
    assert!(told.elapsed() < Duration::from_secs(20));
    Ok(())
}

/// The Node Readiness Controller's manifests name no folder, and its roles know no Secret.
#[tokio::test]
async fn a_certificate_where_controller_runtime_looks_is_used() -> Result<()> {
    let cluster = own_cluster().await?;
    let port = ports::free()?;
    cluster.install().await?;
    let file = manifests("webhook").join("webhook.yaml");
    cluster.kubectl_on(&["apply"], &file).await?;
    call_at(&cluster, &format!("https://127.0.0.1:{port}{PATH}")).await?;
    let temporary = cluster.folder().join("tmp");
    let folder = temporary.join("k8s-webhook-server/serving-certs");
    fs::create_dir_all(&folder)?;
    trust(&cluster, &certificate::write(&folder)?).await?;
    let arguments = ["--enable-webhook=T", &address(port)];
    let environment = [("TMPDIR", &*temporary.to_string_lossy())];
    let controller = Controller::spawn(&cluster, &arguments, &environment).await?;
    let _controller = controller.once_ready().await?;
    until_reviewed(&cluster).await
}

#[tokio::test]
async fn a_certificate_from_files_is_followed_when_it_is_rotated() -> Result<()> {
    let cluster = own_cluster().await?;
    let port = ports::free()?;
    install(&cluster, port).await?;
    let folder = cluster.folder().join("certificate");
    fs::create_dir(&folder)?;
    let argument = format!("--webhook-cert-dir={}", folder.display());
    let controller = spawn(&cluster, port, &[&argument]).await?;
    let missing = "tls.crt is not there";
    controller.until_unready(missing, SOON).await?;
    trust(&cluster, &certificate::write(&folder)?).await?;
    controller.until_ready(SOON).await?;
    until_reviewed(&cluster).await?;

    trust(&cluster, &certificate::write(&folder)?).await?;
    until_reviewed(&cluster).await?;

    let good = fs::read(folder.join("tls.key"))?;
    fs::write(folder.join("tls.key"), KeyPair::generate()?.serialize_pem())?;
    let told = "tls.key: the private key does not belong to the certificate";
    controller.says(told, SOON).await?;
    assert!(
        is_reviewed(&cluster).await?,
        "the earlier one is served no more"
    );
    fs::write(folder.join("tls.key"), good)?;
    assert!(controller.is_ready().await);
    assert_eq!(secret(&cluster).await?, None, "a Secret nobody asked for");
    Ok(())
}
