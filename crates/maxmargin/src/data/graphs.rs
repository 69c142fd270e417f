//! Factor graphs as JSON lines, one graph a line.
//!
//! `{"domain": 12, "labels": [3, 0], "x": [[0.1, 0.7], {"5": 1}], "factors": {"right": [[0, 1]]}, "factor_x": {"right": [[1]]}}`
//!
//! - `domain`: the number of labels of each variable, or one number for all;
//! - `labels`: one for each variable, from 0;
//! - `x`: features, a row for each variable: a list of values, or a map from numbers of features, from 0, to values. Without it
//!   variables have no features;
//! - `factors`: by template, that is by kind, the variables of each factor, numbered from 0. Factors of a template join as many
//!   variables each, with the same numbers of labels;
//! - `factor_x`: by template, a row of features for each factor; all factors of a template have it, or none.
//!
//! Values are finite, rounded to the nearest f32. Blank lines are skipped.
//!
//! [`read`] takes a training file and learns the [`Shape`] of its graphs; [`read_with`] another file, for graphs of that shape;
//! [`Stream`] goes through one in batches; [`write()`] writes a graph.

mod line;
mod pieces;
mod stream;
mod written;

use crate::data::blocks::{Blocks, Cut};
use crate::data::input::Input;
use crate::data::json_lines::Piece;
use crate::data::svmlight::LabelRule;
use crate::error::Result;
use crate::parallel::Pool;
use crate::tasks::factor_graph::{Graph, Shape};
use line::Line;
use pieces::{Learned, fitted};

pub use stream::Stream;
pub use written::write;

/// Graphs with their labels.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Graphs {
    /// The graphs.
    pub graphs: Vec<Graph>,
    /// By graph, the labels of its variables; empty where it has none ([`LabelRule::Optional`]).
    pub labels: Vec<Vec<u32>>,
    /// CRC-32 of the text (unpacked), by which a model remembers its data; 0 for a batch of a [`Stream`].
    pub checksum: u32,
    lines: Vec<u64>,
}

impl Graphs {
    /// Number of graphs.
    pub fn len(&self) -> usize {
        self.graphs.len()
    }

    /// No graphs?
    pub fn is_empty(&self) -> bool {
        self.graphs.is_empty()
    }

    /// The line, from 1, on which a graph stands.
    pub fn line(&self, example: usize) -> u64 {
        self.lines[example]
    }

    fn push(&mut self, line: u64, (graph, labels): (Graph, Vec<u32>)) {
        self.graphs.push(graph);
        self.labels.push(labels);
        self.lines.push(line);
    }
}

const NO_GRAPHS: &str = "no graphs in the file";

/// Reads a training file with all threads of `pool`, and learns the shape of its graphs. Every graph needs labels. The result
/// does not depend on the number of threads, nor does the error: it is that of the first bad line.
pub fn read(input: Input<'_>, pool: &Pool) -> Result<(Graphs, Shape)> {
    read_cut(input, pool, Cut::default())
}

/// [`read`] in pieces of other sizes: for tests, which show that they do not matter.
#[doc(hidden)]
pub fn read_in_pieces(input: Input<'_>, pool: &Pool, (block, chunk): (usize, usize)) -> Result<(Graphs, Shape)> {
    read_cut(input, pool, Cut { block, chunk })
}

fn read_cut(input: Input<'_>, pool: &Pool, cut: Cut) -> Result<(Graphs, Shape)> {
    let mut blocks = Blocks::new(input, cut);
    let mut learned = Learned::default();
    let parse = |text: &[u8]| Piece::parse(text, |line| Line::parse(line, LabelRule::Required));
    blocks.each_piece(cut, pool, parse, |piece| learned.append(piece))?;
    if learned.is_empty() {
        return Err(blocks.error(learned.lines().max(1), NO_GRAPHS));
    }
    let last = learned.lines();
    let (mut graphs, shape) = learned.finish().map_err(|what| blocks.error(last, what))?;
    graphs.checksum = blocks.checksum();
    Ok((graphs, shape))
}

/// Reads a file of graphs of the shape with all threads of `pool`. Features that the shape lacks are left out; templates and
/// domains that it lacks are errors.
pub fn read_with(input: Input<'_>, shape: &Shape, rule: LabelRule, pool: &Pool) -> Result<Graphs> {
    read_with_cut(input, shape, rule, pool, Cut::default())
}

/// [`read_with`] in pieces of other sizes: for tests.
#[doc(hidden)]
pub fn read_with_in_pieces(
    input: Input<'_>,
    shape: &Shape,
    rule: LabelRule,
    pool: &Pool,
    (block, chunk): (usize, usize),
) -> Result<Graphs> {
    read_with_cut(input, shape, rule, pool, Cut { block, chunk })
}

fn read_with_cut(input: Input<'_>, shape: &Shape, rule: LabelRule, pool: &Pool, cut: Cut) -> Result<Graphs> {
    let mut blocks = Blocks::new(input, cut);
    let (mut graphs, mut lines) = (Graphs::default(), 0);
    let parse = |text: &[u8]| Piece::parse(text, |line| fitted(line, shape, rule));
    blocks.each_piece(cut, pool, parse, |piece| {
        for (line, example) in piece.examples {
            graphs.push(lines + line, example);
        }
        lines += piece.lines;
        piece.error.map_or(Ok(()), |what| Err((lines, what)))
    })?;
    if graphs.is_empty() {
        return Err(blocks.error(lines.max(1), NO_GRAPHS));
    }
    graphs.checksum = blocks.checksum();
    Ok(graphs)
}
