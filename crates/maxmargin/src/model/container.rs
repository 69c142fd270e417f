//! The container of model files: safetensors.
//!
//! ```text
//! 8 bytes    n, little-endian
//! n bytes    JSON: {"__metadata__": {"maxmargin": "1", "crc32": "89abcdef", "model": "{..}"},
//!                   "weights": {"dtype": "F64", "shape": [rows, width], "data_offsets": [0, 8 * rows * width]}, ..}
//!            padded with blanks to a multiple of 8
//! the rest   the tensors, one after the other, little-endian
//! ```
//!
//! `maxmargin` is the version of the format; `model` is JSON again: everything but the tensors; `crc32` is the
//! checksum of `model` followed by the bytes of the tensors.
//!
//! The container is read and written here and not by the safetensors crate: its writer leaves the order of the
//! metadata to chance, and its reader (0.8) adds up sizes from the file without looking for overflow.
//! Nothing in a file is believed before it is checked, and memory grows with the bytes that arrive,
//! not with the sizes that a header claims.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;

use crc32fast::Hasher;
use safetensors::Dtype;
use safetensors::tensor::TensorInfo;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The format that this program writes, and the newest that it reads.
const FORMAT: u32 = 1;

/// The longest header that safetensors readers take.
const MAX_HEADER: u64 = 100_000_000;

/// How the headers that we write begin.
const BEGINNING: &[u8] = br#"{"__metadata__":{"maxmargin":""#;

/// Numbers converted at a time.
const CHUNK: usize = 8192;

/// Numbers of one kind.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Data<'a> {
    F64(Cow<'a, [f64]>),
    F32(Cow<'a, [f32]>),
    U64(Cow<'a, [u64]>),
    U32(Cow<'a, [u32]>),
    U8(Cow<'a, [u8]>),
}

impl Data<'_> {
    fn dtype(&self) -> Dtype {
        match self {
            Self::F64(_) => Dtype::F64,
            Self::F32(_) => Dtype::F32,
            Self::U64(_) => Dtype::U64,
            Self::U32(_) => Dtype::U32,
            Self::U8(_) => Dtype::U8,
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::F64(x) => 8 * x.len(),
            Self::F32(x) => 4 * x.len(),
            Self::U64(x) => 8 * x.len(),
            Self::U32(x) => 4 * x.len(),
            Self::U8(x) => x.len(),
        }
    }

    fn empty(dtype: Dtype) -> Option<Data<'static>> {
        match dtype {
            Dtype::F64 => Some(Data::F64(Cow::default())),
            Dtype::F32 => Some(Data::F32(Cow::default())),
            Dtype::U64 => Some(Data::U64(Cow::default())),
            Dtype::U32 => Some(Data::U32(Cow::default())),
            Dtype::U8 => Some(Data::U8(Cow::default())),
            _ => None,
        }
    }

    /// Adds the numbers of these bytes.
    fn extend(&mut self, bytes: &[u8]) {
        match self {
            Self::F64(x) => x.to_mut().extend(bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b))),
            Self::F32(x) => x.to_mut().extend(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b))),
            Self::U64(x) => x.to_mut().extend(bytes.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b))),
            Self::U32(x) => x.to_mut().extend(bytes.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b))),
            Self::U8(x) => x.to_mut().extend_from_slice(bytes),
        }
    }

    fn in_chunks(&self, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(8 * CHUNK);
        macro_rules! numbers {
            ($numbers:expr) => {
                for chunk in $numbers.chunks(CHUNK) {
                    bytes.clear();
                    bytes.resize(size_of_val(chunk), 0);
                    let places = bytes.as_chunks_mut().0.iter_mut();
                    places.zip(chunk).for_each(|(place, x)| *place = x.to_le_bytes());
                    take(&bytes)?;
                }
            };
        }
        match self {
            Self::F64(x) => numbers!(x),
            Self::F32(x) => numbers!(x),
            Self::U64(x) => numbers!(x),
            Self::U32(x) => numbers!(x),
            Self::U8(x) => take(x)?,
        }
        Ok(())
    }
}

/// A named table of numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tensor<'a> {
    pub(super) shape: Vec<usize>,
    pub(super) data: Data<'a>,
}

impl<'a> Tensor<'a> {
    /// A list of numbers.
    pub(super) fn list(data: Data<'a>) -> Self {
        let width = data.dtype().bitsize() / 8;
        Self { shape: vec![data.size() / width], data }
    }
}

/// The content of a model file. Tensors are written in the order of their names.
#[derive(Debug)]
pub(super) struct Container<'a> {
    /// JSON: everything but the tensors.
    pub(super) record: String,
    pub(super) tensors: BTreeMap<String, Tensor<'a>>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    #[serde(rename = "__metadata__", default)]
    notes: Notes,
    #[serde(flatten)]
    tensors: BTreeMap<String, TensorInfo>,
}

/// Serialised in this order: `maxmargin` comes first, for [`BEGINNING`].
#[derive(Serialize, Deserialize, Default)]
struct Notes {
    maxmargin: Option<String>,
    crc32: Option<String>,
    model: Option<String>,
}

impl Container<'_> {
    /// The file up to the tensors.
    pub(super) fn head(&self) -> Result<Vec<u8>> {
        let mut crc = Hasher::new();
        crc.update(self.record.as_bytes());
        let mut end = 0;
        let mut tensors = BTreeMap::new();
        for (name, tensor) in &self.tensors {
            let taken = tensor.data.in_chunks(|bytes| {
                crc.update(bytes);
                Ok(())
            });
            taken.expect("a checksum does not fail");
            let (dtype, start) = (tensor.data.dtype(), end);
            end += tensor.data.size();
            let info = TensorInfo { dtype, shape: tensor.shape.clone(), data_offsets: (start, end) };
            tensors.insert(name.clone(), info);
        }
        let notes = Notes {
            maxmargin: Some(FORMAT.to_string()),
            crc32: Some(format!("{:08x}", crc.finalize())),
            model: Some(self.record.clone()),
        };
        let mut header = to_json(&Header { notes, tensors })?.into_bytes();
        header.resize(header.len().next_multiple_of(8), b' ');
        if header.len() as u64 > MAX_HEADER {
            let size = header.len() >> 20;
            return Err(Error::model(format!("labels and costs take {size} MiB; a model file has room for 95 MiB")));
        }
        Ok([&(header.len() as u64).to_le_bytes(), &*header].concat())
    }

    /// Writes the tensors.
    pub(super) fn write_tensors(&self, writer: &mut (impl Write + ?Sized)) -> io::Result<()> {
        self.tensors.values().try_for_each(|tensor| tensor.data.in_chunks(|bytes| writer.write_all(bytes)))
    }

    /// The bytes of the file.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = self.head()?;
        bytes.reserve_exact(self.tensors.values().map(|tensor| tensor.data.size()).sum());
        self.write_tensors(&mut bytes).expect("memory takes all bytes");
        Ok(bytes)
    }

    /// Takes out a tensor, which must be there.
    pub(super) fn take(&mut self, name: &str) -> Result<(Vec<usize>, Data<'_>)> {
        match self.tensors.remove(name) {
            Some(Tensor { shape, data }) => Ok((shape, data)),
            None => damaged("the header lacks an entry"),
        }
    }
}

pub(super) fn to_json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|e| Error::model(format!("cannot be written as JSON: {e}")))
}

fn foreign<T>() -> Result<T> {
    Err(Error::model("not a maxmargin model file"))
}

pub(super) fn damaged<T>(what: impl std::fmt::Display) -> Result<T> {
    Err(Error::model(format!("damaged model file ({what})")))
}

fn truncated<T>() -> Result<T> {
    Err(Error::model("truncated model file (the end is missing)"))
}

/// Reads a container; `path` is for errors of reading only.
pub(super) fn read(path: &Path, mut reader: impl Read) -> Result<Container<'static>> {
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
    let (Some(crc32), Some(record)) = (header.notes.crc32, header.notes.model) else {
        return damaged("the header lacks an entry");
    };

    let mut crc = Hasher::new();
    crc.update(record.as_bytes());
    let mut infos: Vec<(String, TensorInfo)> = header.tensors.into_iter().collect();
    infos.sort_by_key(|(_, info)| info.data_offsets);
    let (mut tensors, mut end) = (BTreeMap::new(), 0);
    for (name, info) in infos {
        let count = info.shape.iter().try_fold(1_usize, |n, &side| n.checked_mul(side));
        let size = count.and_then(|count| count.checked_mul(info.dtype.bitsize() / 8));
        let (start, stop) = info.data_offsets;
        let Some(mut data) = Data::empty(info.dtype) else { return damaged("the header contradicts itself") };
        if start != end || size.and_then(|size| size.checked_add(start)) != Some(stop) {
            return damaged("the header contradicts itself");
        }
        end = stop;
        let mut left = (stop - start) as u64;
        while left > 0 {
            let n = left.min(8 * CHUNK as u64);
            if next(&mut bytes, n)? as u64 != n {
                return truncated();
            }
            crc.update(&bytes);
            data.extend(&bytes);
            left -= n;
        }
        tensors.insert(name, Tensor { shape: info.shape, data });
    }
    if next(&mut bytes, 1)? != 0 {
        return damaged("it goes on after its end");
    }
    if format!("{:08x}", crc.finalize()) != crc32 {
        return damaged("its checksum differs");
    }
    Ok(Container { record, tensors })
}
