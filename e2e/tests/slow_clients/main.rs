//! Clients without credentials that use up all they can of a server, while other clients must still be served.

mod clients;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clients::{Crowd, ELSEWHERE, MANY, Stops, Target, asking_review, swelling_review};
use k8s_openapi::ByteString;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use nodegate_tests::SOON;
use nodegate_tests::webhook::{PATH, call_with};
use serde_json::json;
use testkit::nodegate::fetch::Fetch;
use testkit::nodegate::fixtures::rule;
use testkit::nodegate::install::config;
use testkit::nodegate::{Cluster, Controller, Options, certificate, eventually, ports};
use tokio::io::AsyncReadExt;
use tokio::net::TcpSocket;
use tokio::task::JoinSet;

/// The memory limit of the controller's container, in KiB.
const MEMORY: u64 = 256 * 1024;
/// How long a review or a scrape may take: the API server waits for 10 s, and so does Prometheus by default.
const PATIENCE: Duration = Duration::from_secs(10);

/// A controller that serves everything, with one certificate.
struct Scene {
    /// It ends before its cluster.
    controller: Controller,
    cluster: Cluster,
    webhook: Target,
    metrics: Target,
    url: String,
    /// A client that may read the metrics.
    reader: Fetch,
}

impl Scene {
    async fn start() -> Result<Self> {
        let cluster = Cluster::start(Options::api_only()).await?;
        cluster.install().await?;
        cluster.kubectl_on(&["apply"], &config("webhook")).await?;
        let folder = cluster.folder().join("certificates");
        let ca = certificate::write(&folder)?;
        let (webhook, metrics) = (ports::free()?, ports::free()?);
        let url = format!("https://127.0.0.1:{webhook}{PATH}");
        let bundle = ByteString(ca.as_bytes().to_vec());
        let client_config = json!({"service": null, "url": url, "caBundle": bundle});
        call_with(&cluster, &client_config).await?;
        let folder = folder.display();
        let controller = Controller::start(
            &cluster,
            &[
                "--enable-webhook",
                &format!("--webhook-bind-address=127.0.0.1:{webhook}"),
                &format!("--webhook-cert-dir={folder}"),
                "--metrics-secure",
                &format!("--metrics-bind-address=127.0.0.1:{metrics}"),
                &format!("--metrics-cert-dir={folder}"),
            ],
        )
        .await?;
        let reader = cluster.account("reader", "nrr-metrics-reader").await?;
        Ok(Self {
            webhook: Target::new(webhook, PATH, &ca)?,
            metrics: Target::new(metrics, "/metrics", &ca)?,
            url: format!("https://127.0.0.1:{metrics}/metrics"),
            reader: Fetch::with_token(&reader),
            cluster,
            controller,
        })
    }

    /// Lets the webhook review a rule, through the API server.
    async fn is_reviewed(&self) -> Result<()> {
        let rule = rule("probe", "readiness.k8s.io/probe").waits_for("Ready");
        let rule = rule.selects("zone", "a");
        rule.try_out(&self.cluster.client().await?).await
    }

    async fn is_scraped(&self) -> Result<()> {
        self.is_scraped_by(&self.reader).await
    }

    async fn is_scraped_by(&self, client: &Fetch) -> Result<()> {
        let answer = client.get(&self.url).await?;
        ensure!(answer.status == 200, "{}: {}", answer.status, answer.text);
        Ok(())
    }

    /// The controller has stayed within its memory.
    fn is_small(&self) -> Result<()> {
        let peak = self.controller.memory("VmHWM")?;
        ensure!(peak < MEMORY, "{peak} KiB");
        Ok(())
    }
}

/// Runs it, and returns how long it took; fails after [`PATIENCE`].
async fn in_time(what: &str, work: impl Future<Output = Result<()>>) -> Result<Duration> {
    let started = Instant::now();
    let done = tokio::time::timeout(PATIENCE, work).await;
    done.with_context(|| format!("{what}: not within {PATIENCE:?}"))?
        .with_context(|| what.to_owned())?;
    Ok(started.elapsed())
}

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_slow_clients_take_neither_the_memory_nor_the_turn_of_others() -> Result<()> {
    let scene = Scene::start().await?;
    scene.is_reviewed().await?;
    scene.is_scraped().await?;
    // None has the address of the API server and the scraper. Of one address, some of them are closed at once; of eight, they
    // are more than a server has connections.
    let (webhook, metrics) = (&scene.webhook, &scene.metrics);
    for (addresses, kinds) in [
        (
            &[ELSEWHERE][..],
            [
                (webhook, Stops::Handshake, 100),
                (webhook, Stops::Head, 100),
                (webhook, Stops::Body, 300),
                (metrics, Stops::Handshake, 100),
                (metrics, Stops::Head, 100),
                (metrics, Stops::Body, 50),
            ],
        ),
        (
            &MANY,
            [
                (webhook, Stops::Handshake, 240),
                (webhook, Stops::Head, 80),
                (webhook, Stops::Body, 240),
                (metrics, Stops::Handshake, 240),
                (metrics, Stops::Head, 80),
                (metrics, Stops::Body, 40),
            ],
        ),
    ] {
        let crowd = Crowd::gather(addresses, &kinds);
        eventually("many wait", SOON, async || Ok(crowd.connected() > 100)).await?;
        let end = Instant::now() + Duration::from_secs(12);
        while Instant::now() < end {
            in_time("a review", scene.is_reviewed()).await?;
            in_time("a scrape", scene.is_scraped()).await?;
            in_time("a probe", async {
                ensure!(scene.controller.is_ready().await);
                Ok(())
            })
            .await?;
        }
        scene.is_small()?;
    }
    let log = scene.controller.log();
    assert_eq!(
        log.matches("too many connections to the webhook").count(),
        1
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn reviews_that_swell_when_they_are_read_stay_small() -> Result<()> {
    let scene = Scene::start().await?;
    let mut clients = JoinSet::new();
    for number in 0..24 {
        let webhook = scene.webhook.clone();
        let (place, expected) = [("spec", "400"), ("status", "200")][number % 2];
        clients.spawn(async move {
            let review = swelling_review(place);
            let mut answered = 0;
            for _ in 0..4 {
                // The server may close a connection that asks too much.
                if let Ok(status) = webhook.post(ELSEWHERE, &review).await {
                    ensure!([expected, "503"].contains(&&*status), "{place}: {status}");
                    answered += 1;
                }
            }
            Ok(answered)
        });
    }
    let mut answered = 0;
    while let Some(client) = clients.join_next().await {
        answered += client??;
        in_time("a review", scene.is_reviewed()).await?;
    }
    ensure!(answered > 0);
    scene.is_small()
}

#[tokio::test(flavor = "multi_thread")]
async fn reviews_that_ask_for_much_open_few_connections() -> Result<()> {
    let scene = Scene::start().await?;
    let mut clients = JoinSet::new();
    // More than the definition allows, which only the API server enforces, and exactly as many.
    for conditions in [3_500, 32].repeat(16) {
        let webhook = scene.webhook.clone();
        clients.spawn(async move {
            let review = asking_review(conditions);
            let mut answered = 0;
            for _ in 0..6 {
                answered += usize::from(
                    webhook
                        .post(ELSEWHERE, &review)
                        .await
                        .is_ok_and(|it| it == "200"),
                );
            }
            answered
        });
    }
    let (mut answered, mut most) = (0, 0);
    while let Some(client) = clients.join_next().await {
        answered += client?;
        in_time("a review", scene.is_reviewed()).await?;
        let files = std::fs::read_dir(format!("/proc/{}/fd", scene.controller.pid()))?;
        most = most.max(files.count());
    }
    ensure!(answered > 0);
    ensure!(most < 150, "{most} files are open");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_starve_no_probe() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let controller = Controller::start(&cluster, &[]).await?;
    let probes = controller.probes();
    for addresses in [&[ELSEWHERE] as &[_], &MANY] {
        let crowd = tokio::spawn(async move {
            let mut silent = JoinSet::new();
            let mut pace = tokio::time::interval(Duration::from_millis(2));
            for from in addresses.iter().cycle() {
                pace.tick().await;
                silent.spawn(async move {
                    let socket = TcpSocket::new_v4()?;
                    socket.bind((*from, 0).into())?;
                    let mut stream = socket.connect(probes).await?;
                    stream.read(&mut [0; 16]).await
                });
                while silent.try_join_next().is_some() {}
            }
        });
        let mut longest = Duration::ZERO;
        let end = Instant::now() + Duration::from_secs(7);
        while Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let took = in_time("a probe", async {
                ensure!(controller.is_ready().await, "not ready");
                Ok(())
            })
            .await?;
            longest = longest.max(took);
        }
        crowd.abort();
        ensure!(longest < Duration::from_secs(1), "{longest:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_with_made_up_tokens_keep_no_reader_waiting() -> Result<()> {
    let scene = Scene::start().await?;
    scene.is_scraped().await?;
    let asked = std::sync::Arc::new(AtomicUsize::new(0));
    let mut strangers = JoinSet::new();
    for number in 0..100_u8 {
        let (metrics, asked) = (scene.metrics.clone(), asked.clone());
        // Together they take fewer places than there are.
        let from = IpAddr::from(Ipv4Addr::new(127, 0, 0, 2 + number % 7));
        strangers.spawn(async move {
            loop {
                let token = format!("made-up-{number}-{}", asked.fetch_add(1, Ordering::Relaxed));
                let _ = metrics.ask(from, &token).await;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        });
    }
    eventually("there is a flood", SOON, async || {
        Ok(asked.load(Ordering::Relaxed) > 300)
    })
    .await?;
    in_time("a known reader", scene.is_scraped()).await?;
    let token = scene
        .cluster
        .account("newcomer", "nrr-metrics-reader")
        .await?;
    let newcomer = Fetch::with_token(&token);
    in_time("a new reader", scene.is_scraped_by(&newcomer)).await?;
    // While the API server cannot be asked, cached clients are still served.
    let api_server = i32::try_from(scene.cluster.pids()["kube-apiserver"])?;
    let api_server = Pid::from_raw(api_server);
    kill(api_server, Signal::SIGSTOP)?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let hanging = in_time("a known reader", scene.is_scraped()).await;
    kill(api_server, Signal::SIGCONT)?;
    hanging?;
    scene.is_small()
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_without_credentials_keep_no_review_of_the_api_server_waiting() -> Result<()> {
    let scene = Scene::start().await?;
    let asked = std::sync::Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..370 {
        let (webhook, asked) = (scene.webhook.clone(), asked.clone());
        callers.spawn(async move {
            let review = asking_review(32);
            loop {
                let _ = webhook.post(ELSEWHERE, &review).await;
                asked.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        });
    }
    eventually("there is a flood", SOON, async || {
        Ok(asked.load(Ordering::Relaxed) > 370)
    })
    .await?;
    let mut longest = Duration::ZERO;
    for _ in 0..20 {
        longest = longest.max(in_time("a review", scene.is_reviewed()).await?);
    }
    ensure!(longest < PATIENCE / 2, "{longest:?}");
    Ok(())
}
