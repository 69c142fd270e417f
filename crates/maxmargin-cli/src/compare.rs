//! What `evaluate` prints of one model, or of two on the same examples.

use std::path::Path;

use maxmargin::metrics::mcnemar::Paired;
use serde::Serialize;

use crate::evaluate::Args;
use crate::failure::{Failure, Result};
use crate::streams::{print, print_json};
use crate::text::{count, counted, number, table};

/// A model on the examples of a file.
pub(crate) struct Judged<F> {
    pub(crate) figures: F,
    /// Was it right, example by example?
    pub(crate) right: Vec<bool>,
}

/// The figures of a task.
pub(crate) trait Shown: Serialize {
    /// What is right or wrong as a whole.
    const UNIT: &'static str;
    /// All of them, in words.
    fn in_words(&self) -> String;
    /// Those that two models are compared by.
    fn main(&self) -> Vec<(&'static str, String)>;
}

/// The JSON object.
#[derive(Serialize)]
struct Report<'r, F> {
    #[serde(flatten)]
    figures: &'r F,
    #[serde(skip_serializing_if = "Option::is_none")]
    compare: Option<Compared<'r, F>>,
}

/// The other model beside the first.
#[derive(Serialize)]
struct Compared<'r, F> {
    model: String,
    figures: &'r F,
    #[serde(flatten)]
    paired: Paired,
    p_value: f64,
}

/// Judges the model, and the one that it is compared with.
pub(crate) fn report<M, F: Shown>(
    args: &Args,
    model: &M,
    other: Option<&M>,
    judge: impl Fn(&M) -> Result<Judged<F>>,
) -> Result<()> {
    let first = judge(model)?;
    let Some((other, path)) = other.zip(args.compare.as_deref()) else {
        let figures = &first.figures;
        return if args.json { print_json(&Report { figures, compare: None }) } else { print(&figures.in_words()) };
    };
    let second = judge(other)?;
    if first.right.len() != second.right.len() {
        let [a, b] = [&first, &second].map(|judged| counted(judged.right.len() as u64, F::UNIT));
        let (input, model) = (args.input.display(), args.model.display());
        let what = format!("{model} reads {a} and {} reads {b}: their formats differ", path.display());
        return Err(Failure::Data(format!("{input}: {what}")));
    }
    let mut paired = Paired::default();
    first.right.iter().zip(&second.right).for_each(|(&a, &b)| paired.add(a, b));
    if args.json {
        let (model, p_value) = (path.display().to_string(), paired.p_value());
        let compare = Some(Compared { model, figures: &second.figures, paired, p_value });
        return print_json(&Report { figures: &first.figures, compare });
    }
    let figures = side_by_side([&args.model, path], [&first.figures, &second.figures]);
    print(&[figures, in_words(&paired, [&args.model, path], F::UNIT)].concat())
}

fn side_by_side<F: Shown>(paths: [&Path; 2], figures: [&F; 2]) -> String {
    let [a, b] = figures.map(Shown::main);
    let mut rows = vec![[vec![String::new()], paths.map(|path| path.display().to_string()).to_vec()].concat()];
    let value = |of: &[(&str, String)], name: &str| {
        of.iter().find(|figure| figure.0 == name).map_or("-".to_owned(), |figure| figure.1.clone())
    };
    let only_second = b.iter().filter(|(name, _)| a.iter().all(|other| other.0 != *name));
    rows.extend(
        a.iter().chain(only_second).map(|(name, _)| vec![(*name).to_owned(), value(&a, name), value(&b, name)]),
    );
    table(&rows)
}

fn in_words(paired: &Paired, paths: [&Path; 2], unit: &str) -> String {
    let [a, b] = paths.map(|path| path.display().to_string());
    let rows = [
        (format!("{unit}s that both have right"), paired.both),
        (format!("only {a}"), paired.only_first),
        (format!("only {b}"), paired.only_second),
        ("neither".to_owned(), paired.neither),
    ];
    let p = paired.p_value();
    let verdict = match paired.only_first.cmp(&paired.only_second) {
        _ if p >= 0.05 => "chance alone may make such a difference".to_owned(),
        std::cmp::Ordering::Less => format!("{b} is better at the level of 5 %"),
        _ => format!("{a} is better at the level of 5 %"),
    };
    let rows = rows.map(|(name, n)| vec![name, count(n)]);
    format!("\n{}\nMcNemar's test, exact, two-sided: p = {} ({verdict})\n", table(&rows), number(p))
}
