//! What no machine may do, such as to panic.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// The machine does what none may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defect(pub String);

thread_local! {
    /// Whether a panic on this thread is expected, and told in another way.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Has panics of machines not printed from now on: they are told as what they break.
pub fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                usual(panic);
            }
        }));
    });
}

/// Runs a part of the machine; a panic there is a defect like others.
///
/// # Errors
/// When it panics.
pub fn guarded<T>(part: impl FnOnce() -> T) -> Result<T, Defect> {
    IS_GUARDED.set(true);
    let result = catch_unwind(AssertUnwindSafe(part));
    IS_GUARDED.set(false);
    result.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Defect(format!("panics: {}", text.unwrap_or("(no text)")))
    })
}
