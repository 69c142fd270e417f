//! `--heldout`: the file, as the task sees it.

use std::path::Path;

use maxmargin::data::input::Input;
use maxmargin::data::labels::Lookup;
use maxmargin::data::svmlight::{self, LabelRule, Labelled};
use maxmargin::parallel::Pool;
use maxmargin::sparse::SparseMatrix;

use crate::dataset::Data;
use crate::failure::{Failure, Result};
use crate::streams::note;
use crate::text::{count, counted};

/// Examples that are not trained on.
pub(crate) struct HeldoutData {
    pub(crate) matrix: SparseMatrix,
    /// None for labels that the training data lack.
    pub(crate) truths: Vec<Option<u32>>,
    pub(crate) checksum: u32,
}

/// Reads the file. What the training data lack is treated as `evaluate` does: such features are left out, such labels
/// are errors.
pub(crate) fn read(path: &Path, data: &Data, pool: &Pool) -> Result<HeldoutData> {
    let examples = svmlight::read(Input::open(path)?, LabelRule::Required, pool)?;
    if examples.is_empty() {
        return Err(Failure::Data(format!("{}: has no examples", path.display())));
    }
    let lookup = Lookup::new(&data.classes.words);
    let class_of_id: Vec<Option<u32>> = examples.labels.names.iter().map(|name| lookup.class(name)).collect();
    let truths: Vec<Option<u32>> = examples.labels.ids.iter().map(|&id| class_of_id[id as usize]).collect();
    let matrix = known_features(&examples, data.features);
    let unknown = truths.iter().filter(|t| t.is_none()).count() as u64;
    if unknown > 0 {
        let all = counted(examples.len() as u64, "held-out example");
        note(&format!("{} of {all} have labels that the training file lacks and count as errors", count(unknown)));
    }
    Ok(HeldoutData { matrix, truths, checksum: examples.checksum })
}

/// The examples without the features that the training data lack, of which it tells.
pub(crate) fn known_features(examples: &Labelled, features: u32) -> SparseMatrix {
    let (mut matrix, mut strange) = (SparseMatrix::new(), 0);
    for i in 0..examples.len() {
        let row = examples.matrix.row(i);
        let known = row.below(features);
        strange += u64::from(known.len() < row.len());
        matrix.push_row(known.iter());
    }
    matrix.set_columns(features);
    if strange > 0 {
        let all = counted(examples.len() as u64, "held-out example");
        note(&format!("{} of {all} have features that the training file lacks; these were left out", count(strange)));
    }
    matrix
}
