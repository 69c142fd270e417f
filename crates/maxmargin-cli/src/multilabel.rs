//! The task `multilabel` in the program.

pub(crate) mod evaluate;
pub(crate) mod inspect;
pub(crate) mod predict;
pub(crate) mod train;

use maxmargin::model::Labeller;
use maxmargin::model::labeller::SetBuffers;
use maxmargin::parallel::{Pool, ranges};
use maxmargin::sparse::SparseMatrix;
use maxmargin::tasks::multilabel::{Pairs, SetLoss};

use crate::failure::Result;
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

/// The best set of each row.
pub(crate) fn sets(model: &Labeller, rows: &SparseMatrix, threshold: f64, pool: &Pool) -> Result<Vec<Vec<u32>>> {
    over_rows(model, rows, threshold, pool, |all: &mut Vec<Vec<u32>>, set, _| all.push(set.to_vec()))
}

/// By row and label: what it gains, or would gain, beside the others of the best set.
pub(crate) fn gains(model: &Labeller, rows: &SparseMatrix, pool: &Pool) -> Result<Vec<f64>> {
    over_rows(model, rows, 0.0, pool, |all: &mut Vec<f64>, _, gains| all.extend(gains))
}

/// Gathers something of each row, of its set and the gains of all labels.
fn over_rows<V: Clone + Send>(
    model: &Labeller,
    rows: &SparseMatrix,
    threshold: f64,
    pool: &Pool,
    add: impl Fn(&mut Vec<V>, &[u32], &[f64]) + Sync,
) -> Result<Vec<V>> {
    let predictor = model.predictor()?;
    let parts = pool.map(ranges(rows.rows(), 4 * pool.threads()), |range| {
        let (mut all, mut buffers, mut set) = (Vec::new(), SetBuffers::default(), Vec::new());
        for i in range {
            predictor.predict(rows.row(i), threshold, &mut buffers, &mut set);
            add(&mut all, &set, &buffers.gains);
        }
        all
    });
    Ok(parts.concat())
}
