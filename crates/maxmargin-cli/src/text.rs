//! Numbers and tables for people.

use maxmargin::numeric::{log10, power};

/// Six significant digits, without trailing zeros.
pub(crate) fn number(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return format!("{x}");
    }
    let magnitude = log10(x.abs()).floor() as i32;
    if !(-4..9).contains(&magnitude) {
        return format!("{x:.4e}");
    }
    let places = (5 - magnitude).max(0) as usize;
    let text = format!("{x:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// The same, rounded down: what is said to be a lower bound must be one.
pub(crate) fn rounded_down(x: f64) -> String {
    let is_above = |text: &str| text.parse::<f64>().is_ok_and(|shown| shown > x);
    let nearest = number(x);
    if !is_above(&nearest) {
        return nearest;
    }
    // A unit of the last digit that is shown, of which there are five where the exponent is.
    let lower = number(x - x.abs() * 1e-5);
    let digit = power(10.0, log10(x.abs()).floor() as i32 - 5);
    let lowered = number(x - digit);
    if is_above(&lowered) { lower } else { lowered }
}

/// Thousands apart: 581,012.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share of 1.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

/// `95.80 % (1,916 of 2,000 variables)`
pub(crate) fn share_of(share: f64, all: u64, noun: &str) -> String {
    format!("{} ({} of {})", percent(share), count((share * all as f64).round() as u64), counted(all, noun))
}

/// `1 round`, `2 rounds`.
pub(crate) fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// From milliseconds to hours.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 0.9995 => format!("{:.0} ms", 1e3 * s),
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 99.5 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Bytes as kB, MB or GB.
pub(crate) fn bytes(b: f64) -> String {
    match b {
        b if b < 1e6 => format!("{:.1} kB", b / 1e3),
        b if b < 1e9 => format!("{:.0} MB", b / 1e6),
        b => format!("{:.1} GB", b / 1e9),
    }
}

/// The first labels of a long list.
pub(crate) fn labels(words: &[String]) -> String {
    const MOST: usize = 12;
    let shown = words.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(" ");
    if words.len() > MOST { format!("{shown} ... ({} in all)", count(words.len() as u64)) } else { shown }
}

/// `name value` lines with the values below each other.
pub(crate) fn fields(fields: &[(&str, String)]) -> String {
    let width = fields.iter().map(|f| f.0.len()).max().unwrap_or(0);
    fields.iter().map(|(name, value)| [&format!("{name:width$}"), "  ", value, "\n"].concat()).collect()
}

/// Columns as wide as their widest cell: the first to the left, the others to the right.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (c, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let blanks = " ".repeat(width - cell.chars().count());
            line += &if c == 0 { [cell, blanks.as_str()].concat() } else { ["  ", &blanks, cell].concat() };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// A row of [`label_table`]: a label, how often it is true and predicted, and three figures from 0 to 1.
pub(crate) type LabelRow = (String, [u64; 2], [Option<f64>; 3]);

/// A table of the figures of labels. `header`: what the labels are, and the last of the figures.
pub(crate) fn label_table(header: [&str; 2], rows: impl Iterator<Item = LabelRow>) -> String {
    let share = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:.4}"));
    let [what, last] = header;
    let mut cells = vec![[what, "true", "predicted", "precision", "recall", last].map(str::to_owned).to_vec()];
    cells.extend(rows.map(|(label, counts, figures)| {
        [vec![label], counts.map(count).to_vec(), figures.map(share).to_vec()].concat()
    }));
    table(&cells)
}

/// What stands below a table of `shown` of all things.
pub(crate) fn and_more(all: usize, shown: usize, noun: &str) -> String {
    match all.saturating_sub(shown) {
        0 => String::new(),
        n => format!("... and {} more; see --json\n", counted(n as u64, noun)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (x, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (-0.25, "-0.25"),
            (33_470.612_3, "33470.6"),
            (637_750_000.4, "637750000"),
            (1e12, "1.0000e12"),
            (0.000_123_456_78, "0.000123457"),
            (1e-7, "1.0000e-7"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(number(x), text);
        }
        assert_eq!([count(7), count(1000), count(581_012)], ["7", "1,000", "581,012"]);
        assert_eq!([duration(0.04), duration(75.0), duration(600.0)], ["40 ms", "75 s", "10 min"]);
    }

    #[test]
    fn cells_stand_below_each_other() {
        let rows = [vec![String::new(), "a".to_owned()], vec!["ä".to_owned(), "100".to_owned()]];
        assert_eq!(table(&rows), "     a\nä  100\n");
    }
}
