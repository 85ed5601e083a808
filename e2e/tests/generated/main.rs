//! Rules made from the CRD's own schema, valid and nearly valid, come, change and go beside nodes that change. Afterwards no taint
//! is without a rule, nothing has panicked or goes on for ever, and edits that are undone give back the first state: after Acto
//! (SOSP '23).
//!
//! It lasts a minute, or `GENERATED_SECONDS`. All chance follows from a seed, another one each time or `GENERATED_SEED`. Each
//! round has a seed of its own, which a finding names.
//!
//! ```text
//! schema  rules and edits, from the schema and from words that mean something
//! world   nodes, and what rules wait for
//! round   the steps of a round
//! rest    whether the controller comes to rest
//! view    what nodes and rules say, and what must hold of it
//! ```

mod chance;
mod rest;
mod round;
mod schema;
mod tally;
mod view;
mod words;
mod world;

use std::env;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chance::{Chance, new_seed};
use rest::Observer;
use round::{Bench, play};
use schema::Schema;
use tally::{ROUNDS, Tally};
use testkit::nodegate::install::CONTROLLER;
use testkit::nodegate::{Cluster, Controller, Options, note_failure, ports};

const SEED: &str = "GENERATED_SEED";
const SECONDS: &str = "GENERATED_SECONDS";
/// How long it lasts.
const LASTS: u64 = 60;

#[tokio::test]
async fn generated_rules_leave_nothing_behind() -> Result<()> {
    let seed = number(SEED)?.unwrap_or_else(new_seed);
    let lasts = Duration::from_secs(number(SECONDS)?.unwrap_or(LASTS));
    println!("seed {seed}");
    let schema = Schema::read()?;
    let options = Options {
        audited_user: Some(CONTROLLER),
        ..Options::api_only().audited()
    };
    let cluster = Cluster::start(options).await?;
    let client = cluster.client().await?;
    let port = ports::free()?;
    let flag = format!("--metrics-bind-address=127.0.0.1:{port}");
    // A rule that is held back would hide what it decides.
    let flags = [&*flag, "--max-first-gated=100%"];
    let mut controller = Controller::start(&cluster, &flags).await?;
    // Most of the minute passes while the controller comes to rest.
    cluster.idles();
    let mut observer = Observer {
        writes: cluster.follow_writes_of(CONTROLLER),
        metrics: ([127, 0, 0, 1], port).into(),
    };

    let mut tally = Tally::default();
    let began = Instant::now();
    let (mut seeds, mut this) = (Chance::of(seed), seed);
    while began.elapsed() < lasts {
        println!("round of seed {this}, after {:?}", began.elapsed());
        let mut script = Vec::new();
        let bench = Bench {
            client: &client,
            controller: &mut controller,
            observer: &mut observer,
            schema: &schema,
            tally: &mut tally,
            script: &mut script,
        };
        if let Err(error) = play(this, bench).await {
            note_failure();
            bail!(
                "{error:?}\n\nAfter {tally}.\nTo replay this round: {SEED}={this}. What was done in it:\n{}",
                script.join("\n")
            );
        }
        tally.add(ROUNDS, 1);
        this = seeds.next();
    }
    tally.is_telling()
}

/// The number in this variable, if it is set.
fn number(variable: &str) -> Result<Option<u64>> {
    let text = env::var(variable).ok().filter(|text| !text.is_empty());
    let number = text.map(|text| {
        text.parse()
            .with_context(|| format!("{variable} is no number: {text}"))
    });
    number.transpose()
}
