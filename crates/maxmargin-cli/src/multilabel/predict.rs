//! `maxmargin predict` with a model of label sets.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use maxmargin::Error;
use maxmargin::data::input::Input;
use maxmargin::data::svmlight::{LabelRule, Stream};
use maxmargin::model::Labeller;
use maxmargin::model::labeller::SetBuffers;
use maxmargin::parallel::{Pool, ranges};

use crate::failure::Result;
use crate::predict::{Args, Strangers};

/// Examples that are held at a time.
const BATCH: usize = 8192;

/// A line for each example: its labels between commas, an empty one for the empty set.
pub(crate) fn write_all(
    args: &Args,
    model: &Labeller,
    input: Input<'_>,
    pool: &Pool,
    out: &mut dyn Write,
    name: &Path,
) -> Result<()> {
    let (predictor, threshold) = (model.predictor()?, args.threshold.unwrap_or(0.0));
    let mut stream = Stream::new(input, LabelRule::Set);
    let mut strangers = Strangers::default();
    while let Some(batch) = stream.next_batch(BATCH)? {
        strangers.look(model.features, &batch.matrix);
        let parts = pool.map(ranges(batch.len(), 4 * pool.threads()), |range| {
            let (mut text, mut buffers, mut set) = (String::new(), SetBuffers::default(), Vec::new());
            for i in range {
                predictor.predict(batch.matrix.row(i), threshold, &mut buffers, &mut set);
                for (at, &label) in set.iter().enumerate() {
                    text.push_str(if at > 0 { "," } else { "" });
                    text.push_str(&model.labels[label as usize]);
                    if args.scores {
                        write!(text, ":{}", buffers.gains[label as usize]).expect("strings take all text");
                    }
                }
                text.push('\n');
            }
            text
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
