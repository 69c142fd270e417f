//! Arrays as sparse rows.

use maxmargin::sparse::SparseMatrix;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Sparse rows of numbers, as the library has them.
#[pyclass(frozen)]
pub(crate) struct Rows {
    pub(crate) matrix: SparseMatrix,
    /// CRC-32 of the entries.
    pub(crate) checksum: u32,
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
    let (mut digest, mut bytes) = (crc32fast::Hasher::new(), Vec::new());
    for i in 0..matrix.rows() {
        let row = matrix.row(i);
        bytes.extend_from_slice(&(row.len() as u64).to_le_bytes());
        bytes.extend(row.iter().flat_map(|(j, x)| {
            let (j, x) = (u64::from(j), u64::from(x.to_bits()));
            (j | x << 32).to_le_bytes()
        }));
        if bytes.len() >= GATHERED {
            digest.update(&bytes);
            bytes.clear();
        }
    }
    digest.update(&bytes);
    digest.finalize()
}

/// The rows in the making.
struct Growing {
    matrix: SparseMatrix,
}

impl Growing {
    fn new(rows: usize, nonzeros: usize) -> Self {
        let mut matrix = SparseMatrix::new();
        matrix.reserve(rows, nonzeros);
        Self { matrix }
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

    fn finish(mut self, columns: usize) -> PyResult<Rows> {
        let columns = u32::try_from(columns).map_err(|_| PyValueError::new_err("more than 4294967295 features"))?;
        self.matrix.set_columns(columns);
        Ok(Rows { checksum: checksum(&self.matrix), matrix: self.matrix })
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
    let mut growing = Growing::new(starts.len() - 1, data.len());
    for row in starts.windows(2) {
        let row = row[0] as usize..row[1] as usize;
        let mut last = -1;
        for (&j, &x) in indices[row.clone()].iter().zip(&data[row]) {
            let j = j.into();
            if j <= last || j >= columns as i64 {
                return Err(broken("the columns of a row do not ascend, or lie beyond the last one"));
            }
            last = j;
            growing.push(j as usize, x.into())?;
        }
        growing.matrix.end_row();
    }
    growing.finish(columns)
}

#[pymethods]
impl Rows {
    #[staticmethod]
    fn dense(array: Dense<'_>) -> PyResult<Self> {
        fn of<T: Copy + Into<f64>>(values: &[T], (rows, columns): (usize, usize)) -> PyResult<Rows> {
            let mut growing = Growing::new(rows, values.len());
            for i in 0..rows {
                for (j, &value) in values[i * columns..(i + 1) * columns].iter().enumerate() {
                    growing.push(j, value.into())?;
                }
                growing.matrix.end_row();
            }
            growing.matrix.shrink();
            growing.finish(columns)
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
        (self.matrix.rows(), self.matrix.columns())
    }
}
