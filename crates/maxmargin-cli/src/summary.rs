//! What `train` prints at the end.

use maxmargin::model::{Model, TaskKind};
use maxmargin::problem::Penalty;
use maxmargin::solver::{Certificate, Report, Status};
use serde::Serialize;

use crate::failure::{Result, print, print_json};
use crate::memory;
use crate::options::OutputOptions;
use crate::text::{bytes, count, counted, duration, fields, labels, number};

/// What training found, and what it took.
pub(crate) struct Outcome<'r> {
    pub(crate) report: &'r Report,
    pub(crate) train_loss: f64,
    pub(crate) seconds_reading: f64,
}

/// The summary: its fields are the keys of the JSON object.
#[derive(Debug, Serialize)]
pub(crate) struct Summary<'r> {
    task: TaskKind,
    solver: &'r str,
    status: Status,
    certificate: Certificate,
    examples: u64,
    dimension: usize,
    /// None with the hard margin, which has none.
    c: Option<f64>,
    epsilon: f64,
    primal: f64,
    dual: f64,
    gap: f64,
    rounds: u64,
    passes: f64,
    oracle_calls: u64,
    cache_hits: u64,
    working_set: usize,
    seconds_reading: f64,
    seconds_training: f64,
    seconds_oracle: f64,
    seconds_qp: f64,
    peak_rss_mb: Option<f64>,
    train_loss: f64,
}

impl<'r> Summary<'r> {
    pub(crate) fn new(model: &Model, outcome: &Outcome<'r>) -> Self {
        let report = outcome.report;
        Self {
            task: model.task,
            solver: report.solver,
            status: report.status,
            certificate: report.certificate,
            examples: model.summary.examples,
            dimension: model.weights.len(),
            c: (model.formulation.penalty != Penalty::Hard).then_some(model.summary.c),
            epsilon: model.summary.epsilon,
            primal: report.primal,
            dual: report.dual,
            gap: report.gap,
            rounds: report.rounds,
            passes: report.passes,
            oracle_calls: report.oracle_calls,
            cache_hits: report.cache_hits,
            working_set: report.working_set,
            seconds_reading: outcome.seconds_reading,
            seconds_training: report.seconds_training,
            seconds_oracle: report.seconds_oracle,
            seconds_qp: report.seconds_qp,
            peak_rss_mb: memory::peak_mb(),
            train_loss: outcome.train_loss,
        }
    }

    pub(crate) fn print(&self, model: &Model, output: &OutputOptions) -> Result<()> {
        if output.json {
            return print_json(self);
        }
        let shares = format!("{} oracle, {} QP", duration(self.seconds_oracle), duration(self.seconds_qp));
        let mut lines = vec![
            ("task", format!("{}, {}", self.task, classes(model))),
            ("examples", format!("{}, {}", count(self.examples), features(model))),
            ("solver", format!("{}: {}, {}", self.solver, counted(self.rounds, "round"), passes(self.passes))),
            ("status", status(self.status).to_owned()),
            ("objective", number(self.primal)),
            ("certificate", certificate(model)),
            ("train loss", format!("{} per example", number(self.train_loss))),
            (
                "time",
                format!(
                    "{} reading, {} training ({shares})",
                    duration(self.seconds_reading),
                    duration(self.seconds_training)
                ),
            ),
        ];
        if let Some(mb) = self.peak_rss_mb {
            lines.push(("memory", format!("{} at most", bytes(1e6 * mb))));
        }
        lines.push(("model", output.model.display().to_string()));
        print(&fields(&lines))
    }
}

pub(crate) fn classes(model: &Model) -> String {
    format!("{} classes: {}", count(model.labels.len() as u64), labels(&model.labels))
}

pub(crate) fn features(model: &Model) -> String {
    let features = counted(u64::from(model.features), "feature");
    if model.bias == 0.0 { features } else { format!("{features} and a constant one of {}", model.bias) }
}

pub(crate) fn passes(passes: f64) -> String {
    format!(
        "{} {} over the data",
        number((10.0 * passes).round() / 10.0),
        if passes == 1.0 { "pass" } else { "passes" }
    )
}

pub(crate) fn status(status: Status) -> &'static str {
    match status {
        Status::Converged => "converged",
        Status::MaxPasses => "stopped by --max-passes before the gap was reached",
        Status::MaxSeconds => "stopped by --max-seconds before the gap was reached",
        Status::Interrupted => "interrupted before the gap was reached",
        Status::Stalled => "stalled: the gap is at the level of rounding",
        Status::Infeasible => "infeasible: the data cannot be separated",
    }
}

/// The certificate in words.
pub(crate) fn certificate(model: &Model) -> String {
    let training = &model.summary;
    let scale = if model.formulation.penalty == Penalty::Hard { training.primal } else { training.c };
    // As a share too: a gap that is small beside C may be large beside P.
    let share = 100.0 * training.gap / training.primal.max(f64::MIN_POSITIVE);
    let asked = number(training.epsilon * scale);
    let gap = format!("gap {} or {share:.2} %, asked for {asked}", number(training.gap));
    match training.certificate {
        Certificate::Exact => format!("exact: the minimum is at least {} ({gap})", number(training.dual)),
        Certificate::Estimate => format!("estimate: the oracle is approximate ({gap})"),
        Certificate::None => "none".to_owned(),
    }
}
