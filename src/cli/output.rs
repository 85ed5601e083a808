//! Standard output, as whoever reads it wants it.

use std::io::{self, ErrorKind, Write};

/// Writes to standard output. Whoever has closed it has seen enough.
pub fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
