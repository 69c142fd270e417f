//! The task `multilabel` in the program.

pub(crate) mod evaluate;
pub(crate) mod inspect;
pub(crate) mod predict;
pub(crate) mod train;

use maxmargin::tasks::multilabel::{Pairs, SetLoss};

use crate::text::counted;

/// The name of a loss, as on the command line.
fn loss_name(loss: SetLoss) -> &'static str {
    match loss {
        SetLoss::Hamming => "hamming",
        SetLoss::F1 => "f1",
    }
}

/// Which pairs have a weight, in words.
pub(crate) fn pairs_in_words(pairs: &Pairs) -> String {
    let some = counted(pairs.len() as u64, "pair");
    match pairs {
        pairs if pairs.is_empty() => "no pairs of labels".to_owned(),
        pairs if pairs.is_all() => format!("all {some} of labels"),
        pairs if pairs.is_forest() => format!("{some} of labels without a loop"),
        _ => format!("{some} of labels"),
    }
}

/// The same with labels for those that the model lacks: these come after all that it knows, each of them missed.
fn with_unseen(set: &[u32], labels: usize, unseen: u32) -> Vec<u32> {
    set.iter().copied().chain((labels as u32..).take(unseen as usize)).collect()
}
