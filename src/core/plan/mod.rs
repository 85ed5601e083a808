//! One plan per node, in the fewest writes: [`plan()`] plans one taint after another (`plan_taint`): it evaluates the conditions of
//! each rule that names it (`judged`), decides by the table in `decision`, and collects outcomes and writes in the [`NodePlan`].

mod clean_up;
mod deadlines;
mod decision;
mod judged;
mod make;
mod node_plan;
mod outcome;
mod patience;
mod publish;
mod state;
mod taint;
#[cfg(test)]
mod tests;

pub use decision::{Decision, WaitReason};
pub use make::plan;
pub use node_plan::{
    ChangeKind, ConditionChanges, NewCondition, NodePlan, TaintChange, TaintPlan, Urgency,
};
pub use outcome::{ConditionOutcome, Memory, Origin, Outcome, Standing};
pub use patience::is_new;
pub use state::{ClusterState, NodeHistory, NodeState};
