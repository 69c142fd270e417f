//! Sentences of Python objects: put together for training, or as text in CRFsuite's format.

use std::io::Write;

use maxmargin::data::tagging::{Assembly, Name, Settled, check_name, escape};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::ffi;
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
    walk(&mut text, sequences, tags)?;
    Ok(PyBytes::new(py, &text.bytes))
}

/// The sentences as `train` takes them, put together on `threads` threads; 0 means one for each core.
pub(crate) fn assembled(sequences: &Bound<'_, PyAny>, tags: &Bound<'_, PyAny>, threads: usize) -> PyResult<Settled> {
    let mut assembly = Assembly::on(threads);
    let walked = walk(&mut assembly, sequences, Some(tags));
    // What is wrong with a token may be found when others have been walked over: the first one is told.
    let settled = assembly.settle().map_err(|bad| error((bad.sentence, bad.token), &bad.what))?;
    walked.map(|()| settled)
}

fn walk<'py, S: Sink>(sink: &mut S, sequences: &Bound<'py, PyAny>, tags: Option<&Bound<'py, PyAny>>) -> PyResult<()> {
    let mut walk = Walk { sink, place: (0, 0), key: Vec::new(), depth: 0, known: Known::default() };
    let mut tags = tags.map(PyAnyMethods::try_iter).transpose()?;
    for (sentence, tokens) in sequences.try_iter()?.enumerate() {
        walk.place = (sentence, 0);
        let of_sentence =
            tags.as_mut().map(|tags| tags.next().unwrap_or_else(|| Err(too_few(sentence)))).transpose()?;
        if !walk.sentence(&tokens?, of_sentence.as_ref())? {
            break;
        }
    }
    Ok(())
}

fn error((sentence, token): (usize, usize), what: &str) -> PyErr {
    PyValueError::new_err(format!("sentence {sentence}, token {token}: {what}"))
}

/// The text of a string, which may hold half of a pair of surrogates: that is none.
fn text<'t>(place: (usize, usize), word: &'t Bound<'_, PyString>) -> PyResult<&'t str> {
    word.to_str().map_err(|_| error(place, &format!("{} is no Unicode text: it has a lone surrogate", shown(word))))
}

/// A value, for messages: not all of a long one, and its type where Python cannot tell it.
fn shown(value: &Bound<'_, PyAny>) -> String {
    const LONGEST: usize = 60;
    let Ok(told) = value.repr() else {
        return value.get_type().name().map_or_else(|_| "one".to_owned(), |kind| format!("({kind})"));
    };
    let told = told.to_string_lossy();
    match told.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &told[..end]),
        None => told.into_owned(),
    }
}

fn too_few(sentence: usize) -> PyErr {
    PyValueError::new_err(format!("sentence {sentence}: there are tags for fewer sentences than there are"))
}

/// Where tokens go.
trait Sink {
    /// What stands for a name that was given before.
    type Name: Copy;

    fn begin_token(&mut self, tag: &str) -> Result<(), String>;
    fn feature(&mut self, name: &[u8], value: f64) -> Result<Option<Self::Name>, String>;
    /// The same of a name that was given before; false where it is to be given once more.
    fn feature_again(&mut self, name: Self::Name, value: f64) -> bool;
    fn end_token(&mut self);
    /// False where there is no use in going on.
    fn end_sentence(&mut self) -> bool;
}

impl Sink for Assembly {
    type Name = Name;

    fn begin_token(&mut self, tag: &str) -> Result<(), String> {
        self.begin_token(tag)
    }

    fn feature(&mut self, name: &[u8], value: f64) -> Result<Option<Name>, String> {
        self.feature(name, value as f32)
    }

    #[inline]
    fn feature_again(&mut self, name: Name, value: f64) -> bool {
        self.feature_again(name, value as f32)
    }

    fn end_token(&mut self) {
        self.end_token();
    }

    fn end_sentence(&mut self) -> bool {
        self.end_sentence()
    }
}

/// CRFsuite's format.
#[derive(Default)]
struct Text {
    bytes: Vec<u8>,
    /// Where the sentence begins.
    start: usize,
}

impl Sink for Text {
    type Name = std::convert::Infallible;

    fn begin_token(&mut self, tag: &str) -> Result<(), String> {
        if tag.is_empty() || tag.contains([' ', '\t', '\n', '\r']) {
            return Err(format!("the tag {tag:?} is empty or has a blank"));
        }
        escape(tag.as_bytes(), &mut self.bytes);
        Ok(())
    }

    fn feature(&mut self, name: &[u8], value: f64) -> Result<Option<Self::Name>, String> {
        check_name(name)?;
        if value == 0.0 {
            return Ok(None);
        }
        self.bytes.push(b'\t');
        escape(name, &mut self.bytes);
        if value != 1.0 {
            write!(self.bytes, ":{value}").expect("memory takes all text");
        }
        Ok(None)
    }

    fn feature_again(&mut self, name: Self::Name, _value: f64) -> bool {
        match name {}
    }

    fn end_token(&mut self) {
        self.bytes.push(b'\n');
    }

    fn end_sentence(&mut self) -> bool {
        if self.bytes.len() > self.start {
            self.bytes.push(b'\n');
        }
        self.start = self.bytes.len();
        true
    }
}

/// Names that were given before, by the Python strings that they are: as a rule the same word is the same object, and need not
/// be looked up again. A table of places, each with the last string that fell on it; the strings are held, so that no other one
/// can take their place in memory.
struct Known<'py, N> {
    places: Vec<Option<(Bound<'py, PyString>, N)>>,
    /// The last number, an object that most features share, and its value.
    number: Option<(Bound<'py, PyAny>, f64)>,
}

impl<N> Default for Known<'_, N> {
    fn default() -> Self {
        Self { places: Vec::new(), number: None }
    }
}

impl<'py, N: Copy> Known<'py, N> {
    /// A hundred thousand names have a place: 2 MB. Which place is read next does not depend on what the last one held, so that the
    /// processor waits for several at a time. Of 141,000 names in 1.3 million features, each with an object of its own, 165,000 were
    /// spelled out; with 2^15 places 231,000, with 2^20 144,000, and a walk took longer.
    const BITS: u32 = 17;

    #[inline]
    fn place(name: *mut ffi::PyObject) -> usize {
        // Objects stand at multiples of 16; by a multiplication all bits of an address have a say (Knuth, volume 3, 6.4).
        ((name as u64 >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - Self::BITS)) as usize
    }

    /// What stands for the name that is this object. The object itself is not looked at.
    #[inline]
    fn get(&self, name: *mut ffi::PyObject) -> Option<N> {
        let (known, found) = self.places.get(Self::place(name))?.as_ref()?;
        (known.as_ptr() == name).then_some(*found)
    }

    /// The number that is this object, where it is the last one.
    #[inline]
    fn number(&self, value: *mut ffi::PyObject) -> Option<f64> {
        self.number.as_ref().filter(|(known, _)| known.as_ptr() == value).map(|(_, number)| *number)
    }

    fn put(&mut self, name: &Bound<'py, PyString>, found: N) {
        if !name.is_exact_instance_of::<PyString>() {
            return; // To let go of it might run Python code.
        }
        if self.places.is_empty() {
            self.places.resize_with(1 << Self::BITS, || None);
        }
        self.places[Self::place(name.as_ptr())] = Some((name.clone(), found));
    }

    /// The value of a float, where it is one that features can have.
    #[inline]
    fn value(&mut self, value: &Bound<'py, PyAny>) -> Option<f64> {
        if let Some(number) = self.number(value.as_ptr()) {
            return Some(number);
        }
        let number = value.cast_exact::<PyFloat>().ok()?.value();
        if !(number as f32).is_finite() {
            return None;
        }
        self.number = Some((value.clone(), number));
        Some(number)
    }
}

/// Dicts stand within dicts up to here: each is a call.
const DEEPEST: usize = 100;

struct Walk<'s, 'py, S: Sink> {
    sink: &'s mut S,
    /// Sentence and token, for errors.
    place: (usize, usize),
    /// The name of a feature, as far as it is known.
    key: Vec<u8>,
    /// In so many dicts of a token it is, beside the token's own.
    depth: usize,
    known: Known<'py, S::Name>,
}

impl<'py, S: Sink> Walk<'_, 'py, S> {
    fn error(&self, what: &str) -> PyErr {
        error(self.place, what)
    }

    /// False where there is no use in going on.
    fn sentence(&mut self, tokens: &Bound<'py, PyAny>, tags: Option<&Bound<'py, PyAny>>) -> PyResult<bool> {
        if tokens.is_instance_of::<PyString>() || tokens.is_instance_of::<PyDict>() {
            return Err(self.error("a sentence is a list of tokens, not a single string or dict"));
        }
        let mut tags = tags.map(PyAnyMethods::try_iter).transpose()?;
        for (token, attributes) in tokens.try_iter()?.enumerate() {
            self.place.1 = token;
            let begun = match &mut tags {
                None => self.sink.begin_token(UNKNOWN),
                Some(tags) => {
                    let none = || Err(self.error("it has no tag: there are fewer tags than tokens"));
                    let tag = tags.next().unwrap_or_else(none)?;
                    match tag.cast::<PyString>() {
                        Ok(tag) => self.sink.begin_token(text(self.place, tag)?),
                        Err(_) => self.sink.begin_token(text(self.place, &tag.str()?)?),
                    }
                }
            };
            begun.map_err(|what| self.error(&what))?;
            self.token(&attributes?)?;
            self.sink.end_token();
        }
        if let Some(Some(_)) = tags.as_mut().map(Iterator::next) {
            return Err(self.error("there are more tags than tokens"));
        }
        Ok(self.sink.end_sentence())
    }

    fn token(&mut self, attributes: &Bound<'py, PyAny>) -> PyResult<()> {
        self.key.clear();
        if let Ok(dict) = attributes.cast::<PyDict>() {
            self.dict(dict)
        } else if let Ok(word) = attributes.cast::<PyString>() {
            self.attribute(word, 1.0)
        } else {
            self.list(attributes)
        }
    }

    fn dict(&mut self, dict: &Bound<'py, PyDict>) -> PyResult<()> {
        let done = if self.key.is_empty() { self.plain_entries(dict)? } else { 0 };
        if done == dict.len() {
            return Ok(());
        }
        for (key, value) in dict.iter().skip(done) {
            let length = self.begin(text(self.place, &key.str()?)?);
            self.value(&value)?;
            self.key.truncate(length);
        }
        Ok(())
    }

    /// Takes the first entries of a dict, as long as each is a name and a number. Returns how many.
    ///
    /// Where the name is known and the number the last one, no reference is taken to either, as the safe iterator does it: that
    /// means to write to the memory of a million strings.
    #[expect(unsafe_code, reason = "there is no safe way through a dict that leaves its objects alone")]
    fn plain_entries(&mut self, dict: &Bound<'py, PyDict>) -> PyResult<usize> {
        let py = dict.py();
        let (mut at, mut key, mut value) = (0, std::ptr::null_mut(), std::ptr::null_mut());
        let mut done = 0;
        // SAFETY: `dict` is a dict, the GIL is held, and the other three are places for what is found. Nothing in the loop runs
        // Python code (objects that it lets go are exact strings and floats), so the dict stays as it is.
        while unsafe { ffi::PyDict_Next(dict.as_ptr(), &raw mut at, &raw mut key, &raw mut value) } != 0 {
            let number = self.known.number(value).or_else(|| {
                // SAFETY: the dict, which did not change, holds the value.
                self.known.value(&unsafe { Bound::from_borrowed_ptr(py, value) })
            });
            let Some(number) = number else { break };
            if !self.known.get(key).is_some_and(|name| self.sink.feature_again(name, number)) {
                // SAFETY: the dict, which did not change, holds the key.
                let key = unsafe { Bound::from_borrowed_ptr(py, key) };
                let Ok(name) = key.cast_exact::<PyString>() else { break };
                self.first_attribute(name, number)?;
            }
            done += 1;
        }
        Ok(done)
    }

    fn list(&mut self, list: &Bound<'py, PyAny>) -> PyResult<()> {
        let is_list =
            list.is_instance_of::<PyList>() || list.is_instance_of::<PyTuple>() || list.is_instance_of::<PySet>();
        if !is_list {
            return self.array(list);
        }
        for word in list.try_iter()? {
            let word = word?;
            let Ok(word) = word.cast::<PyString>() else {
                return Err(self.error(&format!("attribute {} of a list is no string", shown(&word))));
            };
            if self.key.is_empty() {
                self.attribute(word, 1.0)?;
            } else {
                self.named(text(self.place, word)?, 1.0)?;
            }
        }
        Ok(())
    }

    /// A vector of numpy: its values under their places, or its words.
    fn array(&mut self, array: &Bound<'py, PyAny>) -> PyResult<()> {
        let is_vector = array.getattr("ndim").and_then(|n| n.extract::<usize>()).is_ok_and(|n| n == 1);
        if !is_vector {
            let kind = array.get_type().name()?;
            let what = format!("a token is a dict, a string, a list of strings or a vector of numbers, not {kind}");
            return Err(self.error(&what));
        }
        for (place, value) in array.call_method0("tolist")?.try_iter()?.enumerate() {
            let value = value?;
            if let Ok(word) = value.cast::<PyString>() {
                self.named(text(self.place, word)?, 1.0)?;
            } else {
                let length = self.begin(&place.to_string());
                self.number(&value)?;
                self.key.truncate(length);
            }
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

    /// The key and this word.
    fn named(&mut self, word: &str, value: f64) -> PyResult<()> {
        if self.key.is_empty() {
            return self.feature(word.as_bytes(), value).map(drop);
        }
        let length = self.begin(word);
        self.keyed(value)?;
        self.key.truncate(length);
        Ok(())
    }

    fn value(&mut self, value: &Bound<'py, PyAny>) -> PyResult<()> {
        if let Ok(word) = value.cast::<PyString>() {
            let length = self.key.len();
            self.key.push(b':');
            self.key.extend(text(self.place, word)?.as_bytes());
            self.keyed(1.0)?;
            self.key.truncate(length);
            Ok(())
        } else if let Ok(truth) = value.cast::<PyBool>() {
            self.keyed(f64::from(u8::from(truth.is_true())))
        } else if value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>() {
            self.number(value)
        } else if let Ok(dict) = value.cast::<PyDict>() {
            self.inner_dict(dict)
        } else if value.is_instance_of::<PyList>()
            || value.is_instance_of::<PyTuple>()
            || value.is_instance_of::<PySet>()
        {
            self.list(value)
        } else if value.getattr("ndim").and_then(|n| n.extract::<usize>()).is_ok_and(|n| n == 1) {
            self.array(value)
        } else {
            // Numbers of numpy and the like.
            self.number(value)
        }
    }

    /// A dict in another one, which may hold itself.
    fn inner_dict(&mut self, dict: &Bound<'py, PyDict>) -> PyResult<()> {
        if self.depth == DEEPEST {
            return Err(self.error(&format!("dicts within dicts go more than {DEEPEST} deep; does one hold itself?")));
        }
        self.depth += 1;
        self.dict(dict)?;
        self.depth -= 1;
        Ok(())
    }

    fn number(&mut self, value: &Bound<'py, PyAny>) -> PyResult<()> {
        let number = value.extract::<f64>();
        let what = match &number {
            Ok(number) if (*number as f32).is_finite() => return self.keyed(*number),
            Ok(number) if number.is_finite() => format!("is {number:e}, too large for 32 bits; scale it"),
            // A whole number of more than 308 digits.
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
                "is too large a number; scale it".to_owned()
            }
            _ => format!("is {}, which is no finite number, word, dict or list", shown(value)),
        };
        Err(self.error(&format!("the value of {:?} {what}", String::from_utf8_lossy(&self.key))))
    }

    /// The feature that the key names.
    fn keyed(&mut self, value: f64) -> PyResult<()> {
        let done = self.sink.feature(&self.key, value);
        done.map(drop).map_err(|what| self.error(&what))
    }

    fn feature(&mut self, name: &[u8], value: f64) -> PyResult<Option<S::Name>> {
        let done = self.sink.feature(name, value);
        done.map_err(|what| self.error(&what))
    }

    /// A feature whose name is a whole string.
    #[inline]
    fn attribute(&mut self, name: &Bound<'py, PyString>, value: f64) -> PyResult<()> {
        if self.known.get(name.as_ptr()).is_some_and(|known| self.sink.feature_again(known, value)) {
            return Ok(());
        }
        self.first_attribute(name, value)
    }

    /// The same where the name is not known.
    fn first_attribute(&mut self, name: &Bound<'py, PyString>, value: f64) -> PyResult<()> {
        if let Some(found) = self.feature(text(self.place, name)?.as_bytes(), value)? {
            self.known.put(name, found);
        }
        Ok(())
    }
}
