//! Sets of labels from the label words of a file: `3,7,12 INDEX:VALUE ...`, LIBSVM's multilabel lines.
//!
//! [`svmlight`](crate::data::svmlight) reads them, under [`LabelRule::Set`](crate::data::svmlight::LabelRule): a line that starts with
//! a feature, or with a blank and a feature, has the empty set, and a line of a single blank is an example with neither labels nor
//! features. A wholly empty line is none.
//!
//! Where every label is a number, labels are numbers, as in [`labels`](crate::data::labels): `1`, `+1` and `1.0` are the same one.

use std::collections::HashMap;

use crate::data::blocks::shown;
use crate::data::labels::{Lookup, value, values};
use crate::data::svmlight::{Labelled, Labels};
use crate::error::{Error, Result};

/// The labels of a training file and the sets of its examples.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelSets {
    /// Distinct labels, ascending: by value where all are numbers, by bytes otherwise. Of several spellings of a number the
    /// first one of the file.
    pub labels: Vec<String>,
    /// Ascending numbers of labels, by example.
    pub sets: Vec<Vec<u32>>,
}

/// Labels of a file that its reader does not know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unseen {
    /// How many each example has.
    pub counts: Vec<u32>,
}

impl Unseen {
    /// How many there are in all.
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }
}

/// Learns the labels of a training file. `name`: the file, for errors.
pub fn learn(examples: &Labelled, name: &str) -> Result<LabelSets> {
    let fields = Fields::new(examples, name);
    // Distinct words in the order of their first appearance, and for each distinct field the numbers of its words.
    let (mut words, mut numbers): (Vec<&str>, HashMap<&str, u32>) = (Vec::new(), HashMap::new());
    let mut of_fields = Vec::with_capacity(examples.labels.names.len());
    for id in 0..examples.labels.names.len() {
        let of_field: Vec<u32> = fields
            .words(id)?
            .map(|word| {
                *numbers.entry(word).or_insert_with(|| {
                    words.push(word);
                    words.len() as u32 - 1
                })
            })
            .collect();
        of_fields.push(of_field);
    }
    if words.is_empty() {
        let what = "no example has a label (a line is LABEL,LABEL,... INDEX:VALUE ...; at least one label is needed)";
        let line = if examples.is_empty() { 1 } else { examples.line(0) };
        return Err(Error::Parse { name: name.to_owned(), line, what: what.to_owned() });
    }
    let (labels, label_of_word) = ascending(&words);
    let mut sets = Vec::with_capacity(of_fields.len());
    for (id, of_field) in of_fields.into_iter().enumerate() {
        let labels_of_field: Vec<u32> = of_field.into_iter().map(|word| label_of_word[word as usize]).collect();
        sets.push(fields.set(id, labels_of_field, |&label| labels[label as usize].clone())?);
    }
    Ok(LabelSets { labels, sets: by_example(&examples.labels, &sets) })
}

/// The sets of another file in terms of known labels. Others are counted by example and left out. `name`: the file, for errors.
pub fn sets_of(examples: &Labelled, labels: &[String], name: &str) -> Result<(Vec<Vec<u32>>, Unseen)> {
    let (fields, lookup) = (Fields::new(examples, name), Lookup::new(labels));
    let are_numbers = values(labels).is_some();
    let (mut sets, mut counts) = (Vec::new(), Vec::new());
    for id in 0..examples.labels.names.len() {
        let (mut known, mut unseen) = (Vec::new(), Vec::new());
        for word in fields.words(id)? {
            match lookup.exact(word) {
                Some(label) => known.push(label),
                None => unseen.push(Unknown::new(word, are_numbers)),
            }
        }
        sets.push(fields.set(id, known, |&label| labels[label as usize].clone())?);
        counts.push(fields.set(id, unseen, |unknown| unknown.word.to_owned())?.len() as u32);
    }
    let of_id = |id: &u32| counts.get(*id as usize).copied().unwrap_or(0);
    Ok((by_example(&examples.labels, &sets), Unseen { counts: examples.labels.ids.iter().map(of_id).collect() }))
}

/// A label that is not known; the same as another one if its number is, or else its word.
#[derive(Debug, Clone, Copy)]
struct Unknown<'w> {
    number: Option<f64>,
    word: &'w str,
}

impl<'w> Unknown<'w> {
    fn new(word: &'w str, is_number: bool) -> Self {
        Self { number: value(word).filter(|_| is_number), word }
    }

    fn key(&self) -> (Option<u64>, &'w str) {
        match self.number {
            Some(number) => (Some((number + 0.0).to_bits()), ""),
            None => (None, self.word),
        }
    }
}

impl PartialEq for Unknown<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Unknown<'_> {}

impl PartialOrd for Unknown<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Unknown<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

fn by_example(labels: &Labels, sets: &[Vec<u32>]) -> Vec<Vec<u32>> {
    labels.ids.iter().map(|&id| sets.get(id as usize).cloned().unwrap_or_default()).collect()
}

/// The labels that the words stand for, in order, and the label of each word.
fn ascending(words: &[&str]) -> (Vec<String>, Vec<u32>) {
    let numbers = values(words);
    let mut order: Vec<usize> = (0..words.len()).collect();
    match &numbers {
        // Equal numbers stay in the order of their first appearance: that word names the label.
        Some(numbers) => order.sort_by(|&a, &b| (numbers[a] + 0.0).total_cmp(&(numbers[b] + 0.0))),
        None => order.sort_by(|&a, &b| words[a].cmp(words[b])),
    }
    let (mut labels, mut label_of_word): (Vec<String>, _) = (Vec::new(), vec![0; words.len()]);
    let mut last = None;
    for word in order {
        let number = numbers.as_ref().map(|numbers| numbers[word]);
        if number.is_none() || number != last {
            labels.push(words[word].to_owned());
        }
        last = number;
        label_of_word[word] = labels.len() as u32 - 1;
    }
    (labels, label_of_word)
}

/// The distinct label fields of a file, by id.
struct Fields<'e> {
    examples: &'e Labelled,
    name: &'e str,
}

impl<'e> Fields<'e> {
    fn new(examples: &'e Labelled, name: &'e str) -> Self {
        Self { examples, name }
    }

    /// An error on the first line with this field.
    fn error(&self, id: usize, what: String) -> Error {
        let first = self.examples.labels.ids.iter().position(|&i| i as usize == id);
        let line = first.map_or(1, |example| self.examples.line(example));
        Error::Parse { name: self.name.to_owned(), line, what }
    }

    /// The words of a field.
    fn words(&self, id: usize) -> Result<impl Iterator<Item = &'e str> + use<'e>> {
        let field = self.examples.labels.names[id].as_str();
        if field.split(',').any(str::is_empty) {
            let field = shown(field.as_bytes());
            return Err(self.error(id, format!("an empty label in {field} (labels are divided by one comma each)")));
        }
        Ok(field.split(','))
    }

    /// The labels of a field in their order, each once.
    fn set<T: Ord>(&self, id: usize, mut labels: Vec<T>, word: impl Fn(&T) -> String) -> Result<Vec<T>> {
        labels.sort_unstable();
        match labels.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => {
                let label = shown(word(&pair[0]).as_bytes());
                Err(self.error(id, format!("label {label} appears twice in a line (name each once)")))
            }
            None => Ok(labels),
        }
    }
}
