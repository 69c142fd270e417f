//! `maxmargin predict` with a model of graphs.

use std::io::Write;
use std::path::Path;

use maxmargin::Error;
use maxmargin::data::graphs::Stream;
use maxmargin::data::input::Input;
use maxmargin::data::svmlight::LabelRule;
use maxmargin::model::GraphLabeller;
use maxmargin::parallel::{Pool, ranges};
use maxmargin::task::Task;
use maxmargin::tasks::factor_graph::GraphScratch;

use super::check_memory;
use crate::failure::Result;
use crate::predict::Args;
use crate::streams::note;
use crate::text::{count, counted};

/// Graphs that are held at a time.
const BATCH: usize = 256;

/// A line for each graph: a JSON list of the labels of its variables.
pub(crate) fn write_all(
    args: &Args,
    model: &GraphLabeller,
    input: Input<'_>,
    pool: &Pool,
    out: &mut dyn Write,
    name: &Path,
) -> Result<()> {
    let (task, source) = (model.task()?, input.name().to_owned());
    let mut stream = Stream::new(input, &model.shape, LabelRule::Optional);
    let (mut graphs, mut unproven) = (0, 0);
    while let Some(batch) = stream.next_batch(BATCH)? {
        let with_lines = batch.graphs.iter().enumerate().map(|(i, graph)| (graph, batch.line(i)));
        check_memory(&task, &source, with_lines, pool.threads())?;
        let parts = pool.map(ranges(batch.len(), 4 * pool.threads()), |range| {
            let (mut text, mut scratch, mut y, mut unproven) = (Vec::new(), GraphScratch::default(), Vec::new(), 0);
            for graph in &batch.graphs[range] {
                task.argmax(&model.weights, graph, None, &mut scratch, &mut y)?;
                unproven += u64::from(!scratch.is_proven());
                serde_json::to_writer(&mut text, &y).expect("numbers become JSON");
                if let Some(found) = scratch.found().filter(|_| args.scores) {
                    // Equal numbers say that the labels are proven; rounding may keep the two apart.
                    let bound = if found.is_proven() { found.value } else { found.bound };
                    write!(text, "\t{}\t{bound}", found.value).expect("memory takes all text");
                }
                text.push(b'\n');
            }
            Ok((text, unproven))
        });
        for part in parts {
            let (text, of_part): (Vec<u8>, u64) = part.map_err(|e: Error| e)?;
            unproven += of_part;
            out.write_all(&text).map_err(|e| Error::io(name, e))?;
        }
        graphs += batch.len() as u64;
        // Whoever pipes graphs in one by one wants the labels one by one.
        out.flush().map_err(|e| Error::io(name, e))?;
    }
    if unproven > 0 {
        let of = counted(graphs, "graph");
        note(&format!("the labels of {} of {of} are not proven to have the highest score", count(unproven)));
    }
    Ok(())
}
