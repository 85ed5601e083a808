//! The `nodegate` command line.
fn main() {}
