//! The shell: reads what a command wants, has it answer, and writes the answer out. Everything here is about this terminal and
//! this process.

mod access;
mod follow;
mod screen;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::runtime;

use super::answer::Answer;
use super::check::check;
use super::command::{Access, Command, Common, NodeName, Output, Target};
use super::complete::script;
use super::dump::dump;
use super::explain::{explain_node, explain_pod, explain_rule};
use super::failure::Failure;
use super::help;
use super::lint::lint;
use super::output::write;
use super::preview::{self, Before, File};
use super::read::live::Live;
use super::read::{
    KINDS, Source, facts, inventory, inventory_beside, inventory_of_files, pod, unknown, with_rules,
};
use super::report::Report;
use super::snapshot::{Kind, Wanted};
use super::status::status;
use super::suggest::suggest;
use super::timeline::{timeline_of, timelines};
use super::top::Fleet;
use crate::object::RuleObject;
use access::{configured, page, read, read_of, source, source_of};

/// How many of the slowest starts a report has.
const SLOWEST: usize = 10;
/// The exit code of an answer that is no.
const NO: u8 = 2;
/// How long something may take before somebody at a terminal is told that it goes on.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long it takes until changes are looked at.
const BETWEEN: Duration = Duration::from_millis(500);

/// Answers a question, on standard output; the exit code says whether the answer is no.
///
/// # Errors
/// Where it could not be answered, or not be written.
pub fn run(command: Command) -> anyhow::Result<ExitCode> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        if let Command::Top { once, common } = command {
            return Box::pin(top(once, &common)).await;
        }
        let answering = answer(command);
        tokio::pin!(answering);
        tokio::select! {
            answered = &mut answering => return answered,
            () = tokio::time::sleep(PATIENCE) => {}
        }
        let shows = io::stderr().is_terminal();
        if shows {
            eprint!("reading the cluster...");
        }
        let answered = answering.await;
        if shows {
            eprint!("\r\u{1b}[K");
        }
        answered
    })
}

/// Answers kubectl what may come after these words.
///
/// # Errors
/// When it cannot be written.
pub fn complete_for_kubectl(words: &[String]) -> anyhow::Result<ExitCode> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(help::complete_for_kubectl(words))
}

async fn answer(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Completion { shell } => {
            write(script(shell))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Man { folder } => Ok(help::manuals(&folder)?),
        Command::Top { once, common } => Box::pin(top(once, &common)).await,
        Command::Complete { words } => help::complete(&words).await,
        Command::Explain {
            target,
            namespace,
            common,
        } => explain(target, namespace, &common).await,
        Command::Status {
            wait: false,
            common,
            ..
        } => {
            let read = read(&source(&common).await?, &common, &of_all()).await?;
            say(&status(&read), &common, read.at)
        }
        Command::Status {
            timeout, common, ..
        } => wait(timeout.as_std(), &common).await,
        Command::Preview { files, common } => preview_files(&files, &common).await,
        Command::Dump {
            folder,
            hash_names,
            common,
        } => {
            let source = source(&common).await?;
            let read = read(&source, &common, &Wanted::outline()).await?;
            let dumped = dump(&source, &read, &folder, hash_names).await?;
            say(&dumped, &common, read.at)
        }
        Command::Report {
            output,
            since,
            access,
        } => report(&output, since, &access).await,
        Command::Check { common } => match source(&common).await? {
            Source::Cluster(cluster) => {
                let facts = facts(&cluster).await;
                say(&check(&facts), &common, facts.at)
            }
            Source::Folder(_) | Source::Lists(_) | Source::Kept(..) => {
                let why = "check asks the API server: a dump cannot tell how it is";
                Err(Failure::Input(why.into()).into())
            }
        },
        Command::Lint { filename, common } => {
            let config = common.access.config.as_deref();
            let read = match filename {
                Some(path) => inventory_of_files(&path, config)?,
                None => inventory(&source(&common).await?, config).await?,
            };
            say(&lint(&read), &common, Timestamp::now())
        }
        Command::Suggest { common } => {
            let read = inventory(&source(&common).await?, common.access.config.as_deref()).await?;
            say(&suggest(&read), &common, Timestamp::now())
        }
        Command::Timeline {
            node,
            slowest,
            since,
            common,
        } => {
            if let Some(NodeName(name)) = node {
                return node_timeline(&name, &common).await;
            }
            let read = read(&source(&common).await?, &common, &of_starts()).await?;
            let since = since.and_then(|since| read.at.checked_sub(since.as_std()).ok());
            say(&timelines(&read, since, slowest), &common, read.at)
        }
    }
}

/// Writes a page about all into a file.
async fn report(
    file: &Path,
    since: Option<crate::api::Duration>,
    access: &Access,
) -> anyhow::Result<ExitCode> {
    let source = source_of(access).await?;
    // Lint looks at all of these, and the rest of the page at some of them.
    let source = source.keeping(&KINDS.map(|(kind, _)| kind)).await;
    let wanted = Wanted {
        startups: true,
        ..of_all()
    };
    let read = read_of(&source, access, &wanted).await?;
    let written = inventory_beside(&source, &read).await;
    let since = since.and_then(|since| read.at.checked_sub(since.as_std()).ok());
    let report = Report {
        at: read.at,
        status: status(&read),
        timeline: timelines(&read, since, SLOWEST),
        lint: lint(&written),
    };
    let unwritable = |error| Failure::Input(format!("cannot write {}: {error}", file.display()));
    std::fs::write(file, report.page()).map_err(unwritable)?;
    write(&format!("wrote {}\n", file.display()))?;
    Ok(ExitCode::SUCCESS)
}

async fn node_timeline(name: &str, common: &Common) -> anyhow::Result<ExitCode> {
    let source = source(common).await?;
    let wanted = Wanted {
        node: Some(name.into()),
        ..of_starts()
    };
    let read = read(&source, common, &wanted).await?;
    match timeline_of(&read, name) {
        Some(answer) => say(&answer, common, read.at),
        None => Err(no_node(&source, name).await.into()),
    }
}

async fn explain(
    target: Target,
    namespace: Option<String>,
    common: &Common,
) -> anyhow::Result<ExitCode> {
    let source = source(common).await?;
    match target {
        Target::Node(name) => {
            let read = read(&source, common, &Wanted::of_node(&name)).await?;
            match explain_node(&read, &name) {
                Some(answer) => say(&answer, common, read.at),
                None => Err(no_node(&source, &name).await.into()),
            }
        }
        Target::Rule(name) => {
            let read = read(&source, common, &Wanted::everything()).await?;
            match explain_rule(&read, &name) {
                Some(answer) => say(&answer, common, read.at),
                None => Err(unknown(&source, Kind::Rules, "rule", None, &name)
                    .await
                    .into()),
            }
        }
        Target::Pod(name) => {
            let namespace = namespace.unwrap_or_else(|| source.namespace().to_owned());
            let Some(pod) = pod(&source, &namespace, &name).await? else {
                let namespace = Some(namespace.as_str());
                return Err(unknown(&source, Kind::Pods, "pod", namespace, &name)
                    .await
                    .into());
            };
            let wanted = if pod.story.node.is_empty() {
                Wanted::everything()
            } else {
                Wanted::of_node(&pod.story.node)
            };
            let read = read(&source, common, &wanted).await?;
            say(&explain_pod(&read, &pod), common, read.at)
        }
    }
}

/// The failure where there is no node of this name.
async fn no_node(source: &Source, name: &str) -> Failure {
    unknown(source, Kind::Nodes, "node", None, name).await
}

/// What the rules in these files would do.
async fn preview_files(files: &[PathBuf], common: &Common) -> anyhow::Result<ExitCode> {
    let files: Vec<File> = files
        .iter()
        .map(|path| file(path))
        .collect::<Result<_, _>>()?;
    let written = preview::rules(&files).map_err(Failure::Input)?;
    let source = source(common).await?;
    let applied = |there: &dyn Fn(&str) -> Option<RuleObject>, at| {
        let rules = written
            .iter()
            .map(|it| it.applied(there(&it.name).as_ref(), at));
        rules.collect::<Result<Vec<_>, _>>().map_err(Failure::Input)
    };
    let wanted = Wanted {
        rules: applied(&|_| None, Timestamp::now())?,
        limits: true,
        ..Wanted::everything()
    };
    let read = read(&source, common, &wanted).await?;
    let (at, before) = (read.at, Before::of(&read, &written));
    let rules = applied(&|name| before.rule(name).cloned(), at)?;
    let after = with_rules(&source, read, rules).await?;
    say(&preview::preview(&before, &after, &written), common, at)
}

/// A file that somebody has named.
fn file(path: &Path) -> Result<File, Failure> {
    let text = if path == Path::new("-") {
        io::read_to_string(io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    let name = path.display().to_string();
    match text {
        Ok(text) => Ok(File { name, text }),
        Err(error) => Err(Failure::Input(format!("cannot read {name}: {error}"))),
    }
}

/// Watches how the cluster does until nothing is held, or the time is up.
async fn wait(timeout: Duration, common: &Common) -> anyhow::Result<ExitCode> {
    let source = source(common).await?;
    let end = Instant::now() + timeout;
    let wanted = of_all();
    let mut live = Live::begin(&source, configured(&common.access), &wanted).await?;
    let mut held = None;
    loop {
        let read = live.at(Timestamp::now());
        let mut status = status(read);
        let now_held = status.nodes.held + status.nodes.opening;
        status.is_too_late = now_held > 0;
        if now_held == 0 || Instant::now() >= end {
            return say(&status, common, read.at);
        }
        if held.replace(now_held) != Some(now_held) && io::stderr().is_terminal() {
            eprintln!("\r\u{1b}[K{now_held} nodes are held");
        }
        let soon = Instant::now() + BETWEEN;
        follow::changed_by(&mut live, end).await;
        // What changes at the same time is looked at together.
        follow::changes_until(&mut live, soon.min(end)).await;
    }
}

/// Shows the fleet live, or once.
async fn top(once: bool, common: &Common) -> anyhow::Result<ExitCode> {
    let source = source(common).await?;
    let wanted = Wanted::everything();
    let is_text = matches!(common.output, Output::Text | Output::Wide);
    if once || !is_text {
        let read = read(&source, common, &wanted).await?;
        return say(&Fleet::of(&read, None), common, read.at);
    }
    let live = Live::begin(&source, configured(&common.access), &wanted).await?;
    if io::stdout().is_terminal() {
        Box::pin(screen::run(live, &source, common)).await
    } else {
        Box::pin(follow::run(live)).await
    }
}

/// What `status` wants read.
fn of_all() -> Wanted {
    Wanted {
        controllers: true,
        ..Wanted::everything()
    }
}

/// What `timeline` wants read.
fn of_starts() -> Wanted {
    Wanted {
        startups: true,
        ..Wanted::everything()
    }
}

/// Writes an answer out.
fn say<A: Answer>(answer: &A, common: &Common, at: Timestamp) -> anyhow::Result<ExitCode> {
    let text = match common.output {
        Output::Text | Output::Wide => answer.text(&page(common, at)),
        Output::Json => serde_json::to_string_pretty(answer)? + "\n",
        Output::Yaml => serde_saphyr::to_string(answer)?,
        Output::Name => answer.names().join("\n") + "\n",
    };
    write(&text)?;
    Ok(if answer.is_no() {
        ExitCode::from(NO)
    } else {
        ExitCode::SUCCESS
    })
}
