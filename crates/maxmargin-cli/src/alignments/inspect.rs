//! `maxmargin inspect` with a model of alignments.

use maxmargin::model::{PairAligner, Prior, TaskKind};
use maxmargin::problem::Formulation;
use maxmargin::tasks::alignment::{AlignLoss, Alignment, Gaps, NONE};
use serde::Serialize;

use super::loss_name;
use crate::failure::Result;
use crate::inspect::{Training, about};
use crate::streams::{print, print_json};
use crate::summary::Described;
use crate::text::table;

/// Letters up to which the whole table is shown in the text.
const SHOWN: usize = 26;

/// The JSON object.
#[derive(Serialize)]
struct Contents<'m> {
    task: TaskKind,
    letters: &'m str,
    marks: &'m str,
    alignment: maxmargin::inference::align::Reach,
    gaps: Gaps,
    loss: AlignLoss,
    #[serde(flatten)]
    formulation: Formulation,
    data_checksum: String,
    training: Training<'m>,
    /// The known scores that training began with, and how many times they are in the weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    prior: Option<&'m Prior>,
    tied: bool,
    /// The scores of the first column of a gap, and of every further one.
    gap_open: f64,
    gap_extend: f64,
    /// A row for each letter of x, a column for each letter of z.
    substitutions: Vec<Vec<f64>>,
    /// The same for marks, and the scores of gaps by the mark of the residue that faces them, besides.
    mark_pairs: Vec<Vec<f64>>,
    mark_gaps: Vec<MarkGap>,
    strongest: Vec<Pair>,
}

#[derive(Serialize)]
struct MarkGap {
    mark: char,
    open: f64,
    extend: f64,
}

/// The weight of a match.
#[derive(Serialize)]
struct Pair {
    x: char,
    z: char,
    weight: f64,
}

/// The weights of matches, of letters or of marks.
fn pairs(model: &PairAligner, task: &Alignment, are_marks: bool) -> Vec<Vec<f64>> {
    let count = if are_marks { model.marks.chars().count() } else { model.letters.chars().count() } as u8;
    let weight = |a: u8, b: u8| {
        let (letters, marks) = if are_marks { ((NONE, NONE), (a, b)) } else { ((a, b), (NONE, NONE)) };
        task.match_score(&model.weights, letters, marks)
    };
    (0..count).map(|a| (0..count).map(|b| weight(a, b)).collect()).collect()
}

fn mark_gaps(model: &PairAligner, task: &Alignment) -> Vec<MarkGap> {
    let (open, extend) = task.gap_scores(&model.weights, NONE);
    let of = |(code, mark): (u8, char)| {
        let (own_open, own_extend) = task.gap_scores(&model.weights, code);
        MarkGap { mark, open: own_open - open, extend: own_extend - extend }
    };
    (0..).zip(model.marks.chars()).map(of).collect()
}

/// The largest weights in absolute value.
fn strongest(model: &PairAligner, table: &[Vec<f64>], top: usize) -> Vec<Pair> {
    let letters: Vec<char> = model.letters.chars().collect();
    let cells = table.iter().enumerate().flat_map(|(a, row)| row.iter().enumerate().map(move |(b, &w)| (a, b, w)));
    let mut cells: Vec<(usize, usize, f64)> = cells.filter(|cell| cell.2 != 0.0).collect();
    cells.sort_by(|a, b| b.2.abs().total_cmp(&a.2.abs()).then((a.0, a.1).cmp(&(b.0, b.1))));
    cells.into_iter().take(top).map(|(a, b, weight)| Pair { x: letters[a], z: letters[b], weight }).collect()
}

pub(crate) fn run(model: &PairAligner, top: usize, json: bool) -> Result<()> {
    let task = model.task()?;
    let substitutions = pairs(model, &task, false);
    let (gap_open, gap_extend) = task.gap_scores(&model.weights, NONE);
    if !json {
        return print(&in_words(model, &task, &substitutions, (gap_open, gap_extend), top));
    }
    print_json(&Contents {
        task: TaskKind::Align,
        letters: &model.letters,
        marks: &model.marks,
        alignment: model.reach,
        gaps: model.gaps,
        loss: model.loss,
        formulation: model.formulation,
        data_checksum: format!("{:08x}", model.data_checksum),
        training: Training::of(&model.summary),
        prior: model.prior.as_ref(),
        tied: model.is_tied,
        gap_open,
        gap_extend,
        strongest: strongest(model, &substitutions, top),
        substitutions,
        mark_pairs: pairs(model, &task, true),
        mark_gaps: mark_gaps(model, &task),
    })
}

fn signed(w: f64) -> String {
    if w == 0.0 { "0".to_owned() } else { format!("{w:+.2}") }
}

/// A table with its letters.
fn lettered(letters: &str, rows: &[Vec<f64>]) -> String {
    let mut cells = vec![std::iter::once(String::new()).chain(letters.chars().map(String::from)).collect::<Vec<_>>()];
    cells.extend(letters.chars().zip(rows).map(|(letter, row)| {
        std::iter::once(letter.to_string()).chain(row.iter().map(|&w| signed(w))).collect::<Vec<_>>()
    }));
    table(&cells)
}

fn in_words(
    model: &PairAligner,
    task: &Alignment,
    substitutions: &[Vec<f64>],
    (open, extend): (f64, f64),
    top: usize,
) -> String {
    let mut text = vec![about(&Described::pair_aligner(model), loss_name(model.loss), model.data_checksum)];
    if top == 0 {
        return text.concat();
    }
    text.push(match model.gaps {
        Gaps::Linear => format!("\na column of a gap scores {open:+.3}\n"),
        Gaps::Affine => format!("\nthe first column of a gap scores {open:+.3}, every further one {extend:+.3}\n"),
    });
    if !model.marks.is_empty() {
        let mut rows = vec![["mark", "first column", "further ones"].map(str::to_owned).to_vec()];
        let row = |gap: &MarkGap| vec![gap.mark.to_string(), signed(gap.open), signed(gap.extend)];
        rows.extend(mark_gaps(model, task).iter().map(row));
        text.push(format!("\nand besides, by the mark of the residue that faces it\n{}", table(&rows)));
        let what = "matches of marks (rows: of x, columns: of z)";
        text.push(format!("\n{what}\n{}", lettered(&model.marks, &pairs(model, task, true))));
    }
    if substitutions.len() <= SHOWN {
        let what = "matches (rows: letter of x, columns: of z)";
        text.push(format!("\n{what}\n{}", lettered(&model.letters, substitutions)));
    }
    let mut rows = vec![["x", "z", "weight"].map(str::to_owned).to_vec()];
    let strongest = strongest(model, substitutions, top);
    rows.extend(strongest.iter().map(|p| vec![p.x.to_string(), p.z.to_string(), format!("{:+.3}", p.weight)]));
    text.push(format!("\nstrongest matches\n{}", table(&rows)));
    text.concat()
}
