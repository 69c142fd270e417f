//! The model file: a safetensors container.
//!
//! ```text
//! 8 bytes    n, little-endian
//! n bytes    JSON: {"__metadata__": {"maxmargin": "1", "crc32": "89abcdef", "model": "{..}"},
//!                   "weights": {"dtype": "F64", "shape": [rows, width], "data_offsets": [0, 8 * rows * width]}}
//!            padded with blanks to a multiple of 8
//! the rest   the weights, row by row, little-endian
//! ```
//!
//! `maxmargin` is the version of the format; `model` is JSON again: everything but the weights; `crc32` is the
//! checksum of `model` followed by the bytes of the weights. Rows are features, the constant one last; columns are
//! slots (1 for two classes, else one a class).
//!
//! The container is read and written here and not by the safetensors crate: its writer leaves the order of the
//! metadata to chance, and its reader (0.8) adds up sizes from the file without looking for overflow.
//! Nothing in a file is believed before it is checked, and memory grows with the bytes that arrive,
//! not with the sizes that a header claims.

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::path::Path;

use crc32fast::Hasher;
use safetensors::Dtype;
use safetensors::tensor::TensorInfo;
use serde::{Deserialize, Serialize};

use super::{Loss, Model, Summary, TaskKind, exact};
use crate::error::{Error, Result};
use crate::problem::{Formulation, Penalty, Rescaling};

/// The format that this program writes, and the newest that it reads.
const FORMAT: u32 = 1;

/// The longest header that safetensors readers take.
const MAX_HEADER: u64 = 100_000_000;

/// How the headers that we write begin.
const BEGINNING: &[u8] = br#"{"__metadata__":{"maxmargin":""#;

/// Weights converted at a time.
const CHUNK: usize = 8192;

#[derive(Serialize, Deserialize)]
struct Header {
    #[serde(rename = "__metadata__", default)]
    notes: Notes,
    weights: Option<TensorInfo>,
}

/// Serialised in this order: `maxmargin` comes first, for [`BEGINNING`].
#[derive(Serialize, Deserialize, Default)]
struct Notes {
    maxmargin: Option<String>,
    crc32: Option<String>,
    model: Option<String>,
}

/// Everything but the weights.
#[derive(Serialize, Deserialize)]
struct Record<'a> {
    task: TaskKind,
    labels: Cow<'a, [String]>,
    features: u32,
    #[serde(with = "exact")]
    bias: f64,
    loss: Cow<'a, Loss>,
    #[serde(with = "exact")]
    loss_scale: f64,
    #[serde(with = "exact")]
    c: f64,
    rescaling: Rescaling,
    penalty: Penalty,
    data_checksum: u32,
    summary: Cow<'a, Summary>,
}

/// The file up to the weights.
pub(super) fn head(model: &Model) -> Result<Vec<u8>> {
    let Formulation { c, rescaling, penalty, loss_scale } = model.formulation;
    let record = Record {
        task: model.task,
        labels: Cow::Borrowed(&model.labels),
        features: model.features,
        bias: model.bias,
        loss: Cow::Borrowed(&model.loss),
        loss_scale,
        c,
        rescaling,
        penalty,
        data_checksum: model.data_checksum,
        summary: Cow::Borrowed(&model.summary),
    };
    let record = to_json(&record)?;
    let mut crc = Hasher::new();
    crc.update(record.as_bytes());
    in_chunks(model, |bytes| {
        crc.update(bytes);
        Ok(())
    })
    .expect("a checksum does not fail");
    let width = model.slots();
    let notes = Notes {
        maxmargin: Some(FORMAT.to_string()),
        crc32: Some(format!("{:08x}", crc.finalize())),
        model: Some(record),
    };
    let weights = TensorInfo {
        dtype: Dtype::F64,
        shape: vec![model.weights.len() / width, width],
        data_offsets: (0, 8 * model.weights.len()),
    };
    let mut header = to_json(&Header { notes, weights: Some(weights) })?.into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    if header.len() as u64 > MAX_HEADER {
        let size = header.len() >> 20;
        return Err(Error::model(format!("labels and costs take {size} MiB; a model file has room for 95 MiB")));
    }
    Ok([&(header.len() as u64).to_le_bytes(), &*header].concat())
}

/// Writes the weights.
pub(super) fn write_weights(model: &Model, writer: &mut (impl Write + ?Sized)) -> io::Result<()> {
    in_chunks(model, |bytes| writer.write_all(bytes))
}

fn in_chunks(model: &Model, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(8 * CHUNK);
    for chunk in model.weights.as_slice().chunks(CHUNK) {
        bytes.clear();
        bytes.extend(chunk.iter().flat_map(|w| w.to_le_bytes()));
        take(&bytes)?;
    }
    Ok(())
}

fn to_json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|e| Error::model(format!("cannot be written as JSON: {e}")))
}

fn foreign<T>() -> Result<T> {
    Err(Error::model("not a maxmargin model file"))
}

fn damaged<T>(what: impl std::fmt::Display) -> Result<T> {
    Err(Error::model(format!("damaged model file ({what})")))
}

fn truncated<T>() -> Result<T> {
    Err(Error::model("truncated model file (the end is missing)"))
}

/// Reads a model; `path` is for errors of reading only.
pub(super) fn read(path: &Path, mut reader: impl Read) -> Result<Model> {
    let mut bytes = Vec::new();
    let mut next = |bytes: &mut Vec<u8>, n: u64| {
        bytes.clear();
        reader.by_ref().take(n).read_to_end(bytes).map_err(|source| Error::io(path, source))
    };

    if next(&mut bytes, 8)? == 0 {
        return Err(Error::model("not a maxmargin model file (it is empty)"));
    }
    let Ok(length) = <[u8; 8]>::try_from(&bytes[..]).map(u64::from_le_bytes) else { return foreign() };
    if length > MAX_HEADER {
        return foreign();
    }
    let is_whole = next(&mut bytes, length)? as u64 == length;
    let is_ours = bytes.starts_with(BEGINNING);
    if !is_whole {
        return if is_ours { truncated() } else { foreign() };
    }
    let header: Header = match serde_json::from_slice(&bytes) {
        Ok(header) => header,
        Err(e) if is_ours => return damaged(e),
        Err(_) => return foreign(),
    };

    let Some(format) = header.notes.maxmargin else { return foreign() };
    match format.parse::<u32>() {
        Ok(FORMAT) => {}
        Ok(newer) if newer > FORMAT => {
            let what = format!(
                "written by a newer version of maxmargin (format {newer}; this program reads up to {FORMAT}): \
                 update maxmargin"
            );
            return Err(Error::model(what));
        }
        _ => return damaged(format!("format {format:?}")),
    }
    let (Some(crc32), Some(record), Some(tensor)) = (header.notes.crc32, header.notes.model, header.weights) else {
        return damaged("the header lacks an entry");
    };
    let (dtype, offsets) = (tensor.dtype, tensor.data_offsets);
    let &[rows, width] = &tensor.shape[..] else { return damaged("weights are not a matrix") };
    let size = rows.checked_mul(width).and_then(|count| count.checked_mul(8));
    if dtype != Dtype::F64 || offsets.0 != 0 || size != Some(offsets.1) {
        return damaged("the header contradicts itself");
    }

    let mut crc = Hasher::new();
    crc.update(record.as_bytes());
    let mut weights = Vec::new();
    let mut left = offsets.1 as u64;
    while left > 0 {
        let n = left.min(8 * CHUNK as u64);
        if next(&mut bytes, n)? as u64 != n {
            return truncated();
        }
        crc.update(&bytes);
        weights.extend(bytes.as_chunks().0.iter().map(|w| f64::from_le_bytes(*w)));
        left -= n;
    }
    if next(&mut bytes, 1)? != 0 {
        return damaged("it goes on after its end");
    }
    if format!("{:08x}", crc.finalize()) != crc32 {
        return damaged("its checksum differs");
    }

    let record: Record<'_> = match serde_json::from_str(&record) {
        Ok(record) => record,
        Err(e) => return damaged(e),
    };
    let model = Model {
        task: record.task,
        labels: record.labels.into_owned(),
        features: record.features,
        bias: record.bias,
        loss: record.loss.into_owned(),
        formulation: Formulation {
            c: record.c,
            rescaling: record.rescaling,
            penalty: record.penalty,
            loss_scale: record.loss_scale,
        },
        data_checksum: record.data_checksum,
        summary: record.summary.into_owned(),
        weights: weights.into(),
    };
    model.check()?;
    if width != model.slots() {
        return damaged(format!("rows of {width} weights for {} labels", model.labels.len()));
    }
    Ok(model)
}
