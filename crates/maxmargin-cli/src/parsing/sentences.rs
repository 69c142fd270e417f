//! From trees to the examples of the task: those that are trained on, and those that are not.

use std::path::Path;

use maxmargin::data::input::Input;
use maxmargin::data::trees::{self, Reading, Strip, Tree, Treebank};
use maxmargin::parallel::{Pool, ranges};
use maxmargin::tasks::parsing::{Derivation, Parse, Parsing, UNKNOWN};

use crate::failure::{Failure, Result};
use crate::streams::note;
use crate::text::{count, counted};
use crate::train::Args;

/// Lines that are named in a message.
const NAMED: usize = 5;

/// Sentences whose trees the grammar can derive.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) inputs: Vec<Vec<u32>>,
    pub(crate) outputs: Vec<Parse>,
    /// Where each begins.
    pub(crate) lines: Vec<u64>,
}

impl Known {
    /// The trees of a bank with their derivations. Those that cannot be derived are replaced with --fallback, left out
    /// without; either is told.
    pub(crate) fn new(
        args: &Args,
        task: &Parsing,
        reading: &Reading<'_>,
        bank: &Treebank,
        derivations: Vec<Option<Derivation>>,
        pool: &Pool,
    ) -> Result<Self> {
        let inputs: Vec<Vec<u32>> =
            bank.trees.iter().map(|tree| reading.terminals(&bank.labels, &bank.words, tree)).collect();
        let derived = |(x, derivation): (&Vec<u32>, Option<Derivation>)| {
            derivation.filter(|derivation| is_within(task, derivation, x.len())).and_then(|d| task.parse(d))
        };
        let mut outputs: Vec<Option<Parse>> = inputs.iter().zip(derivations).map(derived).collect();
        let lost: Vec<usize> = (0..outputs.len()).filter(|&i| outputs[i].is_none()).collect();
        if args.parse.fallback {
            let rescue = |i: &usize| task.nearest(&inputs[*i], &reading.brackets(&bank.labels, &bank.trees[*i]));
            let parts = pool.map(ranges(lost.len(), 4 * pool.threads()), |range| {
                lost[range].iter().map(rescue).collect::<Vec<_>>()
            });
            lost.iter().zip(parts.into_iter().flatten()).for_each(|(&i, parse)| outputs[i] = parse);
        }
        tell(args, bank, &lost, &outputs);
        let mut known = Self::default();
        for ((x, y), tree) in inputs.into_iter().zip(outputs).zip(&bank.trees) {
            if let Some(y) = y {
                known.inputs.push(x);
                known.outputs.push(y);
                known.lines.push(tree.line);
            }
        }
        if known.inputs.is_empty() {
            let what = "no tree is left to learn from; lower --min-count, raise --max-span or give --fallback";
            return Err(Failure::Data(format!("{}: {what}", args.input.display())));
        }
        Ok(known)
    }
}

/// Are all parts of a tree among those that --max-span leaves?
fn is_within(task: &Parsing, derivation: &Derivation, words: usize) -> bool {
    let Some(most) = task.settings().max_span else { return true };
    let fits = |span: &std::ops::Range<usize>| span.len() <= most as usize || span.start == 0 || span.end == words;
    task.grammar().nodes(derivation).is_some_and(|nodes| nodes.iter().all(|(_, span)| fits(span)))
}

/// Says which trees cannot be derived, and what becomes of them.
fn tell(args: &Args, bank: &Treebank, lost: &[usize], outputs: &[Option<Parse>]) {
    let (replaced, left_out): (Vec<usize>, Vec<usize>) = lost.iter().partition(|&&i| outputs[i].is_some());
    let name = args.input.display();
    let of = counted(bank.trees.len() as u64, "tree");
    let cause = match (args.tag.min_count, args.parse.max_span) {
        (Some(_), Some(_)) => "rules that --min-count or phrases that --max-span leaves out",
        (None, Some(_)) => "phrases that --max-span leaves out",
        _ => "rules that --min-count leaves out",
    };
    if !replaced.is_empty() {
        let (n, places) = (count(replaced.len() as u64), places(bank, &replaced));
        note(&format!("{name}: {n} of {of} have {cause}; the nearest trees without them are learned ({places})"));
    }
    if !left_out.is_empty() {
        let (n, places) = (count(left_out.len() as u64), places(bank, &left_out));
        let way_out = if args.parse.fallback {
            "the grammar has no tree for them"
        } else {
            "--fallback learns the nearest tree instead"
        };
        note(&format!("{name}: {n} of {of} have {cause} and are left out ({places}); {way_out}"));
    }
}

/// The first lines of some trees.
fn places(bank: &Treebank, trees: &[usize]) -> String {
    let lines: Vec<String> = trees.iter().take(NAMED).map(|&i| bank.trees[i].line.to_string()).collect();
    let word = if trees.len() == 1 { "line" } else { "lines" };
    format!("{word} {}{}", lines.join(", "), if trees.len() > NAMED { ", ..." } else { "" })
}

/// Sentences that are not trained on.
#[derive(Debug)]
pub(crate) struct Unseen {
    pub(crate) inputs: Vec<Vec<u32>>,
    /// Of some of these the grammar may have no derivation, so brackets are all that is known.
    pub(crate) truths: Vec<Option<Parse>>,
    pub(crate) lines: Vec<u64>,
    pub(crate) checksum: u32,
}

impl Unseen {
    pub(crate) fn read(args: &Args, path: &Path, strip: Strip, reading: &Reading<'_>) -> Result<Self> {
        let mut bank = trees::read(Input::open(path)?, strip)?;
        leave_out_long(args, &mut bank, path)?;
        let terminals = |tree: &Tree| reading.terminals(&bank.labels, &bank.words, tree);
        let truth = |tree: &Tree| Some(Parse::of_brackets(reading.brackets(&bank.labels, tree)));
        let inputs: Vec<Vec<u32>> = bank.trees.iter().map(terminals).collect();
        let strange = inputs.iter().filter(|x| x.contains(&UNKNOWN)).count() as u64;
        if strange > 0 {
            let of = counted(inputs.len() as u64, "held-out sentence");
            note(&format!(
                "{} of {of} have tags that the training file lacks: they get makeshift trees",
                count(strange)
            ));
        }
        let truths = bank.trees.iter().map(truth).collect();
        Ok(Self { inputs, truths, lines: bank.trees.iter().map(|tree| tree.line).collect(), checksum: bank.checksum })
    }
}

/// Takes the sentences out that have more than --max-words words.
pub(crate) fn leave_out_long(args: &Args, bank: &mut Treebank, path: &Path) -> Result<()> {
    let name = path.display();
    if bank.empty > 0 {
        note(&format!("{name}: {} without words, left out", counted(bank.empty, "tree")));
    }
    let Some(most) = args.parse.max_words else { return Ok(()) };
    let all = bank.trees.len();
    bank.trees.retain(|tree| tree.words().len() <= most as usize);
    let left_out = (all - bank.trees.len()) as u64;
    if bank.trees.is_empty() {
        return Err(Failure::Data(format!("{name}: every sentence has more than {most} words; raise --max-words")));
    }
    if left_out > 0 {
        let of = counted(all as u64, "sentence");
        note(&format!(
            "{name}: {} of {of} have more than {most} words and are left out (--max-words)",
            count(left_out)
        ));
    }
    Ok(())
}
