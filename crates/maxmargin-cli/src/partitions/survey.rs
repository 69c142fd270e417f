//! What dictionaries are to know of a partition, and of all of them together.

use std::collections::{BTreeSet, HashMap};
use std::io::Read;

use maxmargin::Error;
use maxmargin::data::alignments::{self, Alphabet, Alphabets};
use maxmargin::data::input::Input;
use maxmargin::data::svmlight::{self, LabelRule, Labelled, Labels};
use maxmargin::data::tagging::{self, Names, Vocabulary};
use maxmargin::data::{graphs, label_sets, trees};
use maxmargin::parallel::Pool;
use maxmargin::sparse::SparseMatrix;
use maxmargin::tasks::factor_graph::Shape;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Result};
use crate::options::Task;
use crate::train::Args;
use crate::{parsing, streams};

/// Of one partition.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Survey {
    /// Label words, in the order of their first appearance, those of each example, and columns.
    Rows { names: Vec<String>, ids: Vec<u32>, columns: u32 },
    /// Tags and features.
    Names(Names),
    /// The trees themselves: which rules a grammar has depends on all of them.
    Trees(Vec<u8>),
    /// The shape of graphs.
    Graphs(Shape),
    /// Letters of residues and of marks.
    Letters { letters: String, marks: String },
}

/// Of all partitions.
#[derive(Debug)]
pub(crate) enum Merged {
    Rows(Labelled),
    Vocabulary(Vocabulary),
    Trees(Vec<u8>),
    Shape(Shape),
    Alphabets(Alphabets),
}

/// Surveys what stands in standard input.
pub(crate) fn survey(args: &Args, pool: &Pool) -> Result<Survey> {
    let mut input = streams::open(&args.input)?;
    let name = input.name().to_owned();
    Ok(match args.task {
        Task::Binary | Task::Multiclass | Task::Taxonomy => rows(svmlight::read(input, LabelRule::Required, pool)?),
        Task::Multilabel => {
            let examples = svmlight::read(input, LabelRule::Set, pool)?;
            if !examples.labels.names.is_empty() {
                label_sets::learn(&examples, &name)?;
            }
            rows(examples)
        }
        Task::Tag => Survey::Names(tagging::survey(input, &crate::tagging::format_of(args)?, pool)?),
        Task::Parse => {
            let mut text = Vec::new();
            input.read_to_end(&mut text).map_err(|e| Error::io(&name, e))?;
            // What is wrong is told of the partition.
            trees::read(Input::new(name, text.as_slice())?, parsing::train::strip(args))?;
            Survey::Trees(text)
        }
        Task::Graph => Survey::Graphs(graphs::read(input, pool)?.1),
        Task::Align => {
            let data = alignments::read(input, LabelRule::Required, pool)?;
            let Alphabets { letters, marks } = Alphabets::learn(&data.records, args.align.alphabet.clone())
                .map_err(|what| Failure::Data(format!("{name}: {what}")))?;
            let text = |alphabet: &Alphabet| alphabet.letters().iter().collect();
            Survey::Letters { letters: text(&letters), marks: text(&marks) }
        }
    })
}

fn rows(examples: Labelled) -> Survey {
    let columns = examples.matrix.columns();
    let Labels { names, ids } = examples.labels;
    Survey::Rows { names, ids, columns }
}

/// The surveys of all partitions, in their order.
pub(crate) fn merge(args: &Args, surveys: Vec<Survey>) -> Result<Merged> {
    let of_partition = |(at, what): (usize, String)| Failure::Data(format!("partition {at}: {what}"));
    let mismatch = || Failure::Data("these are surveys of several tasks".to_owned());
    Ok(match surveys.first() {
        None => return Err(Failure::Data("there are no partitions".to_owned())),
        Some(Survey::Rows { .. }) => Merged::Rows(merged_rows(surveys).ok_or_else(mismatch)?),
        Some(Survey::Names(_)) => {
            let of = |survey| if let Survey::Names(names) = survey { Some(names) } else { None };
            let names: Vec<Names> = surveys.into_iter().map(of).collect::<Option<_>>().ok_or_else(mismatch)?;
            let min_count = args.tag.min_count.unwrap_or(1);
            Merged::Vocabulary(Names::vocabulary(&names, min_count).map_err(of_partition)?)
        }
        Some(Survey::Trees(_)) => {
            let mut all = Vec::new();
            for survey in surveys {
                let Survey::Trees(text) = survey else { return Err(mismatch()) };
                all.extend(text);
                all.push(b'\n');
            }
            Merged::Trees(all)
        }
        Some(Survey::Graphs(_)) => {
            let mut all = Shape::default();
            for (at, survey) in surveys.into_iter().enumerate() {
                let Survey::Graphs(shape) = survey else { return Err(mismatch()) };
                all.join(&shape).map_err(|what| of_partition((at, what)))?;
            }
            Merged::Shape(all)
        }
        Some(Survey::Letters { .. }) => {
            let (mut all, mut all_marks) = (BTreeSet::new(), BTreeSet::new());
            for survey in surveys {
                let Survey::Letters { letters, marks } = survey else { return Err(mismatch()) };
                all.extend(letters.chars());
                all_marks.extend(marks.chars());
            }
            let alphabet = |letters| Alphabet::new(letters).map_err(Failure::Data);
            let letters = args.align.alphabet.clone().map_or_else(|| alphabet(all), Ok)?;
            Merged::Alphabets(Alphabets { letters, marks: alphabet(all_marks)? })
        }
    })
}

/// Rows without features, with all labels. None where there is another survey among them.
fn merged_rows(surveys: Vec<Survey>) -> Option<Labelled> {
    let (mut all, mut numbers, mut widest) = (Labels::default(), HashMap::new(), 0);
    for survey in surveys {
        let Survey::Rows { names, ids, columns } = survey else { return None };
        let mut number = |name: String| {
            *numbers.entry(name).or_insert_with_key(|name| {
                all.names.push(name.clone());
                all.names.len() as u32 - 1
            })
        };
        let known: Vec<u32> = names.into_iter().map(&mut number).collect();
        all.ids.extend(ids.iter().map(|&id| known.get(id as usize).copied().unwrap_or(Labels::NONE)));
        widest = widest.max(columns);
    }
    let mut matrix = SparseMatrix::new();
    (0..all.ids.len()).for_each(|_| matrix.push_row([]));
    matrix.set_columns(widest);
    Some(Labelled::new(all, matrix, None, 0))
}
