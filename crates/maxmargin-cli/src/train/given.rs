//! What a run of `train` learns from: a file, standard input, or what another program has.

use std::fs::File;

use maxmargin::Error;
use maxmargin::data::input::Input;
use maxmargin::data::svmlight::{self, LabelRule, Labelled};
use maxmargin::data::tagging::{self, Sequences, Settled, Vocabulary};

use super::Session;
use crate::failure::{Failure, Result};
use crate::partitions::survey::Merged;
use crate::streams;
use crate::text::counted;

/// Examples of another program.
#[derive(Debug, Default)]
pub(crate) enum Given {
    /// None: they are read, in the format of the task.
    #[default]
    Text,
    /// Classes or sets of rows.
    Rows(Labelled),
    /// Tags of sentences.
    Sentences(Box<Settled>),
    /// No examples, but the dictionaries of all partitions.
    Dictionaries(Merged),
}

/// Examples that were read.
pub(crate) struct Read {
    pub(crate) examples: Labelled,
    /// What errors call them.
    pub(crate) name: String,
    /// Are their labels classes, in the order that these are to have?
    pub(crate) is_ready: bool,
}

impl Session<'_> {
    /// Examples with labels, and what errors call them. `is_ready`: are their labels classes, in their order?
    pub(crate) fn labelled(&mut self, rule: LabelRule) -> Result<Read> {
        let is_ready = matches!(self.given, Given::Rows(_));
        if let Given::Rows(examples) | Given::Dictionaries(Merged::Rows(examples)) = std::mem::take(&mut self.given) {
            return Ok(Read { examples, name: self.args.input.display().to_string(), is_ready });
        }
        let input = self.input()?;
        let name = input.name().to_owned();
        Ok(Read { examples: svmlight::read(input, rule, &self.pool)?, name, is_ready: false })
    }

    /// Sentences with tags, and the names of their features.
    pub(crate) fn sentences(&mut self, format: &tagging::Format, min_count: u32) -> Result<(Sequences, Vocabulary)> {
        match std::mem::take(&mut self.given) {
            Given::Sentences(settled) => Ok(settled.finish(&self.args.input.display().to_string(), min_count)?),
            Given::Dictionaries(Merged::Vocabulary(vocabulary)) => Ok((Sequences::default(), vocabulary)),
            _ => Ok(tagging::read(self.input()?, format, min_count, &self.pool)?),
        }
    }

    /// How much each of the examples counts, where that was said.
    pub(crate) fn weights(&mut self, examples: usize) -> Result<Option<Vec<f64>>> {
        match self.weights.take() {
            Some(weights) if weights.len() != examples => {
                let (given, examples) = (counted(weights.len() as u64, "weight"), counted(examples as u64, "example"));
                let what = format!("{given} for {examples}: leave out others before training, with their weights");
                Err(Failure::Data(format!("{}: {what}", self.args.input.display())))
            }
            weights => Ok(weights),
        }
    }

    /// The training file.
    pub(crate) fn input(&self) -> Result<Input<'_>> {
        let path = &self.args.input;
        if self.in_memory || path.as_os_str() == "-" {
            let (name, reader) = streams::input();
            return Ok(Input::new(name, self.display.counted(reader))?);
        }
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        Ok(Input::new(path.display().to_string(), self.display.counted(file))?)
    }
}
