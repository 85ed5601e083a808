//! Chart legends, over as many lines as needed.

use crate::chart::Series;
use crate::number;

/// The length of a line sample in the legend, and the gaps behind it and behind its text.
pub(crate) const SAMPLE: f64 = 16.0;
pub(crate) const GAP: f64 = 5.0;

/// The legend of a chart, line by line.
#[derive(Debug, Clone, PartialEq)]
pub struct Legend {
    pub(crate) lines: Vec<Vec<Entry>>,
    /// How many curves did not fit.
    pub(crate) left_out: usize,
    /// The most characters of a name that fit into a line.
    most: usize,
}

/// A curve in the legend.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Entry {
    /// Its offset in the line.
    pub x: f64,
    pub series: usize,
}

impl Legend {
    /// Breaks it into at most `most` lines of this width, for a font with about this character width. If curves do not fit, the
    /// last line is for the number of those left out.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast saturates, and a line has some hundred characters at most"
    )]
    pub fn new(series: &[Series], width: f64, character: f64, most: usize) -> Self {
        let mut lines: Vec<Vec<Entry>> = Vec::new();
        let mut x = 0.0;
        for (index, series) in series.iter().enumerate() {
            let length = SAMPLE + GAP + character * number(series.name.chars().count());
            match lines.last_mut() {
                Some(line) if x + length <= width => line.push(Entry { x, series: index }),
                _ => {
                    x = 0.0;
                    lines.push(vec![Entry { x, series: index }]);
                }
            }
            x += length + 2.0 * GAP;
        }
        if lines.len() > most {
            lines.truncate(most.saturating_sub(1));
        }
        let shown: usize = lines.iter().map(Vec::len).sum();
        Self {
            lines,
            left_out: series.len() - shown,
            most: ((width - SAMPLE - GAP) / character) as usize,
        }
    }

    /// The name of a curve, without its middle where it is longer than a line: its end often tells it from others.
    pub(crate) fn name(&self, series: &Series) -> String {
        let name: Vec<char> = series.name.chars().collect();
        if name.len() <= self.most {
            return series.name.clone();
        }
        let end = self.most / 2;
        let begin = self.most.saturating_sub(end + 1);
        let (begin, end) = (&name[..begin], &name[name.len() - end..]);
        begin.iter().chain(&['…']).chain(end).collect()
    }

    /// The number of its lines.
    pub fn height(&self) -> usize {
        self.lines.len() + usize::from(self.left_out > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Style;

    fn curves(names: &[&str]) -> Vec<Series> {
        let curve = |name: &&str| Series {
            name: (*name).to_owned(),
            colour: 0,
            points: Vec::new(),
            ranges: Vec::new(),
            style: Style::Line,
        };
        names.iter().map(curve).collect()
    }

    /// The curves of each line.
    fn lines(legend: &Legend) -> Vec<Vec<usize>> {
        let line = |line: &Vec<Entry>| line.iter().map(|entry| entry.series).collect();
        legend.lines.iter().map(line).collect()
    }

    #[test]
    fn what_does_not_fit_goes_on_in_the_next_line() {
        let curves = curves(&["1234", "1234", "a long name", "1234"]);
        // Two short entries take 25 each, with 10 between them.
        let legend = Legend::new(&curves, 60.0, 1.0, 9);
        assert_eq!(lines(&legend), [vec![0, 1], vec![2], vec![3]]);
        assert!((legend.lines[0][1].x - 35.0).abs() < 1e-9, "{legend:?}");
        assert_eq!((legend.height(), legend.left_out), (3, 0));
    }

    #[test]
    fn where_there_is_no_room_the_last_line_is_for_the_number_of_those_left_out() {
        let curves = curves(&["1234", "1234", "1234", "1234"]);
        let legend = Legend::new(&curves, 30.0, 1.0, 3);
        assert_eq!(lines(&legend), [vec![0], vec![1]]);
        assert_eq!((legend.height(), legend.left_out), (3, 2));
    }

    #[test]
    fn a_name_longer_than_a_line_is_shown_without_its_middle() {
        let curves = curves(&["0123456789 p50", "short"]);
        let legend = Legend::new(&curves, SAMPLE + GAP + 11.0, 1.0, 9);
        assert_eq!(legend.name(&curves[0]), "01234…9 p50");
        assert_eq!(legend.name(&curves[1]), "short");
    }
}
