//! Two instances of the controller and a Lease: one writes, and the other takes over when the first one ends.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::DeleteParams;
use kube::{Api, Client};
use nodegate_tests::has_words;
use nodegate_tests::network::{
    CONDITION, create_nodes, eventually_gated_nodes, name, network_rule,
};
use nodegate_tests::rules::LEASE;
use testkit::nodegate::changes::set_node_condition;
use testkit::nodegate::fetch::get;
use testkit::nodegate::install::NAMESPACE;
use testkit::nodegate::relay::{Asked, Fate, Kind, RULES, Relay};
use testkit::nodegate::state::rule_status;
use testkit::nodegate::{Cluster, Controller, Options, eventually, ports};

/// Longer than an unreleased lease lasts.
const TAKEOVER: Duration = Duration::from_secs(120);
/// Shorter than an unreleased lease lasts, which is 15 s.
const AT_ONCE: Duration = Duration::from_secs(12);
const COUNT: usize = 200;
const ELECTED: [&str; 2] = ["--leader-elect", "--max-first-gated=100%"];

/// Waits until it has said that it leads.
async fn eventually_leads(controller: &Controller, within: Duration) -> Result<()> {
    controller.says("leading", within).await
}

#[tokio::test]
async fn a_follower_is_ready_and_takes_over_at_once_from_a_leader_that_is_stopped() -> Result<()> {
    let cluster = Cluster::start(Options::api_only().audited()).await?;
    let client = cluster.client().await?;
    create_nodes(&client, COUNT, "False").await?;
    let leader = Controller::start(&cluster, &ELECTED).await?;
    eventually_leads(&leader, TAKEOVER).await?;
    let follower = Controller::start(&cluster, &ELECTED).await?;
    network_rule("network").create(&client).await?;
    eventually_gated_nodes(&client, COUNT, TAKEOVER).await?;
    cluster.idles();
    ensure!(follower.is_ready().await);
    has_words(&follower.log(), "following")?;
    let writes = cluster.controllers_writes();
    let nodes = writes.iter().filter(|write| write.changed_a_node());
    let instances: BTreeSet<_> = nodes.map(|write| &write.instance).collect();
    assert_eq!(instances.len(), 1, "{instances:?}");
    let (flips, stopped) = tokio::join!(flip_all(&client), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        leader.stop().await
    });
    flips?;
    assert_eq!(stopped?.code(), Some(0));
    eventually_leads(&follower, TAKEOVER).await?;
    eventually_gated_nodes(&client, 0, TAKEOVER).await?;
    one_writer_at_a_time(&cluster)
}

#[tokio::test]
async fn somebody_who_deletes_the_lease_makes_no_second_leader() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    let leader = Controller::start(&cluster, &ELECTED).await?;
    eventually_leads(&leader, TAKEOVER).await?;
    let follower = Controller::start(&cluster, &ELECTED).await?;
    follower.says("following", TAKEOVER).await?;
    let leases: Api<Lease> = Api::namespaced(client, NAMESPACE);
    for _ in 0..4 {
        leases.delete(LEASE, &DeleteParams::default()).await?;
        // Longer than the leader takes to create it again, and the follower to see that.
        tokio::time::sleep(Duration::from_secs(6)).await;
    }
    leader.says("somebody deleted the lease", AT_ONCE).await?;
    ensure!(!follower.log().contains("leading"), "{}", follower.log());
    // The leader still leads, and hands over. A Lease that was just made again counts only once it has lasted.
    assert_eq!(leader.stop().await?.code(), Some(0));
    eventually_leads(&follower, TAKEOVER).await
}

#[tokio::test]
async fn somebody_who_deletes_the_lease_each_second_makes_no_two_writers_at_a_time() -> Result<()> {
    const NODES: usize = 5;
    let cluster = Cluster::start(Options::api_only().audited()).await?;
    let client = cluster.client().await?;
    create_nodes(&client, NODES, "False").await?;
    let leader = Controller::start(&cluster, &ELECTED).await?;
    eventually_leads(&leader, TAKEOVER).await?;
    let follower = Controller::start(&cluster, &ELECTED).await?;
    follower.says("following", TAKEOVER).await?;
    network_rule("network").create(&client).await?;
    eventually_gated_nodes(&client, NODES, TAKEOVER).await?;
    let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    // No Lease lasts for long enough to be renewed, so nobody leads in the end.
    for second in 0..40 {
        let _ = leases.delete(LEASE, &DeleteParams::default()).await;
        let status = ["True", "False"][second / NODES % 2];
        set_node_condition(&client, &name(second % NODES), CONDITION, status).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    leader
        .says("could not renew the lease in time", AT_ONCE)
        .await?;
    ensure!(!follower.log().contains("leading"), "{}", follower.log());
    eventually_leads(&follower, TAKEOVER).await?;
    set_node_condition(&client, &name(0), CONDITION, "True").await?;
    eventually_gated_nodes(&client, NODES - 1, TAKEOVER).await?;
    one_writer_at_a_time(&cluster)
}

#[tokio::test]
async fn two_that_work_on_the_same_rules_without_an_election_say_so() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    create_nodes(&client, 1, "False").await?;
    let one = Controller::start(&cluster, &[]).await?;
    let other = Controller::start(&cluster, &["--suspend-all"]).await?;
    network_rule("network").create(&client).await?;
    let words = "another Nodegate has written the rule's status";
    one.says(words, AT_ONCE).await?;
    other.says(words, AT_ONCE).await?;
    // The rule is in force: the one that works has the last word.
    tokio::time::sleep(Duration::from_secs(15)).await;
    let until = Instant::now() + Duration::from_secs(25);
    while Instant::now() < until {
        let status = rule_status(&client, "network").await?.to_string();
        ensure!(!status.contains("AllRulesSuspended"), "{status}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

#[tokio::test]
async fn an_instance_without_an_election_waits_until_its_clock_is_right() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    let relay = Relay::start(&cluster).await?;
    relay.date_answers(Some("Thu, 01 Jan 1970 00:00:00 GMT"));
    create_nodes(&client, 1, "False").await?;
    let controller = Controller::spawn_behind(&relay, &cluster, &[]).await?;
    let controller = controller.once_ready().await?;
    network_rule("network").create(&client).await?;
    controller
        .says("ahead of the API server's", AT_ONCE)
        .await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    eventually_gated_nodes(&client, 0, AT_ONCE).await?;
    relay.date_answers(None);
    eventually_gated_nodes(&client, 1, AT_ONCE).await
}

#[tokio::test]
async fn an_instance_that_has_not_seen_everything_leaves_the_lead_to_others() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let relay = Relay::start(&cluster).await?;
    relay.doom_next(Asked::List(Kind::NODES), Fate::Swallowed);
    let first = Controller::spawn_behind(&relay, &cluster, &ELECTED).await?;
    eventually("it lists nodes in vain", TAKEOVER, async || {
        Ok(relay.count(Asked::List(Kind::NODES)) > 0)
    })
    .await?;
    let second = Controller::start(&cluster, &ELECTED).await?;
    eventually_leads(&second, AT_ONCE).await?;
    ensure!(!first.log().contains("leading"), "{}", first.log());
    Ok(())
}

#[tokio::test]
async fn an_instance_whose_clock_is_off_leaves_the_lead_to_others_until_it_is_set() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let relay = Relay::start(&cluster).await?;
    relay.date_answers(Some("Thu, 01 Jan 1970 00:00:00 GMT"));
    let metrics = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
    let flag = format!("--metrics-bind-address={metrics}");
    let arguments = [ELECTED[0], &flag];
    let first = Controller::spawn_behind(&relay, &cluster, &arguments).await?;
    let first = first.once_ready().await?;
    first.says("ahead of the API server's", AT_ONCE).await?;
    let offset = async || {
        let (_, text) = get(metrics, "/metrics").await?;
        let mut lines = text.lines();
        let value = lines.find_map(|it| it.strip_prefix("nodegate_clock_offset_seconds "));
        anyhow::Ok(value.context("no such metric")?.parse::<f64>()?)
    };
    ensure!(offset().await? > 1e9, "by more than thirty years");
    let second = Controller::start(&cluster, &ELECTED).await?;
    eventually_leads(&second, AT_ONCE).await?;
    ensure!(!first.log().contains("leading"), "{}", first.log());
    relay.date_answers(None);
    eventually("it is set", AT_ONCE, async || Ok(offset().await? < 10.0)).await?;
    assert_eq!(second.stop().await?.code(), Some(0));
    eventually_leads(&first, AT_ONCE).await
}

#[tokio::test]
async fn a_leader_without_any_watch_for_minutes_releases_the_lease_and_ends() -> Result<()> {
    const MINUTES: Duration = Duration::from_secs(200);
    let cluster = Cluster::start(Options::api_only()).await?;
    let relay = Relay::start(&cluster).await?;
    let mut first = Controller::spawn_behind(&relay, &cluster, &ELECTED).await?;
    eventually_leads(&first, TAKEOVER).await?;
    let second = Controller::start(&cluster, &ELECTED).await?;
    let follower = Controller::spawn_behind(&relay, &cluster, &ELECTED).await?;
    let mut follower = follower.once_ready().await?;
    cluster.idles();
    // One working kind is enough to continue.
    relay.freeze(Kind::NODES);
    tokio::time::sleep(Duration::from_secs(30)).await;
    relay.freeze(RULES);
    let blind = Instant::now();
    eventually_leads(&second, MINUTES).await?;
    let took = blind.elapsed();
    ensure!(took > Duration::from_secs(100), "after {took:?}");
    eventually("the one that saw nothing ends", AT_ONCE, async || {
        Ok(first.exited()?.is_some())
    })
    .await?;
    assert_eq!(first.exited()?.and_then(|status| status.code()), Some(1));
    has_words(&first.log(), "released")?;
    eventually("so does a follower", AT_ONCE, async || {
        Ok(follower.exited()?.is_some())
    })
    .await?;
    assert_eq!(follower.exited()?.and_then(|status| status.code()), Some(1));
    Ok(())
}

#[tokio::test]
async fn a_lease_is_released_even_if_a_renewal_was_under_way() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let relay = Relay::start(&cluster).await?;
    let first = Controller::spawn_behind(&relay, &cluster, &ELECTED).await?;
    eventually_leads(&first, TAKEOVER).await?;
    let second = Controller::start(&cluster, &ELECTED).await?;
    let before = relay.count(Asked::Renewal);
    relay.doom_next(Asked::Renewal, Fate::Unanswered);
    eventually("a renewal is under way", TAKEOVER, async || {
        Ok(relay.count(Asked::Renewal) > before)
    })
    .await?;
    // The request reaches the API server, but its answer is lost.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(first.stop().await?.code(), Some(0));
    eventually_leads(&second, AT_ONCE).await
}

/// Sets the condition of every node to `True`.
async fn flip_all(client: &Client) -> Result<()> {
    for index in 0..COUNT {
        set_node_condition(client, &name(index), CONDITION, "True").await?;
    }
    Ok(())
}

/// By the audit log: once a second instance has written a node, the first one no longer does.
fn one_writer_at_a_time(cluster: &Cluster) -> Result<()> {
    let writes = cluster.controllers_writes();
    let mut instances: Vec<_> = writes
        .iter()
        .filter(|write| write.changed_a_node())
        .map(|write| write.instance.as_str())
        .collect();
    instances.dedup();
    ensure!(
        !instances.is_empty() && instances.len() <= 2,
        "{instances:?}"
    );
    Ok(())
}
