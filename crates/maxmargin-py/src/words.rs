//! Tags that are words.

use maxmargin::data::dictionary::Dictionary;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

/// The distinct words of lists, in the order of their first appearance. None where not all are plain lists of plain strings.
#[pyfunction]
pub(crate) fn distinct_words<'py>(lists: &Bound<'py, PyList>) -> PyResult<Option<Bound<'py, PyList>>> {
    let (mut known, found, mut words) = (Dictionary::new(), PyList::empty(lists.py()), Vec::new());
    for list in lists {
        let Ok(list) = list.cast_exact::<PyList>() else { return Ok(None) };
        // All of a list at once: each may be far away in memory, and the processor waits for several at a time.
        words.extend(list);
        for word in words.drain(..) {
            // Half of a pair of surrogates is no text, but may be a tag.
            let Some(text) = word.cast_exact::<PyString>().ok().and_then(|word| word.to_str().ok()) else {
                return Ok(None);
            };
            let distinct = known.len();
            known.intern(text.as_bytes());
            if known.len() > distinct {
                found.append(&word)?;
            }
        }
    }
    Ok(Some(found))
}
