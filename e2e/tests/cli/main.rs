//! `kubectl nodegate` on a real control plane: its output, as the documentation shows it; the permissions it needs; and its
//! errors.

mod answers;
mod failures;
mod first_rule;
mod golden;
mod live;
mod page;
mod rights;
mod shells;
mod startup;
mod terminal;
mod whole;
mod world;
