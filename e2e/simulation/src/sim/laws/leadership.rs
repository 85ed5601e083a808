//! Only a leader with a valid lease writes, and not after it has been told to stop; two never may. A process has at most one write
//! of a kind under way to an object: one of a node's taints and annotations, one of its conditions, one of a rule's status.

use super::{incidents, seconds};
use crate::Kind;
use crate::sim::fault::Incident;
use crate::sim::law::{Law, Moment, Report};

#[derive(Default)]
pub(super) struct Leadership;

impl Law for Leadership {
    fn check(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        let now = moment.cluster.now();
        // A machine that was suspended learns only later that its lease has run out.
        let may_be_deceived = |what| matches!(what, Incident::TwoLeaders | Incident::Suspend(_));
        let leads = |instance: &&Report| instance.leads_until.is_some_and(|until| now < until);
        if moment.instances.iter().filter(leads).count() > 1
            && !incidents(moment).any(|(what, ..)| may_be_deceived(what))
        {
            return Err(format!("two instances lead at {}", seconds(now)));
        }
        for (instance, report) in moment.instances.iter().enumerate() {
            // A rule that is recreated under its name may be written while a write to the old one is under way.
            let mut doubled = report.doubled.iter();
            if let Some((at, key)) = doubled.find(|(_, key)| key.kind == Kind::Node) {
                let at = seconds(*at);
                return Err(format!(
                    "instance {instance} sent a write to {key} at {at}, and another one was under way"
                ));
            }
            if let Some((at, key)) = report.unasked.first() {
                let at = seconds(*at);
                return Err(format!(
                    "instance {instance} sent a write to {key} at {at}, and does not lead or was told to stop"
                ));
            }
        }
        Ok(())
    }
}
