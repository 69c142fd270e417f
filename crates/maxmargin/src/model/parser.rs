//! A trained parser: its grammar, the terminals of its sentences, and the weights.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::container::{Container, Data, Tensor, damaged, to_json};
use super::{Summary, TaskKind, check_formulation, check_weights};
use crate::data::dictionary::Dictionary;
use crate::data::trees::{Lexicon, Reading, Shape, Strip};
use crate::error::{Result, invalid};
use crate::features::Block;
use crate::problem::Formulation;
use crate::task::Task;
use crate::tasks::parsing::{Grammar, ParseSettings, Parsing, Parts, Rule, SpanFeature};
use crate::weights::Weights;

/// All that parsing needs, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Parser {
    /// What is left out of trees as they are read.
    pub strip: Strip,
    /// How trees became rules.
    pub shape: Shape,
    /// Symbols and rules.
    pub grammar: Grammar,
    /// The words of sentences; None where these are made of tags.
    pub lexicon: Option<Lexicon>,
    /// Loss, features and limits of the task.
    pub settings: ParseSettings,
    /// The problem that training solved.
    pub formulation: Formulation,
    /// CRC-32 of the bytes of the training data.
    pub data_checksum: u32,
    /// What training found.
    pub summary: Summary,
    /// The weights, as [`Parsing`] lays them out.
    pub weights: Weights,
}

impl Parser {
    /// The task that the model was trained for.
    pub fn task(&self) -> Result<Parsing> {
        Parsing::new(self.grammar.clone(), self.settings)
    }

    /// What makes terminals of trees and trees of nodes.
    pub fn reading(&self) -> Reading<'_> {
        Reading::new(&self.grammar, self.lexicon.as_ref())
    }

    /// Do the parts fit together? Saving and loading check it; whoever builds a model by hand may.
    pub fn check(&self) -> Result<()> {
        let Parts { symbols, labels, terminals, .. } = self.grammar.parts();
        if let Some(name) = symbols.iter().chain(labels).find(|name| name.contains('\n')) {
            return invalid(format!("the name '{}' has a line end in it", name.escape_debug()));
        }
        check_formulation(&self.formulation)?;
        if self.lexicon.as_ref().map_or(0, |lexicon| lexicon.names().len()) != *terminals as usize {
            return invalid("the lexicon is one of another grammar");
        }
        check_weights(self.task(), "the grammar", &self.weights)
    }

    /// All weights, laid out for the task of another grammar: where a warm start on other trees begins. Rules are found by
    /// their symbols; those that this grammar lacks begin with 0. None where the two have no rule in common.
    pub fn weights_over(&self, task: &Parsing, lexicon: Option<&Lexicon>) -> Option<Weights> {
        let own = self.task().ok()?;
        let mut places = HashMap::new();
        for rule in 0..self.grammar.len() as u32 {
            if let Some(feature) = own.feature(rule) {
                places.insert(rule_key(&self.grammar, self.lexicon.as_ref(), rule)?, feature);
            }
        }
        let mut w = Weights::zeros(task.dimension());
        let (from, to) = (own.blocks()[0], task.blocks()[0]);
        let mut is_any = false;
        for rule in 0..task.grammar().len() as u32 {
            let Some(feature) = task.feature(rule) else { continue };
            if let Some(&place) = places.get(&rule_key(task.grammar(), lexicon, rule)?) {
                w.as_mut_slice()[to.at(0, feature)] = self.weights.as_slice()[from.at(0, place)];
                is_any = true;
            }
        }
        self.span_weights(&own, task, lexicon, &mut w);
        is_any.then_some(w)
    }

    /// The weights of span features, where both have them: by phrase, kind and terminal.
    fn span_weights(&self, own: &Parsing, task: &Parsing, lexicon: Option<&Lexicon>, w: &mut Weights) {
        let (&[_, from], &[_, to]) = (own.blocks(), task.blocks()) else { return };
        let rows = span_rows(own, from, self.lexicon.as_ref());
        let rows: HashMap<_, _> = rows.into_iter().zip(0_u32..).collect();
        let phrases: HashMap<_, _> = (0..self.grammar.phrases()).map(|p| (symbol_key(&self.grammar, p), p)).collect();
        let of_phrase = |p: u32| phrases.get(&symbol_key(task.grammar(), p)).copied();
        let columns: Vec<Option<u32>> = (0..to.width).map(of_phrase).collect();
        for (key, row) in span_rows(task, to, lexicon).into_iter().zip(0..) {
            let Some(&source) = rows.get(&key) else { continue };
            for (phrase, column) in (0..).zip(&columns) {
                if let Some(column) = *column {
                    w.as_mut_slice()[to.at(row, phrase)] = self.weights.as_slice()[from.at(source, column)];
                }
            }
        }
    }

    pub(super) fn container(&self) -> Result<Container<'_>> {
        let Parts { symbols, labels, tags, roots, unary, binary, lexical, longest, .. } = self.grammar.parts();
        let record = Record {
            task: TaskKind::Parse,
            strip: self.strip,
            shape: self.shape,
            symbols: symbols.len(),
            phrases: labels.len(),
            tags: *tags,
            longest: *longest,
            lexicon: self.lexicon.as_ref().map(|l| LexiconSizes { terminals: l.names().len(), words: l.words() }),
            settings: self.settings,
            formulation: self.formulation,
            data_checksum: self.data_checksum,
            summary: Cow::Borrowed(&self.summary),
        };
        let text = |text: Vec<u8>| Tensor::list(Data::U8(Cow::Owned(text)));
        let rows = |width: usize, numbers: Vec<u32>| Tensor {
            shape: vec![numbers.len() / width, width],
            data: Data::U32(Cow::Owned(numbers)),
        };
        let pairs = |rules: &[(u32, u32)]| rows(2, rules.iter().flat_map(|&(a, b)| [a, b]).collect());
        let mut tensors = vec![
            (SYMBOLS, text(symbols.join("\n").into_bytes())),
            (LABELS, text(labels.join("\n").into_bytes())),
            (ROOTS, rows(1, roots.clone())),
            (UNARY, pairs(unary)),
            (BINARY, rows(3, binary.iter().flat_map(|&(a, b, c)| [a, b, c]).collect())),
            (WEIGHTS, Tensor::list(Data::F64(Cow::Borrowed(self.weights.as_slice())))),
        ];
        if let Some(lexicon) = &self.lexicon {
            tensors.extend([(TERMINALS, text(lexicon.names().to_bytes())), (LEXICAL, pairs(lexical))]);
        }
        let tensors = tensors.into_iter().map(|(name, tensor)| (name.to_owned(), tensor));
        Ok(Container { record: to_json(&record)?, tensors: tensors.collect() })
    }
}

/// What tells a symbol from all others, in any grammar. A phrase and a tag may have the same name.
fn symbol_key(grammar: &Grammar, symbol: u32) -> String {
    let kind = match symbol {
        phrase if phrase < grammar.phrases() => "phrase",
        tag if grammar.tags().contains(&tag) => "tag",
        _ => "between",
    };
    format!("{kind} {}", grammar.parts().symbols[symbol as usize])
}

/// The same for a terminal of a lexicon.
fn terminal_key(lexicon: &Lexicon, terminal: u32) -> Vec<u8> {
    let kind = if terminal < lexicon.words() { b"word ".as_slice() } else { b"class " };
    [kind, lexicon.names().name(terminal)].concat()
}

/// The same for the rows of the block of span features.
fn span_rows(task: &Parsing, block: Block, lexicon: Option<&Lexicon>) -> Vec<Option<(SpanFeature, Vec<u8>)>> {
    let row = |row: u32| {
        let (feature, _) = task.spans()?.feature(block.at(row, 0))?;
        let SpanFeature::Terminal(place, Some(terminal)) = feature else { return Some((feature, Vec::new())) };
        let key = match lexicon {
            Some(lexicon) => terminal_key(lexicon, terminal),
            None => symbol_key(task.grammar(), terminal).into_bytes(),
        };
        Some((SpanFeature::Terminal(place, None), [b"at ", key.as_slice()].concat()))
    };
    (0..block.rows).map(row).collect()
}

/// The same for a rule.
fn rule_key(grammar: &Grammar, lexicon: Option<&Lexicon>, rule: u32) -> Option<Vec<u8>> {
    let symbols =
        |list: &[u32]| list.iter().map(|&s| symbol_key(grammar, s)).collect::<Vec<_>>().join("\n").into_bytes();
    Some(match grammar.rule(rule)? {
        Rule::Root(root) => [b"root ".as_slice(), &symbols(&[root])].concat(),
        Rule::Unary(parent, child) => symbols(&[parent, child]),
        Rule::Binary(parent, left, right) => symbols(&[parent, left, right]),
        Rule::Lexical(tag, terminal) => [symbols(&[tag]), b"\n".to_vec(), terminal_key(lexicon?, terminal)].concat(),
    })
}

/// The tensors of the file. Names are joined by line ends; rules are rows of symbols, and of a terminal.
const SYMBOLS: &str = "names.symbols";
const LABELS: &str = "names.labels";
const TERMINALS: &str = "names.terminals";
const ROOTS: &str = "rules.root";
const UNARY: &str = "rules.unary";
const BINARY: &str = "rules.binary";
const LEXICAL: &str = "rules.lexical";
const WEIGHTS: &str = "weights";

/// Everything but weights, names and rules.
#[derive(Serialize, Deserialize)]
struct Record<'a> {
    task: TaskKind,
    strip: Strip,
    shape: Shape,
    symbols: usize,
    phrases: usize,
    tags: u32,
    longest: usize,
    lexicon: Option<LexiconSizes>,
    settings: ParseSettings,
    formulation: Formulation,
    data_checksum: u32,
    summary: Cow<'a, Summary>,
}

#[derive(Serialize, Deserialize)]
struct LexiconSizes {
    terminals: usize,
    words: u32,
}

/// So many names, joined by line ends. A phrase and a tag may have the same name, hence no [`Dictionary`].
fn names(text: &[u8], count: usize) -> Result<Vec<String>> {
    let Ok(text) = std::str::from_utf8(text) else { return damaged("names are not UTF-8") };
    let names: Vec<String> =
        if count == 0 && text.is_empty() { Vec::new() } else { text.split('\n').map(str::to_owned).collect() };
    if names.len() != count {
        return damaged(format!("{} names where {count} are expected", names.len()));
    }
    Ok(names)
}

/// The model in a container.
pub(super) fn model(mut container: Container<'static>) -> Result<Parser> {
    let record: Record<'_> = match serde_json::from_str(&container.record) {
        Ok(record) => record,
        Err(e) => return damaged(e),
    };
    let mut text = |tensor: &str| match container.take(tensor)?.1 {
        Data::U8(text) => Ok(text.into_owned()),
        _ => damaged("names are not text"),
    };
    let symbols = names(&text(SYMBOLS)?, record.symbols)?;
    let labels = names(&text(LABELS)?, record.phrases)?;
    let lexicon = match &record.lexicon {
        Some(sizes) => {
            let names = Dictionary::from_bytes(&text(TERMINALS)?, sizes.terminals)?;
            Some(Lexicon::from_names(names, sizes.words)?)
        }
        None => None,
    };
    let mut rows = |tensor: &str, width: usize| match container.take(tensor)? {
        (shape, Data::U32(numbers)) if shape.len() == 2 && shape[1] == width => Ok(numbers.into_owned()),
        _ => damaged("rules are not rows of symbols"),
    };
    let pairs = |numbers: &[u32]| numbers.as_chunks().0.iter().map(|&[a, b]| (a, b)).collect::<Vec<_>>();
    let parts = Parts {
        symbols,
        labels,
        tags: record.tags,
        roots: rows(ROOTS, 1)?,
        unary: pairs(&rows(UNARY, 2)?),
        binary: rows(BINARY, 3)?.as_chunks().0.iter().map(|&[a, b, c]| (a, b, c)).collect(),
        lexical: if lexicon.is_some() { pairs(&rows(LEXICAL, 2)?) } else { Vec::new() },
        // As many as there are names, whatever the record claims: memory is taken for each.
        terminals: lexicon.as_ref().map_or(0, |lexicon| lexicon.names().len() as u32),
        longest: record.longest,
    };
    let Data::F64(weights) = container.take(WEIGHTS)?.1 else { return damaged("weights are not numbers") };
    let parser = Parser {
        strip: record.strip,
        shape: record.shape,
        weights: weights.into_owned().into(),
        grammar: Grammar::new(parts)?,
        lexicon,
        settings: record.settings,
        formulation: record.formulation,
        data_checksum: record.data_checksum,
        summary: record.summary.into_owned(),
    };
    parser.check()?;
    Ok(parser)
}
