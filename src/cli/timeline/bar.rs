//! Durations as text and as bars.

/// Blocks of one to eight eighths of a character, filled from the left.
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// A duration as text, to the second: nodes and conditions are stamped with whole seconds.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is not negative there, and no node takes longer than a u64 has seconds"
)]
pub(crate) fn length(seconds: f64) -> String {
    if seconds <= -0.5 {
        return format!("-{}", length(-seconds));
    }
    let whole = seconds.max(0.0).round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (hours, minutes, _) => format!("{hours}h{minutes:02}m"),
    }
}

/// A bar between two fractions of the width, each from 0 to 1; always visible.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a terminal is no wider than a few hundred characters, and all of it is cut to that"
)]
pub(super) fn bar(from: f64, to: f64, width: usize) -> String {
    let eighths = |part: f64| (part.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    // A bar begins at a whole character, since no block is filled from the right.
    let begin = (eighths(from) / 8).min(width.saturating_sub(1));
    let end = eighths(to).max(begin * 8 + 1);
    let (full, rest) = (end / 8, end % 8);
    let mut bar = " ".repeat(begin);
    bar.extend(std::iter::repeat_n(EIGHTHS[7], full.saturating_sub(begin)));
    if rest > 0 {
        bar.push(EIGHTHS[rest - 1]);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_as_precise_as_its_stamps() {
        for (seconds, expected) in [
            (0.0, "0s"),
            (-0.3, "0s"),
            (4.26, "4s"),
            (59.6, "1m00s"),
            (125.4, "2m05s"),
            (7260.0, "2h01m"),
            (-3.0, "-3s"),
        ] {
            assert_eq!(length(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn a_bar_stays_within_its_width() {
        for (from, to, expected) in [
            (0.0, 1.0, "████"),
            (0.0, 0.0, "▏"),
            (0.5, 0.5, "  ▏"),
            (0.0, 0.56, "██▎"),
            (1.0, 1.0, "   █"),
            (0.25, 0.75, " ██"),
        ] {
            assert_eq!(bar(from, to, 4), expected, "{from} {to}");
        }
    }
}
