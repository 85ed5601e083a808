//! Faults as code: printing and parsing.

use nodegate::condition::ComponentGroup;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::{Fault, Side, Trouble, Watch};
use crate::sim::time::Time;

/// The text is no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the fault {0:?}")]
pub struct Unreadable(String);

/// Parses the code that `Display` prints.
impl FromStr for Fault {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Self, Unreadable> {
        Code::read(text)
            .and_then(|code| code.fault())
            .ok_or_else(|| Unreadable(text.to_owned()))
    }
}

/// The parts of a fault as code.
struct Code<'a> {
    name: &'a str,
    fields: BTreeMap<&'a str, &'a str>,
}

impl<'a> Code<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let (name, fields) = text
            .trim()
            .trim_end_matches(',')
            .strip_suffix('}')?
            .split_once('{')?;
        let fields = fields.split(',').filter(|field| !field.trim().is_empty());
        let fields = fields.map(|field| {
            let (name, value) = field.split_once(':')?;
            Some((name.trim(), value.trim()))
        });
        Some(Self {
            name: name.trim().trim_start_matches("Fault::"),
            fields: fields.collect::<Option<_>>()?,
        })
    }

    fn number<T: FromStr>(&self, field: &str) -> Option<T> {
        self.fields.get(field)?.parse().ok()
    }

    fn time(&self, field: &str) -> Option<Time> {
        let value = self.fields.get(field)?;
        let (unit, number) = value.strip_suffix(')')?.split_once('(')?;
        let number = number.parse().ok()?;
        match unit {
            "ms" => Some(Time::from_millis(number)),
            "s" => Some(Time::from_secs(number)),
            _ => None,
        }
    }

    fn watch(&self) -> Option<Watch> {
        let value = self.fields.get("watch")?.trim_start_matches("Watch::");
        let group = |inner: &str| {
            let (of, number) = inner.strip_suffix("))")?.rsplit_once('(')?;
            let number = number.parse().ok()?;
            match of.trim_start_matches("ComponentGroup::") {
                "Class" => Some(ComponentGroup::Class(number)),
                "Named" => Some(ComponentGroup::Named(number)),
                _ => None,
            }
        };
        Some(match value {
            "Nodes" => Watch::Nodes,
            "CsiNodes" => Watch::CsiNodes,
            "Rules" => Watch::Rules,
            "NodeClaims" => Watch::NodeClaims,
            "NodePools" => Watch::NodePools,
            "Evaluations" => Watch::Evaluations,
            _ => match value.split_once('(')? {
                ("Pods", inner) => Watch::Pods(group(inner)?),
                ("DaemonSets", inner) => Watch::DaemonSets(group(inner)?),
                ("ResourceSlices", inner) => Watch::ResourceSlices(group(inner)?),
                _ => return None,
            },
        })
    }

    fn side(&self) -> Option<Side> {
        match *self.fields.get("side")? {
            "Side::Before" => Some(Side::Before),
            "Side::After" => Some(Side::After),
            _ => None,
        }
    }

    fn trouble(&self) -> Option<Trouble> {
        let name = self.fields.get("trouble")?.trim_start_matches("Trouble::");
        Trouble::ALL
            .into_iter()
            .find(|it| format!("{it:?}") == name)
    }

    fn fault(&self) -> Option<Fault> {
        let instance = || self.number("instance");
        let (at, lasts) = (|| self.time("at"), || self.time("lasts"));
        Some(match self.name {
            "Kill" => Fault::Kill {
                instance: instance()?,
                write: self.number("write")?,
                side: self.side()?,
                down: self.time("down")?,
            },
            "Stop" => Fault::Stop {
                instance: instance()?,
                at: at()?,
                down: self.time("down")?,
            },
            "Unobserved" => Fault::Unobserved {
                instance: instance()?,
                watch: self.watch()?,
                event: self.number("event")?,
            },
            "Stale" => Fault::Stale {
                watch: self.watch()?,
                at: at()?,
                lasts: lasts()?,
            },
            "StaleStart" => Fault::StaleStart {
                watch: self.watch()?,
                at: at()?,
                lasts: lasts()?,
            },
            "AnswerLost" => Fault::AnswerLost {
                instance: instance()?,
                write: self.number("write")?,
                done: self.number("done")?,
            },
            "ClockStep" => Fault::ClockStep {
                instance: instance()?,
                at: at()?,
                by: self.number("by")?,
            },
            "Suspend" => Fault::Suspend {
                instance: instance()?,
                at: at()?,
                lasts: lasts()?,
            },
            "Freeze" => Fault::Freeze {
                instance: instance()?,
                at: at()?,
                lasts: lasts()?,
            },
            "TwoLeaders" => Fault::TwoLeaders {
                at: at()?,
                lasts: lasts()?,
            },
            "Partition" => Fault::Partition {
                instance: instance()?,
                at: at()?,
                lasts: lasts()?,
            },
            "Storm" => Fault::Storm {
                trouble: self.trouble()?,
                at: at()?,
                lasts: lasts()?,
            },
            "Lagging" => Fault::Lagging {
                watch: self.watch()?,
                at: at()?,
                lasts: lasts()?,
            },
            "WatchDelay" => Fault::WatchDelay {
                watch: self.watch()?,
                at: at()?,
                lasts: lasts()?,
                by: self.time("by")?,
            },
            "Expired" => Fault::Expired {
                watch: self.watch()?,
                at: at()?,
            },
            "SilentDeath" => Fault::SilentDeath {
                watch: self.watch()?,
                at: at()?,
            },
            _ => return None,
        })
    }
}

/// Prints Rust code, with the names of this module.
impl fmt::Display for Fault {
    #[allow(clippy::too_many_lines, reason = "a table: a line for each fault")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: &Time| format!("ms({})", time.as_millis());
        write!(f, "Fault::")?;
        match self {
            Self::Kill {
                instance,
                write,
                side,
                down,
            } => write!(
                f,
                "Kill {{ instance: {instance}, write: {write}, side: Side::{side:?}, down: {} }}",
                ms(down)
            ),
            Self::Stop { instance, at, down } => write!(
                f,
                "Stop {{ instance: {instance}, at: {}, down: {} }}",
                ms(at),
                ms(down)
            ),
            Self::Unobserved {
                instance,
                watch,
                event,
            } => write!(
                f,
                "Unobserved {{ instance: {instance}, watch: Watch::{watch:?}, event: {event} }}"
            ),
            Self::Stale { watch, at, lasts } => write!(
                f,
                "Stale {{ watch: Watch::{watch:?}, at: {}, lasts: {} }}",
                ms(at),
                ms(lasts)
            ),
            Self::StaleStart { watch, at, lasts } => write!(
                f,
                "StaleStart {{ watch: Watch::{watch:?}, at: {}, lasts: {} }}",
                ms(at),
                ms(lasts)
            ),
            Self::AnswerLost {
                instance,
                write,
                done,
            } => write!(
                f,
                "AnswerLost {{ instance: {instance}, write: {write}, done: {done} }}"
            ),
            Self::ClockStep { instance, at, by } => write!(
                f,
                "ClockStep {{ instance: {instance}, at: {}, by: {by} }}",
                ms(at)
            ),
            Self::Suspend {
                instance,
                at,
                lasts,
            } => write!(
                f,
                "Suspend {{ instance: {instance}, at: {}, lasts: {} }}",
                ms(at),
                ms(lasts)
            ),
            Self::Freeze {
                instance,
                at,
                lasts,
            } => write!(
                f,
                "Freeze {{ instance: {instance}, at: {}, lasts: {} }}",
                ms(at),
                ms(lasts)
            ),
            Self::TwoLeaders { at, lasts } => {
                write!(f, "TwoLeaders {{ at: {}, lasts: {} }}", ms(at), ms(lasts))
            }
            Self::Partition {
                instance,
                at,
                lasts,
            } => write!(
                f,
                "Partition {{ instance: {instance}, at: {}, lasts: {} }}",
                ms(at),
                ms(lasts)
            ),
            Self::Storm { trouble, at, lasts } => write!(
                f,
                "Storm {{ trouble: Trouble::{trouble:?}, at: {}, lasts: {} }}",
                ms(at),
                ms(lasts)
            ),
            Self::Lagging { watch, at, lasts } => write!(
                f,
                "Lagging {{ watch: Watch::{watch:?}, at: {}, lasts: {} }}",
                ms(at),
                ms(lasts)
            ),
            Self::WatchDelay {
                watch,
                at,
                lasts,
                by,
            } => write!(
                f,
                "WatchDelay {{ watch: Watch::{watch:?}, at: {}, lasts: {}, by: {} }}",
                ms(at),
                ms(lasts),
                ms(by)
            ),
            Self::Expired { watch, at } => {
                write!(f, "Expired {{ watch: Watch::{watch:?}, at: {} }}", ms(at))
            }
            Self::SilentDeath { watch, at } => write!(
                f,
                "SilentDeath {{ watch: Watch::{watch:?}, at: {} }}",
                ms(at)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::explore::singles;

    #[test]
    fn what_is_printed_is_read_again() {
        for fault in singles::examples() {
            assert_eq!(fault.to_string().parse(), Ok(fault));
        }
        assert!("Fault::Kill { instance: 0 }".parse::<Fault>().is_err());
    }
}
