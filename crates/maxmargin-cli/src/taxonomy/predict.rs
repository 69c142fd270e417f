//! `maxmargin predict` with a model of a taxonomy.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use maxmargin::Error;
use maxmargin::data::input::Input;
use maxmargin::data::svmlight::{LabelRule, Stream};
use maxmargin::model::TaxonomyModel;
use maxmargin::parallel::Pool;

use super::over_rows;
use crate::failure::Result;
use crate::predict::{Args, Strangers};

/// Examples that are held at a time.
const BATCH: usize = 8192;

/// A line for each example: the name of its node.
pub(crate) fn write_all(
    args: &Args,
    model: &TaxonomyModel,
    input: Input<'_>,
    pool: &Pool,
    out: &mut dyn Write,
    name: &Path,
) -> Result<()> {
    let (predictor, labels) = (model.predictor()?, model.labels());
    let mut stream = Stream::new(input, LabelRule::Optional);
    let mut strangers = Strangers::default();
    while let Some(batch) = stream.next_batch(BATCH)? {
        strangers.look(model.features, &batch.matrix);
        let parts =
            over_rows(model, &predictor, args.depth_threshold, &batch, pool, |text: &mut String, node, scores| {
                text.push_str(&model.hierarchy.names()[node as usize]);
                if args.scores {
                    for (k, (label, score)) in labels.iter().zip(scores).enumerate() {
                        let gap = if k == 0 { '\t' } else { ' ' };
                        write!(text, "{gap}{label}:{score}").expect("strings take all text");
                    }
                }
                text.push('\n');
            });
        for part in parts {
            out.write_all(part.as_bytes()).map_err(|e| Error::io(name, e))?;
        }
        // Whoever pipes examples in one by one wants the labels one by one.
        out.flush().map_err(|e| Error::io(name, e))?;
    }
    strangers.tell(model.features);
    Ok(())
}
