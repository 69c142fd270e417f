//! The task `parse` in the program.

pub(crate) mod evaluate;
pub(crate) mod inspect;
pub(crate) mod predict;
mod sentences;
pub(crate) mod train;

use maxmargin::tasks::parsing::{Bracket, Decoded, Parse, Parsing};

use crate::failure::{Failure, Result};
use crate::{memory, text};

/// So much memory is taken without a word.
const UNTOLD: f64 = 1e9;

/// What a sentence of so many words needs in each of some threads: a refusal where that is more than there is, a word where it
/// is much.
fn check_memory(task: &Parsing, place: &str, words: usize, threads: usize, way_out: &str) -> Result<Option<String>> {
    let need = task.bytes(words).map_or(f64::INFINITY, |bytes| bytes as f64 * threads as f64);
    let amount = if need.is_finite() { text::bytes(need) } else { "more than can be counted".to_owned() };
    let symbols = task.grammar().parts().symbols.len();
    let each = if threads > 1 { format!(", one in each of {threads} threads") } else { String::new() };
    let what = format!("the chart of a sentence of {words} words with {symbols} symbols takes {amount}{each}");
    match memory::available() {
        Some(free) if need > 0.75 * free => {
            Err(Failure::Data(format!("{place}: {what}, and {} are free: {way_out}", text::bytes(free))))
        }
        _ => Ok((need > UNTOLD).then(|| format!("{place}: {what}; {way_out}"))),
    }
}

/// What was decoded, as an output of the task.
fn parse(task: &Parsing, decoded: &Decoded) -> Parse {
    let is_phrase = |symbol: u32| symbol < task.grammar().phrases();
    let bracket = |(symbol, span): &(u32, std::ops::Range<usize>)| (*symbol, span.start as u32, span.end as u32);
    let mut brackets: Vec<Bracket> = decoded.nodes.iter().map(bracket).filter(|b| is_phrase(b.0)).collect();
    brackets.sort_unstable();
    Parse::of_brackets(brackets)
}
