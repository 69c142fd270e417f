//! The features of a columns file, as text.

use std::io::Write;

use crate::data::blocks::Cut;
use crate::data::input::Input;
use crate::data::svmlight::LabelRule;
use crate::data::tagging::crfsuite::escape;
use crate::data::tagging::parsed::{Parsed, Rules};
use crate::data::tagging::reading::{NO_TOKENS, Start};
use crate::data::tagging::rows::Sink;
use crate::data::tagging::sentences::{Border, Sentences, Wait, chunks};
use crate::data::tagging::{Features, Format};
use crate::error::{Error, Result};

/// Writes the features of the tokens of a columns file in CRFsuite's format, `TAG<TAB>ATTRIBUTE<TAB>...`: what a template
/// gives, to look at or to feed to other programs. Features of transitions have no place there and are left out. Errors
/// call the output `name`.
pub fn write_features(input: Input<'_>, features: &Features, out: &mut impl Write, name: &str) -> Result<()> {
    let format = &Format::Columns(features.clone());
    let mut sentences = Sentences::new(input, Border::of(format), Cut::default());
    let start = Start::of(&mut sentences, format, None, LabelRule::Required, Wait::Block)?;
    let rules = Rules { format, layout: start.layout, tags: LabelRule::Required };
    let (mut text, mut line, mut gap) = (start.text, start.line, "");
    if text.is_empty() {
        return Err(sentences.error(line.max(1), NO_TOKENS));
    }
    loop {
        // A sentence at a time: an empty line stands between two.
        for text in chunks(&text, 1, sentences.border()) {
            let sentence = Parsed::of(text, rules, Lines::default());
            line += sentence.line;
            if let Some(what) = sentence.error {
                return Err(sentences.error(line, what));
            }
            if !sentence.ends.is_empty() {
                let written = out.write_all(gap.as_bytes()).and_then(|()| out.write_all(&sentence.sink.text));
                written.map_err(|source| Error::io(name, source))?;
                gap = "\n";
            }
        }
        if !sentences.next(&mut text, Wait::Block)? {
            return Ok(());
        }
    }
}

/// Writes features down.
#[derive(Debug, Default)]
struct Lines {
    text: Vec<u8>,
}

impl Sink for Lines {
    fn begin_token(&mut self, tag: &[u8]) {
        escape(tag, &mut self.text);
    }

    fn feature(&mut self, name: &[u8], _value: f32) {
        self.text.push(b'\t');
        escape(name, &mut self.text);
    }

    fn edge(&mut self, _name: &[u8]) {}

    fn end_token(&mut self) -> std::result::Result<(), String> {
        self.text.push(b'\n');
        Ok(())
    }
}
