//! Defects of the engine that break no law but must never happen, such as a panic.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// Whether a panic on this thread is expected and reported otherwise.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Silences the panics of the engine: they are reported as broken laws.
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

/// Runs a part of the engine and turns a panic into a defect.
pub fn guarded<T>(part: impl FnOnce() -> T) -> Result<T, String> {
    IS_GUARDED.set(true);
    let result = catch_unwind(AssertUnwindSafe(part));
    IS_GUARDED.set(false);
    result.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        format!("panics: {}", text.unwrap_or("(no text)"))
    })
}
