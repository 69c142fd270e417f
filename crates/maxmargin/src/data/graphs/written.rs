//! Graphs as text.

use std::io::{self, Write};

use crate::data::number::write_f32;
use crate::sparse::{SparseMatrix, SparseView};
use crate::tasks::factor_graph::{Graph, Shape};

/// Writes one graph of the shape as a line. What is read back with [`read_with`](super::read_with) and the same shape is the
/// same graph. Values get the fewest digits that read back as the same f32.
pub fn write(out: &mut impl Write, shape: &Shape, graph: &Graph, labels: Option<&[u32]>) -> io::Result<()> {
    let has_features = graph.features.columns() > 0;
    out.write_all(b"{\"domain\":")?;
    match graph.domains.as_slice() {
        // Something else must tell the number of variables.
        [first, others @ ..] if (has_features || labels.is_some()) && others.iter().all(|other| other == first) => {
            write!(out, "{first}")?;
        }
        domains => write_list(out, domains)?,
    }
    if let Some(labels) = labels {
        out.write_all(b",\"labels\":")?;
        write_list(out, labels)?;
    }
    if has_features {
        out.write_all(b",\"x\":")?;
        write_rows(out, &graph.features)?;
    }
    let present = || shape.templates.iter().zip(&graph.factors).filter(|(_, factors)| !factors.scopes.is_empty());
    let mut start = ",\"factors\":{";
    for (template, factors) in present() {
        out.write_all(start.as_bytes())?;
        write_name(out, &template.name)?;
        out.write_all(b"[")?;
        for (at, scope) in factors.scopes.chunks(template.domains.len().max(1)).enumerate() {
            out.write_all(if at > 0 { b"," } else { b"" })?;
            write_list(out, scope)?;
        }
        out.write_all(b"]")?;
        start = ",";
    }
    out.write_all(if start == "," { b"}" } else { b"" })?;
    let mut start = ",\"factor_x\":{";
    for (template, factors) in present() {
        let Some(rows) = &factors.features else { continue };
        out.write_all(start.as_bytes())?;
        write_name(out, &template.name)?;
        write_rows(out, rows)?;
        start = ",";
    }
    out.write_all(if start == "," { b"}}\n" } else { b"}\n" })
}

fn write_name(out: &mut impl Write, name: &str) -> io::Result<()> {
    serde_json::to_writer(&mut *out, name)?;
    out.write_all(b":")
}

fn write_list(out: &mut impl Write, numbers: &[u32]) -> io::Result<()> {
    let mut before = "[";
    for number in numbers {
        write!(out, "{before}{number}")?;
        before = ",";
    }
    out.write_all(if numbers.is_empty() { b"[]" } else { b"]" })
}

fn write_rows(out: &mut impl Write, rows: &SparseMatrix) -> io::Result<()> {
    // The number of columns must come back, even where no row has a value in the last one.
    let last = rows.columns().checked_sub(1);
    let is_told = (0..rows.rows()).any(|i| rows.row(i).indices().last().copied() == last);
    let mut before = "[";
    for i in 0..rows.rows() {
        out.write_all(before.as_bytes())?;
        write_row(out, rows.row(i), rows.columns(), last.filter(|_| i == 0 && !is_told))?;
        before = ",";
    }
    out.write_all(if rows.rows() == 0 { b"[]" } else { b"]" })
}

/// A row as a list, or as a map with an explicit zero at `last`, whichever is shorter.
fn write_row(out: &mut impl Write, row: SparseView<'_>, columns: u32, last: Option<u32>) -> io::Result<()> {
    /// What the number of a feature takes, in zeros of a list.
    const KEY: usize = 3;
    let mut before = "";
    if columns as usize <= (1 + KEY) * row.len() {
        out.write_all(b"[")?;
        let mut at = 0;
        for (column, value) in row.iter() {
            for _ in at..column {
                write!(out, "{before}0")?;
                before = ",";
            }
            out.write_all(before.as_bytes())?;
            write_f32(out, value)?;
            (at, before) = (column + 1, ",");
        }
        for _ in at..columns {
            write!(out, "{before}0")?;
            before = ",";
        }
        return out.write_all(b"]");
    }
    out.write_all(b"{")?;
    for (column, value) in row.iter().chain(last.map(|last| (last, 0.0))) {
        write!(out, "{before}\"{column}\":")?;
        write_f32(out, value)?;
        before = ",";
    }
    out.write_all(b"}")
}
