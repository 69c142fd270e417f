//! Random trees as text.

use std::fmt::Write as _;

use proptest::prelude::*;

/// A tree whose tags and words come from `leaf`: how many brackets open before each word, and close after it. No phrase is
/// over itself.
pub(crate) fn tree<L: Strategy<Value = String>>(leaf: L) -> impl Strategy<Value = String> {
    proptest::collection::vec((0_usize..4, 0_usize..4, leaf), 1..12).prop_map(|words| {
        let (mut text, mut open) = (String::from("(S"), 1);
        for (begin, end, leaf) in words {
            (0..begin).for_each(|at| write!(text, " (L{}", open + at).unwrap());
            write!(text, " ({leaf})").unwrap();
            open += begin;
            let end = end.min(open - 1);
            text += &")".repeat(end);
            open -= end;
        }
        text + &")".repeat(open)
    })
}
