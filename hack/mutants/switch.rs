//! What the copy with mutants has beside the product's code: `src/mutants.rs`. All mutants are in one program, each behind a switch.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// No mutant is chosen. Then the switches that the program passes are written down: a test can notice no other mutant.
const NONE: u32 = 0;
const MOST: usize = 1 << 16;

/// Whether this mutant is chosen.
pub(crate) fn is(mutant: u32) -> bool {
    static CHOSEN: OnceLock<u32> = OnceLock::new();
    let chosen = *CHOSEN.get_or_init(|| match std::env::var("MUTANT") {
        Ok(mutant) => mutant.parse().expect("MUTANT is a number"),
        Err(_) => NONE,
    });
    if chosen == NONE {
        pass(mutant);
    }
    chosen == mutant
}

/// Allocates nothing after the first time, since some tests count allocations.
fn pass(mutant: u32) {
    static PASSED: [AtomicBool; MOST] = [const { AtomicBool::new(false) }; MOST];
    static WRITTEN: OnceLock<Option<File>> = OnceLock::new();
    if PASSED[mutant as usize].swap(true, Ordering::Relaxed) {
        return;
    }
    let open = |path| OpenOptions::new().append(true).create(true).open(path).ok();
    let written = WRITTEN.get_or_init(|| std::env::var_os("MUTANTS_PASSED").and_then(open));
    if let Some(mut file) = written.as_ref() {
        file.write_all(&mutant.to_le_bytes()).expect("MUTANTS_PASSED can be written");
    }
}

/// An expression, or what its mutant is instead.
macro_rules! of {
    ($mutant:literal, $condition:expr) => {
        $crate::mutants::is($mutant) ^ $condition
    };
    // The right side may do something, and so may be there only once.
    ($mutant:literal, $left:expr, &&, $right:expr) => {{
        let left = $left;
        if left == $crate::mutants::is($mutant) { left } else { $right }
    }};
    ($mutant:literal, $left:expr, ||, $right:expr) => {{
        let left = $left;
        if left != $crate::mutants::is($mutant) { left } else { $right }
    }};
    ($mutant:literal, $left:expr, $operator:tt, $other:tt, $right:expr) => {
        if $crate::mutants::is($mutant) { $left $other $right } else { $left $operator $right }
    };
}
pub(crate) use of;
