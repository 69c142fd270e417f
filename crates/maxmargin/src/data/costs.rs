//! A cost matrix as text: a row of numbers for each true class, a column for each predicted one.
//!
//! Rows and columns follow the order of the classes, unless a header line with the labels stands first: then they
//! follow it. Numbers are separated by blanks, tabs or commas; `#` starts a comment.
//!
//! ```text
//! low medium high     # the header: needed only where the order is not that of the classes
//! 0   1      4
//! 1   0      1
//! 9   3      0
//! ```

use std::io::{BufRead, BufReader};

use crate::data::input::Input;
use crate::data::labels::Lookup;
use crate::error::{Error, Result};
use crate::tasks::multiclass::Costs;

/// Reads the costs of the classes `words`.
pub fn read(input: Input<'_>, words: &[String]) -> Result<Costs> {
    let name = input.name().to_owned();
    let bad = |line: u64, what: String| Error::Parse { name: name.clone(), line, what };
    let classes = words.len();
    let mut rows: Vec<(u64, Vec<String>)> = Vec::new();
    let mut last = 1;
    for (line, text) in (1..).zip(BufReader::new(input).lines()) {
        let text = text.map_err(|source| Error::io(&name, source))?;
        let text = text.split('#').next().unwrap_or_default();
        let row: Vec<String> = text.split([' ', '\t', ',', '\r']).filter(|w| !w.is_empty()).map(Into::into).collect();
        last = line;
        if row.is_empty() {
            continue;
        }
        if row.len() != classes {
            return Err(bad(line, format!("{} columns for {classes} classes", row.len())));
        }
        rows.push((line, row));
        if rows.len() > classes + 1 {
            return Err(bad(line, format!("too many rows for {classes} classes")));
        }
    }
    if rows.len() < classes {
        return Err(bad(last, format!("{} rows for {classes} classes", rows.len())));
    }
    let order = if rows.len() > classes {
        let (line, header) = rows.remove(0);
        header_order(&header, words).map_err(|what| bad(line, what))?
    } else {
        (0..classes).collect()
    };
    let mut table = vec![0.0; classes * classes];
    for ((line, row), &truth) in rows.iter().zip(&order) {
        for (word, &predicted) in row.iter().zip(&order) {
            match cost(word, truth == predicted) {
                Ok(cost) => table[truth * classes + predicted] = cost,
                Err(what) => {
                    return Err(bad(*line, format!("cost of '{}' for '{}': {what}", words[predicted], words[truth])));
                }
            }
        }
    }
    Costs::table(classes, table)
}

fn cost(word: &str, is_truth: bool) -> std::result::Result<f64, String> {
    match word.parse::<f64>() {
        Ok(cost) if is_truth && cost != 0.0 => Err(format!("{word} (the correct class must cost 0)")),
        Ok(cost) if cost >= 0.0 && cost.is_finite() => Ok(cost + 0.0),
        Ok(_) => Err(format!("{word} (costs must be finite and not negative)")),
        Err(_) => Err(format!("'{word}' is not a number")),
    }
}

/// The class of each column.
fn header_order(header: &[String], words: &[String]) -> std::result::Result<Vec<usize>, String> {
    let lookup = Lookup::new(words);
    let mut seen = vec![false; words.len()];
    let mut order = Vec::with_capacity(words.len());
    for word in header {
        let class = lookup.class(word).ok_or_else(|| format!("the data have no label '{word}'"))? as usize;
        if std::mem::replace(&mut seen[class], true) {
            return Err(format!("label '{word}' appears twice"));
        }
        order.push(class);
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str, words: &[&str]) -> Result<Costs> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        read(Input::new("m", text.as_bytes()).unwrap(), &words)
    }

    #[test]
    fn rows_are_truths_and_columns_predictions() {
        let costs = read_text("# costs\n0 1,2\r\n\n3\t0 4.5\n5 6 0\n", &["a", "b", "c"]).unwrap();
        assert_eq!(costs.as_slice(), [0.0, 1.0, 2.0, 3.0, 0.0, 4.5, 5.0, 6.0, 0.0]);
    }

    #[test]
    fn a_header_sets_the_order() {
        let costs = read_text("c a b\n0 1 2\n3 0 4\n5 6 0\n", &["a", "b", "c"]).unwrap();
        assert_eq!(costs.as_slice(), [0.0, 4.0, 3.0, 6.0, 0.0, 5.0, 1.0, 2.0, 0.0]);
        assert_eq!(read_text("2 1\n0 7\n1 0\n", &["1", "2"]).unwrap().as_slice(), [0.0, 1.0, 7.0, 0.0]);
    }

    #[test]
    fn errors_name_the_line() {
        for (text, message) in [
            ("", "m:1: 0 rows for 2 classes"),
            ("0 1\n", "m:1: 1 rows for 2 classes"),
            ("0 1\n1 0 2\n", "m:2: 3 columns for 2 classes"),
            ("a b\n0 1\n1 0\n1 0\n", "m:4: too many rows for 2 classes"),
            ("0 1\n\nx 0\n", "m:3: cost of 'a' for 'b': 'x' is not a number"),
            ("0 -1\n1 0\n", "m:1: cost of 'b' for 'a': -1 (costs must be finite and not negative)"),
            ("0 inf\n1 0\n", "m:1: cost of 'b' for 'a': inf (costs must be finite and not negative)"),
            ("0 nan\n1 0\n", "m:1: cost of 'b' for 'a': nan (costs must be finite and not negative)"),
            ("0 1\n1 2\n", "m:2: cost of 'b' for 'b': 2 (the correct class must cost 0)"),
            ("a c\n0 1\n1 0\n", "m:1: the data have no label 'c'"),
            ("a a\n0 1\n1 0\n", "m:1: label 'a' appears twice"),
        ] {
            assert_eq!(read_text(text, &["a", "b"]).expect_err(message).to_string(), message);
        }
    }
}
