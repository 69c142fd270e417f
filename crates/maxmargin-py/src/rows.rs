//! Arrays as sparse rows.

use std::sync::{Mutex, PoisonError};

use maxmargin::sparse::SparseMatrix;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Sparse rows of numbers, as the library has them, for one use: who trains or predicts takes them.
#[pyclass(frozen)]
pub(crate) struct Rows {
    matrix: Mutex<Option<SparseMatrix>>,
    shape: (usize, u32),
    /// CRC-32 of the entries.
    pub(crate) checksum: u32,
}

impl Rows {
    fn new(matrix: SparseMatrix) -> Self {
        Self { shape: (matrix.rows(), matrix.columns()), checksum: checksum(&matrix), matrix: Mutex::new(Some(matrix)) }
    }

    /// A copy would take as long as all that is done to make them.
    pub(crate) fn take(&self) -> PyResult<SparseMatrix> {
        let taken = self.matrix.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| PyValueError::new_err("rows are for one use"))
    }

    pub(crate) fn len(&self) -> usize {
        self.shape.0
    }
}

#[derive(FromPyObject)]
enum Dense<'py> {
    Single(PyReadonlyArray2<'py, f32>),
    Double(PyReadonlyArray2<'py, f64>),
}

#[derive(FromPyObject)]
enum Values<'py> {
    Single(PyReadonlyArray1<'py, f32>),
    Double(PyReadonlyArray1<'py, f64>),
}

#[derive(FromPyObject)]
enum Numbers<'py> {
    Short(PyReadonlyArray1<'py, i32>),
    Long(PyReadonlyArray1<'py, i64>),
}

impl Numbers<'_> {
    fn to_vec(&self) -> PyResult<Vec<i64>> {
        Ok(match self {
            Self::Short(numbers) => numbers.as_slice()?.iter().map(|&n| i64::from(n)).collect(),
            Self::Long(numbers) => numbers.as_slice()?.to_vec(),
        })
    }
}

/// CRC-32 of the rows: of each its length, then its entries.
fn checksum(matrix: &SparseMatrix) -> u32 {
    /// Bytes that are gathered before they are summed up: a sum of a few at a time takes ten times as long.
    const GATHERED: usize = 1 << 14;
    let (mut digest, mut words) = (crc32fast::Hasher::new(), Vec::new());
    let mut bytes = Vec::new();
    for i in 0..matrix.rows() {
        let row = matrix.row(i);
        words.push(row.len() as u64);
        words.extend(row.indices().iter().zip(row.values()).map(|(&j, x)| u64::from(j) | u64::from(x.to_bits()) << 32));
        if 8 * words.len() >= GATHERED || i + 1 == matrix.rows() {
            bytes.resize(8 * words.len(), 0);
            let places = bytes.as_chunks_mut::<8>().0;
            places.iter_mut().zip(&words).for_each(|(place, word)| *place = word.to_le_bytes());
            digest.update(&bytes);
            words.clear();
        }
    }
    digest.finalize()
}

/// The rows in the making.
struct Growing {
    matrix: SparseMatrix,
}

impl Growing {
    fn new((rows, columns): (usize, usize), nonzeros: usize) -> PyResult<Self> {
        let columns = u32::try_from(columns).map_err(|_| PyValueError::new_err("more than 4294967295 features"))?;
        let mut matrix = SparseMatrix::new();
        matrix.reserve(rows, nonzeros);
        matrix.set_columns(columns);
        Ok(Self { matrix })
    }

    fn push(&mut self, column: usize, value: f64) -> PyResult<()> {
        let (sample, single) = (self.matrix.rows(), value as f32);
        if !single.is_finite() {
            let what = if value.is_nan() {
                "is NaN".to_owned()
            } else if value.is_infinite() {
                "is infinity".to_owned()
            } else {
                format!("is {value:e}, too large for 32 bits; scale the features")
            };
            return Err(PyValueError::new_err(format!("sample {sample}: feature {column} {what}")));
        }
        if single != 0.0 {
            self.matrix.push(column as u32, single);
        }
        Ok(())
    }
}

/// Rows of columns and values; row i has those from `starts[i]` to `starts[i + 1]`.
fn of_entries<J, X>(starts: &[i64], indices: &[J], data: &[X], columns: usize) -> PyResult<Rows>
where
    J: Copy + Into<i64>,
    X: Copy + Into<f64>,
{
    let broken = |what: &str| PyValueError::new_err(format!("not a valid CSR matrix: {what}"));
    let is_monotone = starts.first() == Some(&0) && starts.windows(2).all(|two| two[0] <= two[1]);
    if !is_monotone || starts.last() != Some(&(data.len() as i64)) || indices.len() != data.len() {
        return Err(broken("indptr does not ascend from 0 to the number of entries"));
    }
    let mut growing = Growing::new((starts.len() - 1, columns), data.len())?;
    for row in starts.windows(2) {
        let row = row[0] as usize..row[1] as usize;
        let (indices, data) = (&indices[row.clone()], &data[row]);
        let (mut last, mut ascends) = (-1, true);
        for &j in indices {
            let j = j.into();
            ascends &= j > last;
            last = j;
        }
        if !ascends || last >= columns as i64 {
            return Err(broken("the columns of a row do not ascend, or lie beyond the last one"));
        }
        let single = |x: &X| (*x).into() as f32;
        // Most rows have nothing to say or to leave out, and are taken as a whole.
        if data.iter().map(single).all(|x| x.is_finite() && x != 0.0) {
            growing.matrix.push_parts(indices.iter().map(|&j| j.into() as u32), data.iter().map(single));
            continue;
        }
        for (&j, &x) in indices.iter().zip(data) {
            growing.push(j.into() as usize, x.into())?;
        }
        growing.matrix.end_row();
    }
    Ok(Rows::new(growing.matrix))
}

#[pymethods]
impl Rows {
    #[staticmethod]
    fn dense(array: Dense<'_>) -> PyResult<Self> {
        fn of<T: Copy + Into<f64>>(values: &[T], (rows, columns): (usize, usize)) -> PyResult<Rows> {
            let mut growing = Growing::new((rows, columns), values.len())?;
            for i in 0..rows {
                for (j, &value) in values[i * columns..(i + 1) * columns].iter().enumerate() {
                    growing.push(j, value.into())?;
                }
                growing.matrix.end_row();
            }
            growing.matrix.shrink();
            Ok(Rows::new(growing.matrix))
        }
        match &array {
            Dense::Single(array) => of(array.as_slice()?, array.as_array().dim()),
            Dense::Double(array) => of(array.as_slice()?, array.as_array().dim()),
        }
    }

    #[staticmethod]
    fn csr(indptr: Numbers<'_>, indices: Numbers<'_>, data: Values<'_>, columns: usize) -> PyResult<Self> {
        let starts = indptr.to_vec()?;
        // From the arrays as they are: a copy of them would take as long as all else.
        match (&indices, &data) {
            (Numbers::Short(j), Values::Single(x)) => of_entries(&starts, j.as_slice()?, x.as_slice()?, columns),
            (Numbers::Short(j), Values::Double(x)) => of_entries(&starts, j.as_slice()?, x.as_slice()?, columns),
            (Numbers::Long(j), Values::Single(x)) => of_entries(&starts, j.as_slice()?, x.as_slice()?, columns),
            (Numbers::Long(j), Values::Double(x)) => of_entries(&starts, j.as_slice()?, x.as_slice()?, columns),
        }
    }

    #[getter]
    fn shape(&self) -> (usize, u32) {
        self.shape
    }
}
