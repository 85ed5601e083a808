//! Standard output, as whoever reads it wants it.

use std::io::{self, ErrorKind, Write};

/// Writes to standard output. Whoever has closed it has seen enough.
pub fn write(text: &str) -> io::Result<()> {
    write_on(text).map(drop)
}

/// Writes to standard output; answers whether anybody wants more.
pub fn write_on(text: &str) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true),
    }
}
