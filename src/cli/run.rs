//! Runs a command: reads what it wants, and writes the answer. Only this module knows the terminal and the process.

#![allow(clippy::disallowed_methods, reason = "it deals with the cluster now")]

mod access;
mod follow;
mod help;

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::CommandFactory;
use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;

use super::check::{check, installation, upstream};
use super::command::{
    AccessArgs, Command, CommonArgs, ExplainArgs, Output, Plugin, PreviewArgs, StartupArgs,
    explained,
};
use super::complete::script;
use super::dump::dump;
use super::explain::{explain_daemon_set, explain_node, explain_pod, explain_rule};
use super::failure::CliError;
use super::page::Render;
use super::preview;
use super::read::{
    Live, ObjectSource, manifests, names, pod, record_gap, snapshot, unknown, with_rules,
};
use super::report::report;
use super::rows::rows;
use super::snapshot::{CHECKED, Wanted, last_seen, node_of};
use super::startup::{startup, startups};
use super::status::status;
use super::suggest::suggest;
use access::{configured, opened, page, print, source, write};
use nodegate_cluster::process::UsageError;
use nodegate_cluster::{Gap, ResourceKind};
use nodegate_core::object::{ObjectKey, RuleObject};
use nodegate_core::text::{printable, printable_lines};
use nodegate_core::{api, selector::Filter};

const FOUND: u8 = 2;
/// Of how many held nodes a report has everything.
const EXPLAINED: usize = 20;
/// Of how many nodes that joined last a report looks at the start.
const STARTS: usize = 100;
/// How long a command may take before a terminal shows a progress line.
const PATIENCE: Duration = Duration::from_secs(1);

/// Runs a command and writes its answer to standard output; exit code 2 means that something was found. Fails if there is no
/// answer, or only a part of one, or if it cannot be written.
pub async fn run(Plugin { command }: Plugin) -> anyhow::Result<ExitCode> {
    // These say themselves what they do.
    let goes_on = match &command {
        Command::Status(args) => args.watch || args.wait,
        command => matches!(command, Command::Complete { .. }),
    };
    let shows = io::stderr().is_terminal() && !goes_on;
    let answering = answer(command);
    tokio::pin!(answering);
    tokio::select! {
        answered = &mut answering => return answered,
        () = tokio::time::sleep(PATIENCE), if shows => eprint!("reading the cluster..."),
    }
    let answered = answering.await;
    eprint!("\r\u{1b}[K");
    answered
}

async fn answer(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Completion { shell } => print(script(shell)),
        Command::Complete { for_kubectl, words } => help::complete(&words, for_kubectl).await,
        Command::Explain(args) => Box::pin(explain(args)).await,
        Command::Status(args) if args.watch => follow::run(&args.common).await,
        Command::Status(args) if args.wait => wait(args.timeout, &args.common).await,
        Command::Status(args) => {
            let (_, read) = opened(&args.common.access, &Wanted::status()).await?;
            say(&status(&read), &args.common, read.at)
        }
        Command::Startup(args) => start(&args).await,
        Command::Preview(args) => preview_files(&args).await,
        Command::Dump(args) => {
            let (source, read) = opened(&args.common.access, &Wanted::outline(&[])).await?;
            let dumped = dump(&source, &read, &args.folder, args.redact).await?;
            let said = say(&dumped, &args.common, read.at)?;
            let missing: Vec<String> = dumped.missing.iter().map(Gap::refusal).collect();
            complete((!missing.is_empty()).then(|| missing.join(", ")))?;
            Ok(said)
        }
        Command::Report(args) => reported(&args.output_file, &args.access).await,
        Command::Check(args) => {
            let (files, access) = ([args.files, args.filename].concat(), &args.common.access);
            let source = if files.is_empty() {
                source(access).await?
            } else {
                ObjectSource::Memory(manifests(&files)?)
            };
            let read = snapshot(&source, configured(access)?, &Wanted::checkup()).await?;
            let parts = Box::pin(installation(&source, &read)).await;
            let mut checkup = check(parts, &read);
            if args.upstream {
                checkup.findings.extend(upstream(&read));
            }
            let said = say(&checkup, &args.common, read.at)?;
            complete(checkup.unread)?;
            Ok(said)
        }
        Command::Version => print(&Plugin::command().render_version()),
        Command::Suggest(common) => {
            let wanted = Wanted::outline(&[ResourceKind::DaemonSets, ResourceKind::CsiDrivers]);
            let (_, read) = opened(&common.access, &wanted).await?;
            // A suggestion beside rules that were not seen could overwrite one.
            complete(read.unread())?;
            say(&suggest(&read), &common, read.at)
        }
    }
}

async fn reported(file: &Path, access: &AccessArgs) -> anyhow::Result<ExitCode> {
    let wanted = Wanted {
        manifests: CHECKED,
        starts: true,
        ..Wanted::status()
    };
    let (source, mut read) = opened(access, &wanted).await?;
    let mut held = Vec::new();
    for row in status(&read).held.iter().take(EXPLAINED) {
        let its_own = Filter::default().is("involvedObject.kind", "Node");
        let its_own = its_own.is("involvedObject.name", &row.node);
        let events = source.all::<Event>(ResourceKind::Events, &its_own).await;
        let mut events = record_gap(&mut read.gaps, events);
        events.sort_by_key(last_seen);
        held.extend(explain_node(&read, &row.node).map(|it| (it, events)));
    }
    let starts = startups(&read, STARTS);
    let (status, checkup) = (status(&read), check(Vec::new(), &read));
    let cluster = source.cluster();
    let report = report(read.at, cluster, &status, &held, &starts, &checkup);
    let unwritable = |error| CliError::Input(format!("cannot write {}: {error}", file.display()));
    std::fs::write(file, report).map_err(unwritable)?;
    print(&format!("wrote {}\n", file.display()))
}

async fn explain(args: ExplainArgs) -> anyhow::Result<ExitCode> {
    let (kind, name) = explained(&args.target, args.name.as_deref())?;
    let (name, common) = (name.as_str(), &args.common);
    let source = source(&common.access).await?;
    let read = async |wanted: Wanted| snapshot(&source, configured(&common.access)?, &wanted).await;
    let namespace = args.namespace;
    let own = namespace.unwrap_or_else(|| source.namespace().to_owned());
    let within = kind.is_namespaced().then_some(own.as_str());
    let is_among = |names: Vec<String>| names.into_iter().any(|it| it == name);
    let said = match kind {
        ResourceKind::Rules => {
            let read = read(Wanted::default()).await?;
            explain_rule(&read, name).map(|it| say(&it, common, read.at))
        }
        ResourceKind::DaemonSets if is_among(names(&source, kind, within).await) => {
            let read = read(Wanted::default()).await?;
            let key = ObjectKey::new(own.as_str(), name);
            Some(say(&explain_daemon_set(&read, &key), common, read.at))
        }
        ResourceKind::Pods => match pod(&source, &own, name).await? {
            Some(pod) => {
                let read = read(Wanted::of_node(node_of(&pod.unready.pod))).await?;
                Some(say(&explain_pod(&read, &pod), common, read.at))
            }
            None => None,
        },
        ResourceKind::Nodes => {
            let read = read(Wanted::of_node(name)).await?;
            explain_node(&read, name).map(|it| say(&it, common, read.at))
        }
        _ => None,
    };
    match said {
        Some(said) => said,
        None => Err(unknown(&source, kind, within, name).await.into()),
    }
}

async fn start(args: &StartupArgs) -> anyhow::Result<ExitCode> {
    let (node, common) = (args.node.as_deref(), &args.common);
    let explained = node.map(|word| explained(word, None)).transpose()?;
    let name = match explained {
        None => String::new(),
        Some((ResourceKind::Nodes, name)) => name,
        Some(_) => return Err(UsageError("only nodes start: write node/NAME".into()).into()),
    };
    let wanted = Wanted {
        starts: true,
        ..Wanted::of_node(&name)
    };
    let (source, read) = opened(&common.access, &wanted).await?;
    if name.is_empty() {
        return say(&startups(&read, args.last), common, read.at);
    }
    if let Some(mut start) = startup(&read, &name) {
        start.notes = read.notes();
        return say(&start, common, read.at);
    }
    let why = format!("node/{name} waits for nothing under the rules in force");
    Err(match read.view.node(&name) {
        Some(_) => CliError::Input(why).into(),
        None => unknown(&source, ResourceKind::Nodes, None, &name)
            .await
            .into(),
    })
}

async fn preview_files(args: &PreviewArgs) -> anyhow::Result<ExitCode> {
    let files = args.files.iter().chain(&args.filename);
    let files: Vec<(String, String)> = files.map(|path| file(path)).collect::<Result<_, _>>()?;
    let mut written = preview::rules(&files).map_err(CliError::Input)?;
    let (source, read) = opened(&args.common.access, &Wanted::default()).await?;
    for rule in &mut written {
        let there = read.view.cached_rules().get(&*rule.name);
        rule.there = there.map(|it| RuleObject::clone(&it.object));
    }
    let (at, before) = (read.at, rows(&read));
    let answers = written.iter().map(async |it| {
        let there = it.there.as_ref();
        let version = there.and_then(|rule| rule.metadata.resource_version.as_deref());
        source.dry_run(&it.object, version).await
    });
    let answers = join_all(answers).await;
    let rules = written.iter().map(|it| it.applied(at)).collect();
    let after = with_rules(&source, read, rules).await?;
    let preview = preview::preview(&before, &after, &written, &answers);
    let said = say(&preview, &args.common, at)?;
    // More nodes may be gated than it says, or the API server refuse the rule.
    complete(after.unread())?;
    if let ObjectSource::Cluster(_) = source {
        complete(answers.into_iter().find_map(Result::err))?;
    }
    Ok(said)
}

/// The name and text of a file, or of standard input.
fn file(path: &Path) -> Result<(String, String), CliError> {
    let text = if path == Path::new("-") {
        io::read_to_string(io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    let text = text.map_err(|error| CliError::file(path, error))?;
    Ok((path.display().to_string(), text))
}

/// Waits until no node is held, or until the timeout; standard error says what for.
async fn wait(timeout: api::Duration, common: &CommonArgs) -> anyhow::Result<ExitCode> {
    let source = source(&common.access).await?;
    let end = Instant::now() + timeout.as_std();
    let mut live = Live::begin(&source, configured(&common.access)?).await?;
    let mut told = None;
    loop {
        let (read, problem) = live.read();
        let status = status(read);
        let Some(mut awaited) = status.awaited() else {
            return say(&status, common, read.at);
        };
        if let Some(problem) = problem {
            awaited = format!("{awaited}; not up to date: {problem}");
        }
        if Instant::now() >= end {
            eprintln!("time is up after {timeout}: {}", printable(awaited));
            say(&status, common, read.at)?;
            return Ok(ExitCode::from(FOUND));
        }
        if told.as_ref() != Some(&awaited) {
            eprintln!("waiting: {}", printable(&awaited));
            told = Some(awaited);
        }
        follow::change(&mut live, end).await;
    }
}

fn say<A: Render>(answer: &A, common: &CommonArgs, at: Timestamp) -> anyhow::Result<ExitCode> {
    let text = match common.output {
        Output::Text | Output::Wide => answer.text(&page(common, at)),
        Output::Json => printable_lines(&serde_json::to_string_pretty(&answer.typed())?) + "\n",
        Output::Yaml => printable_lines(&serde_saphyr::to_string(&answer.typed())?),
    };
    write(&text)?;
    let code = if answer.is_no() { FOUND } else { 0 };
    Ok(code.into())
}

/// Fails if the answer needs lists that could not be read.
fn complete(unread: Option<String>) -> Result<(), CliError> {
    let incomplete = |unread| CliError::Input(format!("the answer is incomplete: {unread}"));
    unread.map_or(Ok(()), |unread| Err(incomplete(unread)))
}
