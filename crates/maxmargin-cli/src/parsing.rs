//! The task `parse` in the program.

pub(crate) mod evaluate;
pub(crate) mod inspect;
pub(crate) mod predict;
pub(crate) mod sentences;
pub(crate) mod train;

use maxmargin::tasks::parsing::Parsing;

use crate::failure::{Failure, Result};
use crate::{memory, text};

/// So much memory is taken without a word.
const UNTOLD: f64 = 1e9;

/// What the longest of some sentences need, of which each thread has one at a time: a refusal where that is more than there
/// is, a word where it is much. `sentences`: their numbers of words and lines. Those that are too long for any chart take none.
fn check_memory(
    task: &Parsing,
    name: &str,
    sentences: impl Iterator<Item = (usize, u64)>,
    threads: usize,
    way_out: &str,
) -> Result<Option<String>> {
    let mut longest: Vec<(usize, u64)> = sentences.filter(|(words, _)| task.has_room(*words)).collect();
    longest.sort_by_key(|&(words, line)| (std::cmp::Reverse(words), line));
    longest.truncate(threads);
    let Some(&(words, line)) = longest.first() else { return Ok(None) };
    let need: f64 = longest.iter().filter_map(|(words, _)| task.bytes(*words)).map(|bytes| bytes as f64).sum();
    let symbols = task.grammar().parts().symbols.len();
    let of = match longest.len() {
        1 => format!("the chart of a sentence of {words} words"),
        n => format!("the charts of {n} sentences (one in each thread) of up to {words} words"),
    };
    let (place, amount) = (format!("{name}:{line}"), text::bytes(need));
    let verb = if longest.len() == 1 { "takes" } else { "take" };
    let what = format!("{of} with {symbols} symbols {verb} {amount}");
    match memory::available() {
        Some(free) if need > 0.75 * free => {
            let free = text::bytes(free);
            Err(Failure::Data(format!(
                "{place}: {what}; of the {free} that are free, three quarters may be taken: {way_out}"
            )))
        }
        _ => Ok((need > UNTOLD).then(|| format!("{place}: {what}; {way_out}"))),
    }
}
