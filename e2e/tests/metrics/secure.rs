//! `--metrics-secure`: who may scrape, and what happens while the API server does not answer. `observed` scrapes with a certificate
//! from files; how those are followed is tested with the webhook, which has the same.

use anyhow::Result;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use nodegate_tests::has_words;
use testkit::nodegate::fetch::Fetch;
use testkit::nodegate::{Cluster, Controller, Options, eventually};

use super::{Endpoint, SOON};

/// How many review requests of this kind the controller has made.
fn reviews(cluster: &Cluster, resource: &str) -> usize {
    let writes = cluster.controllers_writes().into_iter();
    writes.filter(|write| write.resource == resource).count()
}

#[tokio::test]
async fn only_accounts_with_permission_may_scrape_and_nobody_where_that_cannot_be_asked()
-> Result<()> {
    let cluster = Cluster::start(Options::api_only().audited()).await?;
    cluster.install().await?;
    cluster
        .types("create serviceaccount stranger --namespace=default")
        .await?;
    let stranger = cluster.service_account_token("default", "stranger").await?;
    let reader = cluster.account("reader", "nrr-metrics-reader").await?;
    let binding = "delete clusterrolebinding nrr-metrics-auth-rolebinding";
    cluster.types(binding).await?;
    let endpoint = Endpoint::new("https")?;
    // Without --metrics-cert-dir the certificate is self-signed.
    let controller = Controller::start(&cluster, &[&endpoint.flag, "--metrics-secure"]).await?;
    let scrapes = async |status: u16| {
        let what = format!("the reader gets {status}");
        eventually(&what, SOON, async || {
            let answer = Fetch::with_token(&reader).get(&endpoint.url).await?;
            Ok(answer.status == status)
        })
        .await
    };
    scrapes(503).await?;
    let log = controller.log();
    let what = "no permission to create tokenreviews.authentication.k8s.io";
    has_words(&log, "kubectl apply -k config/rbac")?;
    assert_eq!(log.matches(what).count(), 1, "told once: {log}");
    cluster.install_rbac().await?;
    scrapes(200).await?;

    let resources = ["tokenreviews", "subjectaccessreviews"];
    let asked = || resources.map(|resource| reviews(&cluster, resource));
    let [tokens, access] = asked();
    let invalid = format!("{reader}x");
    let denied = "system:serviceaccount:default:stranger may not get this path: bind ClusterRole nrr-metrics-reader";
    for (who, status, words) in [
        (Fetch::anonymous(), 401, "a bearer token is needed"),
        (Fetch::with_token("nonsense"), 401, "does not accept"),
        (Fetch::with_token(&invalid), 401, "does not accept"),
        (Fetch::with_token(&stranger), 403, denied),
        (Fetch::with_token(&reader), 200, "nodegate_leader 1"),
    ] {
        let answer = who.get(&endpoint.url).await?;
        assert_eq!(answer.status, status, "{}", answer.text);
        has_words(&answer.text, words)?;
    }

    // Reviews are cached, for good tokens as for bad ones.
    let before = asked();
    assert_eq!(before, [tokens + 3, access + 1]);
    for _ in 0..5 {
        for token in [&invalid, &stranger, &reader] {
            Fetch::with_token(token).get(&endpoint.url).await?;
        }
    }
    assert_eq!(asked(), before);

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
    let known = Fetch::with_token(&reader);
    assert_eq!(known.get(&endpoint.url).await?.status, 200);
    cluster.start_api_server().await?;
    eventually("the API server is asked again", SOON, async || {
        let answer = Fetch::with_token("unheard-of").get(&endpoint.url).await?;
        Ok(answer.status == 401)
    })
    .await?;

    let log = controller.log();
    has_words(&log, "cannot reach the API server")?;
    let again = log.matches("access to metrics can be checked again");
    assert!(again.count() > 1, "{log}");
    for token in [&reader, &stranger] {
        assert!(!log.contains(token.as_str()), "a token is in the log");
    }
    Ok(())
}
