//! What `train` prints at the end.

mod described;

use std::path::Path;

use maxmargin::kernel::Expansion;
use maxmargin::model::TaskKind;
use maxmargin::problem::{Penalty, Rescaling};
use maxmargin::solver::folds::Validation;
use maxmargin::solver::{Certificate, Status};
use serde::Serialize;

use crate::checkpoint::Saver;
use crate::failure::Result;
use crate::memory;
use crate::step::{AtEnd, Step};
use crate::streams::{print, print_json};
use crate::text::{bytes, count, counted, duration, fields, number, table};
use crate::train::Args;
use crate::training::Trained;
pub(crate) use described::{Approximated, Described, shape_of_graphs};

/// The summary: its fields are the keys of the JSON object.
#[derive(Debug, Serialize)]
pub(crate) struct Summary<'t> {
    task: TaskKind,
    solver: &'t str,
    /// Why this one; None where the user named it.
    solver_reason: Option<&'t str>,
    status: Status,
    certificate: Certificate,
    examples: u64,
    dimension: usize,
    /// None with the hard margin, which has none.
    c: Option<f64>,
    epsilon: f64,
    primal: f64,
    /// How far `primal` may be off by the rounding of f64.
    primal_error: f64,
    /// None where the certificate is: no bound is known.
    dual: Option<f64>,
    gap: Option<f64>,
    /// The bound rests on the checkpoint that training went on from.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    rests_on_state: bool,
    rounds: u64,
    passes: f64,
    oracle_calls: u64,
    cache_hits: u64,
    working_set: usize,
    seconds_reading: f64,
    /// To make atoms, or coordinates of low rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_kernel: Option<f64>,
    /// Along a path these are sums.
    seconds_training: f64,
    seconds_oracle: f64,
    seconds_qp: f64,
    peak_rss_mb: Option<f64>,
    train_loss: f64,
    heldout_loss: Option<f64>,
    /// The least that was seen, on the way to this model or to another.
    heldout_best: Option<f64>,
    /// Where training ended, if the weights are from before: then primal and gap are theirs, and status is that of training.
    #[serde(skip_serializing_if = "Option::is_none")]
    primal_at_end: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gap_at_end: Option<f64>,
    path: Option<Vec<Rung>>,
    folds: Option<usize>,
    cv: Option<&'t [Validation]>,
    /// The share of the mass on which factors disagree, of training factor by factor.
    #[serde(skip_serializing_if = "Option::is_none")]
    disagreement: Option<f64>,
    /// Examples whose oracle is a search, where the task has such.
    #[serde(skip_serializing_if = "Option::is_none")]
    searched: Option<u64>,
    /// By how much sampled cuts may miss the minimum, with the probability that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    excess_at_most: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
    /// The share of the kernel that coordinates leave out.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel_left_out: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    support_vectors: Option<usize>,
    /// Then the objective is at most this; also where there was no time left to decode all examples.
    #[serde(skip_serializing_if = "Option::is_none")]
    primal_at_most: Option<f64>,
}

/// One C of a path.
#[derive(Debug, Serialize)]
struct Rung {
    c: f64,
    status: Status,
    certificate: Certificate,
    primal: f64,
    dual: Option<f64>,
    gap: Option<f64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    rests_on_state: bool,
    passes: f64,
    train_loss: f64,
    heldout_loss: Option<f64>,
    seconds: f64,
}

impl Rung {
    fn of(step: &Step) -> Self {
        Self {
            c: step.c,
            status: step.status,
            certificate: step.certificate,
            primal: step.primal,
            dual: bounded(step, step.dual),
            gap: bounded(step, step.gap),
            rests_on_state: step.rests_on_state,
            passes: step.passes,
            train_loss: step.train_loss,
            heldout_loss: step.heldout_loss(),
            seconds: step.seconds_training,
        }
    }
}

/// A number that needs a bound; None where it is not known.
fn bounded(step: &Step, x: f64) -> Option<f64> {
    (step.certificate != Certificate::None).then_some(x).filter(|x| x.is_finite())
}

impl<'t> Summary<'t> {
    /// `seconds`: of reading, and of what a kernel made of the vectors before training.
    pub(crate) fn new(model: &Described<'_>, trained: &'t Trained, seconds: (f64, f64)) -> Self {
        let (step, steps) = (&trained.kept.step, &trained.steps);
        let best = steps.iter().filter_map(|step| step.heldout).map(|heldout| heldout.best).reduce(f64::min);
        Self {
            task: model.task,
            solver: trained.solver,
            solver_reason: trained.why,
            status: step.status,
            certificate: step.certificate,
            examples: model.training.examples,
            dimension: model.dimension,
            c: (model.formulation.penalty != Penalty::Hard).then_some(step.c),
            epsilon: model.training.epsilon,
            primal: step.primal,
            primal_error: step.primal_error,
            dual: bounded(step, step.dual),
            gap: bounded(step, step.gap),
            rests_on_state: step.rests_on_state,
            rounds: step.rounds,
            passes: step.passes,
            oracle_calls: step.oracle_calls,
            cache_hits: step.cache_hits,
            working_set: step.working_set,
            seconds_reading: seconds.0,
            seconds_kernel: model.expansion.map(|_| seconds.1),
            seconds_training: steps.iter().map(|step| step.seconds_training).sum(),
            seconds_oracle: steps.iter().map(|step| step.seconds_oracle).sum(),
            seconds_qp: steps.iter().map(|step| step.seconds_qp).sum(),
            peak_rss_mb: memory::peak_mb(),
            train_loss: step.train_loss,
            heldout_loss: step.heldout_loss(),
            heldout_best: best,
            primal_at_end: step.at_end().map(|end| end.primal),
            gap_at_end: step.at_end().and_then(|end| bounded(step, end.gap)),
            path: trained.is_path.then(|| steps.iter().map(Rung::of).collect()),
            folds: trained.folds,
            cv: trained.validations.as_deref(),
            disagreement: step.disagreement,
            searched: (!matches!(
                model.task,
                TaskKind::Binary | TaskKind::Multiclass | TaskKind::Taxonomy | TaskKind::Tag
            ))
            .then_some(trained.searched as u64),
            primal_at_most: trained.at_most,
            excess_at_most: trained.excess,
            kernel: model.expansion.map(|expansion| expansion.kernel().to_string()),
            kernel_left_out: model.approximated.as_ref().and_then(|how| how.left_out),
            support_vectors: model.expansion.map(Expansion::len),
        }
    }

    pub(crate) fn print(&self, model: &Described<'_>, trained: &Trained, args: &Args) -> Result<()> {
        if args.output.json {
            return print_json(self);
        }
        let shares = format!("{} oracle, {} QP", duration(self.seconds_oracle), duration(self.seconds_qp));
        let reason = self.solver_reason.map_or(String::new(), |why| format!(" (auto: {why})"));
        let work = format!("{}, {}", counted(self.rounds, "round"), passes(self.passes));
        let mut lines = vec![
            ("task", format!("{}, {}", self.task, model.labels)),
            ("examples", format!("{}, {}", count(self.examples), model.features)),
            ("solver", format!("{}{reason}: {work}", self.solver)),
        ];
        lines.extend(model.kernel().map(|kernel| ("kernel", kernel)));
        lines.extend(model.approximated.as_ref().map(|how| ("vectors", how.in_words.clone())));
        lines.extend(self.c.filter(|_| self.path.is_some() || self.cv.is_some()).map(|c| ("C", self.in_words(c))));
        let at_end = trained.kept.step.at_end();
        lines.extend(model.end(at_end));
        if trained.kept.step.rests_on_state {
            let what = "the bound rests on the checkpoint, which nobody must have changed";
            lines.push(("resumed", what.to_owned()));
        }
        lines.extend(self.coarse(at_end).map(|note| ("note", note)));
        lines.extend(self.excess_at_most.zip(args.kernel.bound).map(|(excess, delta)| {
            let promise = format!("at most {} above the minimum with probability {}", number(excess), 1.0 - delta);
            ("bound", format!("{promise} (Yu and Joachims 2008)"))
        }));
        if trained.kept.step.primal_is_bound {
            let late =
                "no time was left to decode all examples: the objective is at most that, the train loss that of some";
            lines.push(("late", late.to_owned()));
        }
        lines.extend(self.disagreement.map(|share| ("factors", self.agreement(share))));
        lines.extend(
            self.searched.filter(|n| *n > 0).map(|n| ("oracle", self.in_search(n, model.formulation.rescaling))),
        );
        lines.extend(self.heldout_loss.map(|loss| ("held-out", self.heldout(loss, trained, args))));
        let times = [self.seconds_reading, self.seconds_training].map(duration);
        lines.push(("time", format!("{} reading, {} training ({shares})", times[0], times[1])));
        lines.extend(self.peak_rss_mb.map(|mb| ("memory", format!("{} at most", bytes(1e6 * mb)))));
        lines.push(("model", args.output.model.display().to_string()));
        let checkpoint = trained.saver.as_ref().and_then(Saver::file).filter(|_| !trained.is_done());
        lines.extend(checkpoint.map(|path| ("to go on", to_go_on(path))));
        print(&[fields(&lines), self.path_table(), self.cv_table()].concat())
    }

    /// A gap that is as small as was asked for, but large beside the objective, and the way out.
    fn coarse(&self, at_end: Option<AtEnd>) -> Option<String> {
        const LARGE: f64 = 0.1;
        let primal = at_end.map_or(self.primal, |end| end.primal);
        let gap = self.gap.map(|gap| at_end.map_or(gap, |end| end.gap))?;
        let is_coarse = self.status == Status::Converged && gap > LARGE * primal;
        is_coarse.then(|| {
            let share = 100.0 * gap / primal;
            format!("a gap of {share:.0} % is coarse; --relative-gap 0.01 asks for 1 % of the objective, as a smaller -e would")
        })
    }

    /// C, and what it is for a single example.
    fn in_words(&self, c: f64) -> String {
        let is_best = self.cv.is_some_and(|cv| cv.len() > 1);
        let how = if is_best { ", the best in cross-validation" } else { "" };
        format!("{} ({} per example){how}", number(c), number(c / self.examples as f64))
    }

    fn agreement(&self, disagreement: f64) -> String {
        let agree = format!("disagree on {:.2} % of their mass", 100.0 * disagreement);
        match self.dual.filter(|_| self.certificate == Certificate::Estimate) {
            Some(dual) => format!("{agree}; with the relaxation's loss the minimum is at least {}", number(dual)),
            None => agree,
        }
    }

    fn in_search(&self, searched: u64, rescaling: Rescaling) -> String {
        let noun = match self.task {
            TaskKind::Parse => "sentence",
            TaskKind::Graph => "graph",
            _ => "example",
        };
        let why = match (self.task, rescaling) {
            (TaskKind::Parse, _) => "which are too long (--exact-words)",
            (TaskKind::Graph, Rescaling::Margin) => "whose factors make loops",
            (TaskKind::Graph, Rescaling::Slack) => "whose factors make loops, or which are too large to count errors",
            (TaskKind::Multilabel, _) => "as the pairs of labels make loops",
            _ => "as slack rescaling needs it here",
        };
        let at_most = match (self.primal_at_most.map(number), self.task, rescaling) {
            (None, ..) => String::new(),
            (Some(p), TaskKind::Parse, _) | (Some(p), _, Rescaling::Slack) => format!("; the objective is at most {p}"),
            (Some(p), ..) => format!("; the objective with the relaxation's loss, the most that it can be, is {p}"),
        };
        let (n, all) = (count(searched), counted(self.examples, noun));
        format!("searched, not exact, for {n} of {all}, {why}: the certificate is an estimate{at_most}")
    }

    fn heldout(&self, loss: f64, trained: &Trained, args: &Args) -> String {
        let is_earlier = trained.kept.step.at_end().is_some();
        let what = match self.heldout_best {
            _ if is_earlier => "the least seen; these weights are kept, not those of the end".to_owned(),
            _ if args.validation.keep_best && self.path.is_some() => "the least of the path; this C is kept".to_owned(),
            Some(best) if best < loss => format!("{} at best", number(best)),
            _ => "the least seen".to_owned(),
        };
        format!("{} per example ({what})", number(loss))
    }

    fn path_table(&self) -> String {
        let Some(path) = &self.path else { return String::new() };
        let mut rows = vec![words(&["C", "per example", "objective", "gap", "passes", "train loss"])];
        let has_heldout = self.heldout_loss.is_some();
        rows[0].extend(has_heldout.then(|| "held-out loss".to_owned()));
        rows[0].push("time".to_owned());
        let n = self.examples as f64;
        rows.extend(path.iter().map(|rung| {
            // What was computed before the checkpoint cannot be checked any more.
            let mark = if rung.rests_on_state { "*" } else { "" };
            let gap = rung.gap.map_or("-".to_owned(), number) + mark;
            let mut row = [rung.c, rung.c / n].map(number).to_vec();
            row.push(number(rung.primal) + mark);
            row.extend([gap, number(rung.passes.round()), number(rung.train_loss)]);
            row.extend(rung.heldout_loss.map(number));
            row.push(duration(rung.seconds));
            row
        }));
        let is_marked = path.iter().any(|rung| rung.rests_on_state);
        let note = if is_marked { "* from the checkpoint, which nobody must have changed\n" } else { "" };
        format!("\n{}{note}", table(&rows))
    }

    fn cv_table(&self) -> String {
        let Some(cv) = self.cv else { return String::new() };
        let n = self.examples as f64;
        let mut rows = vec![words(&["C", "per example", "loss", "standard error"])];
        rows.extend(cv.iter().map(|v| [v.c, v.c / n, v.loss, v.standard_error].map(number).to_vec()));
        format!("\ncross-validation, {} folds\n{}", self.folds.unwrap_or(0), table(&rows))
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn to_go_on(checkpoint: &Path) -> String {
    format!("the same command with --resume (checkpoint {})", checkpoint.display())
}

pub(crate) fn passes(passes: f64) -> String {
    format!(
        "{} {} over the data",
        number((10.0 * passes).round() / 10.0),
        if passes == 1.0 { "pass" } else { "passes" }
    )
}
