//! The columns of a table: which are shown where there is no room for all, and how wide they are.

use super::line::{Line, Look};

/// The blanks between two columns.
const GAP: usize = 3;
/// The least width that a column of sentences is given while others can go.
const BROKEN: usize = 24;
/// The blanks before a cell that stands below its row.
const BELOW: usize = 2;

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    head: &'static str,
    /// Where there is no room for all, the column with the highest number goes first; 0 stays.
    goes: u8,
    /// Whether its cells are sentences, which can be broken.
    wraps: bool,
}

impl Column {
    /// A column that always stays.
    pub(crate) const fn new(head: &'static str) -> Self {
        Self {
            head,
            goes: 0,
            wraps: false,
        }
    }

    /// A column that goes before those with lower numbers.
    pub(crate) const fn goes(self, goes: u8) -> Self {
        Self { goes, ..self }
    }

    /// A column of sentences.
    pub(crate) const fn wraps(self) -> Self {
        Self {
            wraps: true,
            ..self
        }
    }
}

/// The layout of a table: what is shown, and how wide.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Layout {
    /// The index of each shown column, and its width.
    shown: Vec<(usize, usize)>,
    /// The column whose cells stand below their rows, since there is no room beside the others.
    below: Option<usize>,
}

/// The rows with their heads as lines, for a page of this width. Where that is not enough, columns go, those that say nothing
/// first, unless `all` are wanted; then sentences are broken within their column, or stand below their row.
pub(crate) fn wrapped(
    columns: &[Column],
    rows: &[Vec<Line>],
    width: Option<usize>,
    all: bool,
) -> Vec<Line> {
    let layout = Layout::of(columns, rows, width, if all { None } else { Some(BROKEN) });
    let rows = with_heads(columns, rows);
    rows.iter()
        .flat_map(|row| {
            let mut lines = layout.row(row);
            if let Some(cell) = layout.below.and_then(|below| row.get(below)) {
                let room = width.map_or(usize::MAX, |width| width.saturating_sub(BELOW));
                let cell = cell.wrapped(room, room).into_iter();
                lines.extend(cell.map(|line| Line::from(" ".repeat(BELOW)).then(line)));
            }
            lines
        })
        .collect()
}

/// The rows, after a row of heads if there are any.
fn with_heads(columns: &[Column], rows: &[Vec<Line>]) -> Vec<Vec<Line>> {
    let heads = columns.iter();
    let heads: Vec<_> = heads
        .map(|column| Line::new().with(Look::Faint, column.head))
        .collect();
    let has_heads = heads.iter().any(|head| !head.is_empty());
    let heads = has_heads.then_some(heads);
    heads.into_iter().chain(rows.iter().cloned()).collect()
}

impl Layout {
    /// `sentences`: columns go until each column of sentences is this wide; without it, none goes.
    fn of(
        columns: &[Column],
        rows: &[Vec<Line>],
        width: Option<usize>,
        sentences: Option<usize>,
    ) -> Self {
        let widest = |column: usize, of: fn(&Line) -> usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            let head = columns[column].head.chars().count();
            cells.map(of).chain([head]).max().unwrap_or_default()
        };
        let natural = |column: usize| widest(column, Line::len);
        // The least that a column needs, and what it should have.
        let least = |column: usize| {
            if columns[column].wraps {
                widest(column, Line::longest_word)
            } else {
                natural(column)
            }
        };
        let readable =
            |column: usize| least(column).max(natural(column).min(sentences.unwrap_or_default()));
        let is_blank = |column: usize| {
            let mut cells = rows.iter().filter_map(|row| row.get(column));
            cells.all(Line::is_blank)
        };
        let Some(width) = width else {
            let all = 0..columns.len();
            return Self {
                shown: all.map(|it| (it, natural(it))).collect(),
                below: None,
            };
        };
        let needed = |shown: &[usize], of: &dyn Fn(usize) -> usize| {
            let gaps = GAP * shown.len().saturating_sub(1);
            shown.iter().map(|it| of(*it)).sum::<usize>() + gaps
        };
        let fitting = |mut shown: Vec<usize>| {
            while sentences.is_some() && needed(&shown, &readable) > width {
                let going = shown.iter().filter(|it| columns[**it].goes > 0);
                let Some(first) = going.max_by_key(|it| (is_blank(**it), columns[**it].goes))
                else {
                    break;
                };
                let first = *first;
                shown.retain(|it| *it != first);
            }
            shown
        };
        let mut shown = fitting((0..columns.len()).collect());
        let last = shown.last().copied().filter(|it| columns[*it].wraps);
        let below = last.filter(|_| shown.len() > 1 && needed(&shown, &least) > width);
        if let Some(below) = below {
            shown = fitting((0..columns.len()).filter(|it| *it != below).collect());
        }
        let mut spare = width.saturating_sub(needed(&shown, &least));
        let shown = shown.into_iter().map(|column| {
            let wanted = natural(column) - least(column);
            let more = wanted.min(spare);
            spare -= more;
            (column, least(column) + more)
        });
        Self {
            shown: shown.collect(),
            below,
        }
    }

    /// A row as lines.
    fn row(&self, row: &[Line]) -> Vec<Line> {
        let cells = self.shown.iter().map(|(column, width)| {
            let cell = row.get(*column).cloned().unwrap_or_default();
            (cell.wrapped(*width, *width), *width)
        });
        let cells: Vec<(Vec<Line>, usize)> = cells.collect();
        let height = cells.iter().map(|(lines, _)| lines.len()).max();
        let line = |index: usize| {
            let mut line = Line::new();
            let mut blanks = 0;
            for (lines, width) in &cells {
                let cell = lines.get(index).cloned().unwrap_or_default();
                let length = cell.len();
                if length > 0 {
                    line = line.then(Line::from(" ".repeat(blanks))).then(cell);
                    blanks = 0;
                }
                blanks += width.saturating_sub(length) + GAP;
            }
            line
        };
        (0..height.unwrap_or_default()).map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        Column::new("NAME"),
        Column::new("AGE").goes(1),
        Column::new("BAD").goes(2),
        Column::new("WHY").wraps(),
    ];

    fn text(width: Option<usize>, all: bool, bad: &str, why: &str) -> Vec<String> {
        let row = ["node-1", "5s", bad, why].map(Line::from).to_vec();
        let lines = wrapped(&COLUMNS, &[row], width, all);
        let text = |line: &Line| line.pieces().map(|(_, text)| text).collect();
        lines.iter().map(text).collect()
    }

    #[test]
    fn columns_go_by_rank_and_what_says_nothing_goes_first() {
        let why = "the pod is not Ready, and nobody knows why that is";
        let wide = ["NAME     AGE   BAD   WHY", "node-1   5s    3     "];
        let wide = [wide[0].to_owned(), format!("{}{why}", wide[1])];
        assert_eq!(text(None, false, "3", why), wide);
        assert_eq!(text(Some(80), false, "3", why), wide);
        let expected = [
            "NAME     AGE   WHY",
            "node-1   5s    the pod is not Ready, and",
            "               nobody knows why that is",
        ];
        assert_eq!(text(Some(44), false, "0", why), expected);
        assert_eq!(text(Some(40), false, "3", why), expected);
        let expected = [
            "NAME     WHY",
            "node-1   the pod is not Ready,",
            "         and nobody knows why",
            "         that is",
        ];
        assert_eq!(text(Some(33), false, "3", why), expected);
    }

    #[test]
    fn a_sentence_with_a_long_word_stands_below_its_row() {
        let why = "it waits for daemonset.nodegate.dev/kube-system.cilium";
        let expected = [
            "NAME     AGE   BAD",
            "  WHY",
            "node-1   5s    3",
            "  it waits for",
            "  daemonset.nodegate.dev/kube-system.cilium",
        ];
        assert_eq!(text(Some(45), true, "3", why), expected);
        assert_eq!(text(Some(45), false, "3", why), expected);
    }
}
