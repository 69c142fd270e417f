//! The task `multilabel` in the program.

pub(crate) mod evaluate;
pub(crate) mod inspect;
pub(crate) mod predict;
pub(crate) mod train;

use maxmargin::tasks::multilabel::{Pairs, SetLoss};

use crate::text::{count, counted};

/// The name of a loss, as on the command line.
fn loss_name(loss: SetLoss) -> &'static str {
    match loss {
        SetLoss::Hamming => "hamming",
        SetLoss::F1 => "f1",
    }
}

/// Which pairs have a weight, in words.
pub(crate) fn pairs_in_words(pairs: &Pairs) -> String {
    let n = count(pairs.len() as u64);
    match pairs {
        pairs if pairs.is_empty() => "no pairs".to_owned(),
        pairs if pairs.is_all() => format!("all {n} pairs"),
        pairs if pairs.is_forest() => format!("{} without a loop", counted(pairs.len() as u64, "pair")),
        _ => counted(pairs.len() as u64, "pair"),
    }
}

/// The same with labels for those that the model lacks: these come after all that it knows, each of them missed.
fn with_unseen(set: &[u32], labels: usize, unseen: u32) -> Vec<u32> {
    set.iter().copied().chain((labels as u32..).take(unseen as usize)).collect()
}
