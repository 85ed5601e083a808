//! `--metrics-secure`: who may scrape, and what happens while the API server does not answer. `observed` scrapes with a certificate
//! from files; how those are followed is tested with the webhook, which has the same.

use anyhow::Result;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use nodegate_tests::has_words;
use testkit::nodegate::fetch::Fetch;
use testkit::nodegate::{Cluster, Controller, Options, eventually};

use super::{Endpoint, SOON};

/// A service account that may read metrics, one that may not, and tokens of both.
struct Scrapers {
    reader: String,
    stranger: String,
}

impl Scrapers {
    async fn create(cluster: &Cluster) -> Result<Self> {
        cluster.install().await?;
        let stranger = "create serviceaccount stranger --namespace=default";
        cluster.types(stranger).await?;
        Ok(Self {
            reader: cluster.account("reader", "nrr-metrics-reader").await?,
            stranger: cluster.service_account_token("default", "stranger").await?,
        })
    }
}

/// How many review requests of this kind the controller has made.
fn reviews(cluster: &Cluster, resource: &str) -> usize {
    let writes = cluster.controllers_writes().into_iter();
    writes.filter(|write| write.resource == resource).count()
}

#[tokio::test]
async fn only_accounts_with_permission_may_scrape() -> Result<()> {
    let cluster = Cluster::start(Options::api_only().audited()).await?;
    let scrapers = Scrapers::create(&cluster).await?;
    let endpoint = Endpoint::new("https")?;
    // Without --metrics-cert-dir the certificate is self-signed.
    let controller = Controller::start(&cluster, &[&endpoint.flag, "--metrics-secure"]).await?;
    let invalid = format!("{}x", scrapers.reader);
    for (who, status, words) in [
        (Fetch::anonymous(), 401, "a bearer token is needed"),
        (Fetch::with_token("nonsense"), 401, "does not accept"),
        (Fetch::with_token(&invalid), 401, "does not accept"),
        (
            Fetch::with_token(&scrapers.stranger),
            403,
            "system:serviceaccount:default:stranger may not get this path: bind ClusterRole nrr-metrics-reader",
        ),
        (
            Fetch::with_token(&scrapers.reader),
            200,
            "nodegate_leader 1",
        ),
    ] {
        let answer = who.get(&endpoint.url).await?;
        assert_eq!(answer.status, status, "{}", answer.text);
        has_words(&answer.text, words)?;
    }

    // Reviews are cached, for good tokens as for bad ones.
    let resources = ["tokenreviews", "subjectaccessreviews"];
    let before = resources.map(|resource| reviews(&cluster, resource));
    assert_eq!(before, [4, 2]);
    for _ in 0..5 {
        for token in [&invalid, &scrapers.stranger, &scrapers.reader] {
            Fetch::with_token(token).get(&endpoint.url).await?;
        }
    }
    let after = resources.map(|resource| reviews(&cluster, resource));
    assert_eq!(after, before);

    // No new token gets in while the API server hangs...
    let pids = cluster.pids();
    let api_server = Pid::from_raw(i32::try_from(pids["kube-apiserver"])?);
    kill(api_server, Signal::SIGSTOP)?;
    let answer = Fetch::with_token("unheard-of").get(&endpoint.url).await;
    kill(api_server, Signal::SIGCONT)?;
    let answer = answer?;
    assert_eq!(answer.status, 503, "{}", answer.text);
    let why = "the API server did not answer within 5 s";
    has_words(&controller.log(), why)?;

    // ...nor while it is down. The review of the first token may have completed by now.
    cluster.stop_api_server();
    let answer = Fetch::with_token("unknown").get(&endpoint.url).await?;
    assert_eq!(answer.status, 503, "{}", answer.text);
    has_words(&answer.text, "could not be asked")?;
    let known = Fetch::with_token(&scrapers.reader);
    assert_eq!(known.get(&endpoint.url).await?.status, 200);
    cluster.start_api_server().await?;
    eventually("the API server is asked again", SOON, async || {
        let answer = Fetch::with_token("unheard-of").get(&endpoint.url).await?;
        Ok(answer.status == 401)
    })
    .await?;

    let log = controller.log();
    has_words(&log, "cannot reach the API server")?;
    has_words(&log, "access to metrics can be checked again")?;
    for token in [&scrapers.reader, &scrapers.stranger] {
        assert!(!log.contains(token.as_str()), "a token is in the log");
    }
    Ok(())
}

#[tokio::test]
async fn without_permission_to_ask_nobody_scrapes_and_the_log_says_why() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let scrapers = Scrapers::create(&cluster).await?;
    let binding = "clusterrolebinding/nrr-metrics-auth-rolebinding";
    cluster.kubectl(&["delete", binding]).await?;
    let endpoint = Endpoint::new("https")?;
    let controller = Controller::start(&cluster, &[&endpoint.flag, "--metrics-secure"]).await?;
    let reader = Fetch::with_token(&scrapers.reader);
    eventually("nobody scrapes", SOON, async || {
        Ok(reader.get(&endpoint.url).await?.status == 503)
    })
    .await?;
    let log = controller.log();
    let what = "no permission to create tokenreviews.authentication.k8s.io";
    has_words(&log, what)?;
    has_words(&log, "kubectl apply -k config/rbac")?;
    assert_eq!(log.matches(what).count(), 1, "told once: {log}");

    cluster.install_rbac().await?;
    eventually("the reader scrapes", SOON, async || {
        Ok(reader.get(&endpoint.url).await?.status == 200)
    })
    .await
}
