//! Sentences of Python objects in CRFsuite's format.

use std::io::Write;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PySet, PyString, PyTuple};

/// What stands for a tag that nobody knows yet.
const UNKNOWN: &str = "?";

/// Sentences without tokens are left out: the format has no word for them.
#[pyfunction]
pub(crate) fn crfsuite_text<'py>(
    py: Python<'py>,
    sequences: &Bound<'py, PyAny>,
    tags: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut text = Text::default();
    let mut tags = tags.map(PyAnyMethods::try_iter).transpose()?;
    for (sentence, tokens) in sequences.try_iter()?.enumerate() {
        text.place.0 = sentence;
        let of_sentence =
            tags.as_mut().map(|tags| tags.next().unwrap_or_else(|| Err(too_few(sentence)))).transpose()?;
        text.sentence(&tokens?, of_sentence.as_ref())?;
    }
    Ok(PyBytes::new(py, &text.bytes))
}

fn too_few(sentence: usize) -> PyErr {
    PyValueError::new_err(format!("sentence {sentence}: there are tags for fewer sentences than there are"))
}

#[derive(Default)]
struct Text {
    bytes: Vec<u8>,
    /// Sentence and token, for errors.
    place: (usize, usize),
    /// The key of an attribute, as far as it is known.
    key: Vec<u8>,
}

impl Text {
    fn error(&self, what: &str) -> PyErr {
        let (sentence, token) = self.place;
        PyValueError::new_err(format!("sentence {sentence}, token {token}: {what}"))
    }

    fn sentence(&mut self, tokens: &Bound<'_, PyAny>, tags: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        if tokens.is_instance_of::<PyString>() || tokens.is_instance_of::<PyDict>() {
            self.place.1 = 0;
            return Err(self.error("a sentence is a list of tokens, not a single string or dict"));
        }
        let mut tags = tags.map(PyAnyMethods::try_iter).transpose()?;
        let start = self.bytes.len();
        for (token, attributes) in tokens.try_iter()?.enumerate() {
            self.place.1 = token;
            let tag = match &mut tags {
                None => UNKNOWN.to_owned(),
                Some(tags) => {
                    let tag = tags
                        .next()
                        .unwrap_or_else(|| Err(self.error("it has no tag: there are fewer tags than tokens")))?;
                    tag.str()?.to_str()?.to_owned()
                }
            };
            if tag.is_empty() || tag.contains([' ', '\t', '\n', '\r']) {
                return Err(self.error(&format!("the tag {tag:?} is empty or has a blank")));
            }
            self.escaped(tag.as_bytes());
            self.token(&attributes?)?;
            self.bytes.push(b'\n');
        }
        if let Some(Some(_)) = tags.as_mut().map(Iterator::next) {
            return Err(self.error("there are more tags than tokens"));
        }
        if self.bytes.len() > start {
            self.bytes.push(b'\n');
        }
        Ok(())
    }

    fn token(&mut self, attributes: &Bound<'_, PyAny>) -> PyResult<()> {
        self.key.clear();
        if let Ok(word) = attributes.cast::<PyString>() {
            self.attribute(word.to_str()?, None)
        } else if let Ok(dict) = attributes.cast::<PyDict>() {
            self.dict(dict)
        } else {
            self.list(attributes)
        }
    }

    fn dict(&mut self, dict: &Bound<'_, PyDict>) -> PyResult<()> {
        for (key, value) in dict {
            let length = self.begin(key.str()?.to_str()?);
            self.value(&value)?;
            self.key.truncate(length);
        }
        Ok(())
    }

    fn list(&mut self, list: &Bound<'_, PyAny>) -> PyResult<()> {
        let is_list =
            list.is_instance_of::<PyList>() || list.is_instance_of::<PyTuple>() || list.is_instance_of::<PySet>();
        if !is_list {
            let kind = list.get_type().name()?;
            return Err(self.error(&format!("a token is a dict, a string or a list of strings, not {kind}")));
        }
        for word in list.try_iter()? {
            let word = word?;
            let Ok(word) = word.cast::<PyString>() else {
                return Err(self.error(&format!("attribute {} of a list is no string", word.repr()?)));
            };
            let length = self.begin(word.to_str()?);
            self.attribute("", None)?;
            self.key.truncate(length);
        }
        Ok(())
    }

    /// Adds to the key; returns how long it was.
    fn begin(&mut self, word: &str) -> usize {
        let length = self.key.len();
        if length > 0 {
            self.key.push(b':');
        }
        self.key.extend(word.as_bytes());
        length
    }

    fn value(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(word) = value.cast::<PyString>() {
            let (word, length) = (word.to_str()?, self.key.len());
            self.key.push(b'=');
            self.attribute(word, None)?;
            self.key.truncate(length);
            Ok(())
        } else if let Ok(truth) = value.cast::<PyBool>() {
            self.attribute("", Some(f64::from(u8::from(truth.is_true()))))
        } else if value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>() {
            self.number(value)
        } else if let Ok(dict) = value.cast::<PyDict>() {
            self.dict(dict)
        } else if value.is_instance_of::<PyList>()
            || value.is_instance_of::<PyTuple>()
            || value.is_instance_of::<PySet>()
        {
            self.list(value)
        } else {
            // Numbers of numpy and the like.
            self.number(value)
        }
    }

    fn number(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        match value.extract::<f64>() {
            Ok(number) if (number as f32).is_finite() => self.attribute("", Some(number)),
            _ => {
                let (key, value) = (String::from_utf8_lossy(&self.key).into_owned(), value.repr()?);
                Err(self
                    .error(&format!("the value of {key:?} is {value}, which is no finite number, word, dict or list")))
            }
        }
    }

    /// The key and this word, with its value.
    fn attribute(&mut self, word: &str, value: Option<f64>) -> PyResult<()> {
        let (start, length) = (self.bytes.len(), self.key.len());
        self.key.extend(word.as_bytes());
        if self.key.is_empty() {
            return Err(self.error("an attribute has no name"));
        }
        if self.key.iter().any(|byte| matches!(byte, b'\t' | b'\n' | b'\r')) {
            let key = String::from_utf8_lossy(&self.key).into_owned();
            return Err(self.error(&format!("attribute {key:?} has a tab or a line end; replace it")));
        }
        self.bytes.push(b'\t');
        let key = std::mem::take(&mut self.key);
        self.escaped(&key);
        self.key = key;
        self.key.truncate(length);
        match value {
            Some(0.0) => self.bytes.truncate(start),
            Some(value) if value != 1.0 => write!(self.bytes, ":{value}").expect("memory takes all text"),
            _ => {}
        }
        Ok(())
    }

    fn escaped(&mut self, word: &[u8]) {
        for &byte in word {
            if matches!(byte, b':' | b'\\') {
                self.bytes.push(b'\\');
            }
            self.bytes.push(byte);
        }
    }
}
