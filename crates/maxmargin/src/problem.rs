//! The optimisation problem: examples, a task, and how slack is counted.
//!
//! ```text
//! P(w) = 1/2 |w|^2 + (C/n) sum_i c_i H_i(w)          linear slack      (SVM1)
//! P(w) = 1/2 |w|^2 + (C/2n) sum_i c_i H_i(w)^2       quadratic slack   (SVM2), sqrt(D) in the place of D
//! P(w) = 1/2 |w|^2  subject to  H_i(w) <= 0          hard margin       (SVM0)
//!
//! margin rescaling   H_i(w) = max_y  D(y_i, y) - <w, dpsi_i(y)>
//! slack rescaling    H_i(w) = max_y  D(y_i, y) (1 - <w, dpsi_i(y)>)
//! ```
//!
//! (Tsochantaridis, Hofmann, Joachims, Altun 2004, section 3; Joachims, Finley, Yu 2009, OP 2 and OP 3.)
//! An output y of example i is handed on as a normalised [`Term`] with `H = rhs - factor * <w, dpsi_i(y)>`;
//! nothing after it knows margin from slack.

mod classes;
mod data;
mod examples;
mod heldout;
mod objective;
mod oracle;
mod rounding;

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};
use crate::features::{Block, Sink};
use crate::kernel::{AtomsOf, Metric};
use crate::task::Task;
use crate::weights::Weights;

pub(crate) use classes::Classes;
pub use data::examples;
pub use examples::{ClassRows, Enumerable, Examples, Factors, LossCounting, Output, Scratch};
pub use heldout::HeldoutExamples;
pub use oracle::OracleScratch;
use rounding::Sums;
pub(crate) use rounding::length_of;

/// Where the loss enters the constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rescaling {
    /// The margin grows with the loss.
    #[default]
    Margin,
    /// The slack is divided by the loss.
    Slack,
}

/// How slack is penalised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Penalty {
    /// `(C/n) sum H_i`
    #[default]
    Linear,
    /// `(C/2n) sum H_i^2`, with the square root of the loss inside `H_i`
    Quadratic,
    /// No slack at all.
    Hard,
}

/// The numbers and choices that make an optimisation problem of a task and its examples.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Formulation {
    /// C > 0: weight of the mean slack. Not used with the hard margin.
    pub c: f64,
    /// Where the loss enters.
    pub rescaling: Rescaling,
    /// How slack is penalised.
    pub penalty: Penalty,
    /// Factor > 0 on the task's loss.
    pub loss_scale: f64,
}

impl Formulation {
    /// Does the slack add up where the loss does, part by part: margin rescaling and linear slack?
    pub(crate) fn adds_up(&self) -> bool {
        self.penalty == Penalty::Linear && self.rescaling == Rescaling::Margin
    }

    /// The constraint of an output whose loss is `loss`.
    #[inline]
    pub(crate) fn term(&self, loss: f64) -> Term {
        let loss = self.loss_scale * loss;
        let rhs = if self.penalty == Penalty::Quadratic { loss.sqrt() } else { loss };
        match self.rescaling {
            Rescaling::Margin => Term { factor: 1.0, rhs },
            Rescaling::Slack => Term { factor: rhs, rhs },
        }
    }

    /// How one example's H enters the sum: H or H^2/2.
    #[inline]
    pub(crate) fn slack(&self, h: f64) -> f64 {
        match self.penalty {
            Penalty::Quadratic => 0.5 * h * h,
            Penalty::Linear | Penalty::Hard => h,
        }
    }
}

impl Default for Formulation {
    fn default() -> Self {
        Self { c: 1.0, rescaling: Rescaling::Margin, penalty: Penalty::Linear, loss_scale: 1.0 }
    }
}

/// One output of one example as a constraint `factor * <w, dpsi> >= rhs - xi`.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Term {
    /// The factor on `dpsi`: 1, or the loss with slack rescaling.
    pub factor: f64,
    /// The right-hand side.
    pub rhs: f64,
}

impl Term {
    /// `H` of this output, where `margin = <w, dpsi>`.
    #[inline]
    pub fn violation(&self, margin: f64) -> f64 {
        self.rhs - self.factor * margin
    }
}

/// Weights and losses up to here, times f32 values, have squares that do not overflow.
const LARGEST: f64 = 1e30;

/// Which examples count.
#[derive(Debug, Clone, Copy)]
struct Selection<'a> {
    /// One example in `step`; 1 but for a sample.
    step: usize,
    /// Of these; None: of all.
    chosen: Option<&'a [u32]>,
}

impl Selection<'_> {
    const ALL: Self = Self { step: 1, chosen: None };

    /// Where example i stands among all.
    #[inline]
    fn place(&self, i: usize) -> usize {
        let at = i * self.step;
        self.chosen.map_or(at, |chosen| chosen[at] as usize)
    }
}

/// Examples and formulation, checked once and immutable from then on. A copy shares the examples.
#[derive(Clone)]
pub struct Problem<'a> {
    examples: Arc<dyn Examples + 'a>,
    formulation: Formulation,
    selection: Selection<'a>,
    /// What a kernel makes of inner products of weights; None: nothing.
    metric: Option<Metric<'a>>,
    /// What rounding errors are measured by, once they have been asked for: the same for every C.
    sums: Arc<OnceLock<Sums>>,
}

impl fmt::Debug for Problem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { formulation, selection, metric, .. } = self;
        f.debug_struct("Problem")
            .field("examples", &self.len())
            .field("formulation", formulation)
            .field("selection", selection)
            .field("metric", metric)
            .finish()
    }
}

impl<'a> Problem<'a> {
    /// Checks that every example fits the task and that the formulation is one that the task's oracle can do.
    /// `weights`: c_i >= 0 for each example, 1 where None.
    pub fn new<T: Task>(
        task: &'a T,
        inputs: &'a [T::Input<'a>],
        outputs: &'a [T::Output],
        weights: Option<&'a [f64]>,
        formulation: Formulation,
    ) -> Result<Self> {
        Self::of(examples(task, inputs, outputs, weights)?, formulation)
    }

    /// Checks that every example fits its task and that the formulation is one that the task's oracle can do.
    pub fn of(examples: Arc<dyn Examples + 'a>, formulation: Formulation) -> Result<Self> {
        let n = examples.len();
        if n == 0 {
            return Err(Error::setting("inputs", "at least one example is needed"));
        }
        check_formulation(&*examples, formulation)?;
        if let Some(example) = (0..n).find(|&i| !(0.0..=LARGEST).contains(&examples.weight(i))) {
            let weight = examples.weight(example);
            let what = format!("weight {weight:e} (weights must be from 0 to {LARGEST:e})");
            return Err(Error::Data { example, what });
        }
        for example in 0..n {
            examples.check(example).map_err(|what| Error::Data { example, what })?;
        }
        let sums = Arc::default();
        let problem = Self { examples, formulation, selection: Selection::ALL, metric: None, sums };
        if let Some(counting) = problem.loss_counting() {
            for example in 0..n {
                counting.check(example).map_err(|what| Error::Data { example, what })?;
            }
        }
        if problem.max_loss() > LARGEST {
            let rule = format!("makes the largest loss {:e}; at most {LARGEST:e} can be handled", problem.max_loss());
            return Err(Error::setting("loss-scale", rule));
        }
        if formulation.penalty == Penalty::Hard && formulation.rescaling == Rescaling::Margin {
            problem.check_errors_cost()?;
        }
        Ok(problem)
    }

    /// Number of examples n.
    pub fn len(&self) -> usize {
        self.selection.chosen.map_or(self.examples.len(), <[u32]>::len).div_ceil(self.selection.step)
    }

    /// The same problem on every `step`-th example only, with the same C on the mean of fewer slacks: its solution is
    /// near that of the whole.
    ///
    /// # Panics
    /// If `step` is 0.
    #[must_use]
    pub fn every(&self, step: usize) -> Self {
        assert!(step > 0, "a step of at least 1");
        let selection = Selection { step: self.selection.step * step, ..self.selection };
        Self { selection, sums: Arc::default(), ..self.clone() }
    }

    /// The same problem on these examples only, by their numbers here. C is what a single example weighs times their number,
    /// so that this weight stays what it was.
    ///
    /// # Panics
    /// If there are none, one is not an example, or this is a part of a problem itself.
    #[must_use]
    pub fn only(&self, chosen: &'a [u32]) -> Self {
        assert!(self.selection.chosen.is_none() && self.selection.step == 1, "a part of the whole");
        assert!(!chosen.is_empty() && chosen.iter().all(|&i| (i as usize) < self.len()), "examples of the problem");
        let c = self.formulation.c * chosen.len() as f64 / self.len() as f64;
        let selection = Selection { chosen: Some(chosen), step: 1 };
        Self { selection, sums: Arc::default(), ..self.with_c(c) }
    }

    /// The same problem with a kernel: inputs are one-hot vectors of atoms.
    ///
    /// # Panics
    /// If the kernel's block is none of the task's.
    #[must_use]
    pub fn with_kernel(&self, metric: Metric<'a>) -> Self {
        assert!(self.examples.blocks().contains(&metric.block()), "a block of the task");
        Self { metric: Some(metric), sums: Arc::default(), ..self.clone() }
    }

    /// The kernel, where there is one.
    pub fn metric(&self) -> Option<Metric<'a>> {
        self.metric
    }

    /// With a kernel: the atoms of these examples, ascending, each once.
    pub(crate) fn atoms(&self, metric: Metric<'_>, examples: impl Iterator<Item = usize>) -> Result<Vec<u32>> {
        let mut atoms = Vec::new();
        for i in examples {
            let mut sink = AtomsOf { block: metric.block(), atoms: &mut atoms };
            self.add_truth(i, &mut sink)?;
        }
        atoms.sort_unstable();
        atoms.dedup();
        Ok(atoms)
    }

    /// `w = 0`
    pub fn zero(&self) -> Weights {
        let zeros = if self.metric.is_some() { Weights::zeros_with_coefficients } else { Weights::zeros };
        zeros(self.dimension())
    }

    /// Can these be weights for the problem, in a form that its task can score with?
    pub fn fits(&self, w: &Weights) -> bool {
        let can_be_short = |block| self.factors().and_then(Factors::short_rows) == Some(block);
        w.len() == self.dimension()
            && w.has_coefficients() == self.metric.is_some()
            && w.coefficients().len() == w.as_slice().len()
            && w.short_rows().is_none_or(|rows| can_be_short(rows.block()))
    }

    /// The same problem with another C.
    ///
    /// # Panics
    /// If `c` is not positive and finite.
    #[must_use]
    pub fn with_c(&self, c: f64) -> Self {
        assert!(c > 0.0 && c.is_finite(), "C = {c} is not positive and finite");
        Self { formulation: Formulation { c, ..self.formulation }, ..self.clone() }
    }

    /// The number of example i among all examples.
    #[inline]
    pub(crate) fn place(&self, i: usize) -> usize {
        self.selection.place(i)
    }

    /// Never true: a problem has at least one example.
    pub fn is_empty(&self) -> bool {
        self.examples.is_empty()
    }

    /// Number of coordinates of w.
    pub fn dimension(&self) -> usize {
        self.examples.dimension()
    }

    /// The layout of w.
    pub fn blocks(&self) -> &[Block] {
        self.examples.blocks()
    }

    /// c_i, the weight of example i.
    #[inline]
    pub fn weight(&self, i: usize) -> f64 {
        self.examples.weight(self.place(i))
    }

    /// `C c_i / n`: the weight of the slack of example i.
    #[inline]
    pub fn share(&self, i: usize) -> f64 {
        self.formulation.c * self.weight(i) / self.len() as f64
    }

    /// `C / n`: the weight of the slack of an example whose own weight is 1.
    #[inline]
    pub fn c_per_example(&self) -> f64 {
        self.formulation.c / self.len() as f64
    }

    /// C and the choices.
    pub fn formulation(&self) -> Formulation {
        self.formulation
    }

    /// The largest loss in the data, scaled: what epsilon is measured against.
    pub fn max_loss(&self) -> f64 {
        let examples = &self.examples;
        self.formulation.loss_scale * (0..examples.len()).map(|i| examples.max_loss(i)).fold(0.0, f64::max)
    }

    /// The loss that is usual at most, scaled: the largest in the data; where outputs cannot be listed and may be long or
    /// short, the mean of the examples' largest.
    pub fn usual_loss(&self) -> f64 {
        if self.enumerable().is_some() {
            return self.max_loss();
        }
        let examples = &self.examples;
        let sum: f64 = (0..examples.len()).map(|i| examples.max_loss(i)).sum();
        self.formulation.loss_scale * sum / examples.len() as f64
    }

    /// Does the oracle find the true maximum? If not, no certificate is given.
    pub fn oracle_is_exact(&self) -> bool {
        self.searched() == 0
    }

    /// The number of examples whose oracle only searches for the maximum.
    pub fn searched(&self) -> usize {
        if self.enumerable().is_some() {
            return 0;
        }
        (0..self.examples.len()).filter(|&i| !self.is_exact_at(i)).count()
    }

    /// Is `H` the argmax of `score + loss`, loss and all, which every task has?
    fn loss_adds_up(&self) -> bool {
        self.formulation.rescaling == Rescaling::Margin && self.formulation.penalty != Penalty::Quadratic
    }

    /// The outputs as a short list, where they are one.
    pub(crate) fn enumerable(&self) -> Option<&dyn Enumerable> {
        self.examples.enumerable()
    }

    /// The argmax over counts, where the formulation needs it and the task has it.
    fn loss_counting(&self) -> Option<&dyn LossCounting> {
        if self.loss_adds_up() { None } else { self.examples.loss_counting() }
    }

    /// The outputs as labels of variables and factors, where they are. Examples are numbered as in [`place`](Self::place).
    pub(crate) fn factors(&self) -> Option<&dyn Factors> {
        self.examples.factors()
    }

    /// Emits `psi(x_i, y_i)`, the features of the true output.
    pub(crate) fn add_truth(&self, i: usize, sink: &mut dyn Sink) -> Result<()> {
        self.examples.add_truth(self.place(i), sink)
    }

    /// Estimated cost of one decoding of example i, where the score of one output costs 1.
    pub(crate) fn decode_cost(&self, i: usize) -> f64 {
        self.examples.decode_cost(self.place(i))
    }

    /// The largest loss that any output of example i has, not scaled.
    pub(crate) fn max_loss_of(&self, i: usize) -> f64 {
        self.examples.max_loss(self.place(i))
    }

    /// Is y the true output of example i?
    pub(crate) fn is_truth(&self, i: usize, y: &Output) -> bool {
        self.examples.is_truth(self.place(i), y)
    }

    /// `D(y_i, y)`, the loss of the output y of example i, not scaled.
    pub(crate) fn loss(&self, i: usize, y: &Output) -> f64 {
        self.examples.loss(self.place(i), y)
    }

    /// `<w, psi(x_i, y_i)>`, the score of the true output.
    pub(crate) fn truth_score(&self, i: usize, w: &Weights) -> Result<f64> {
        self.examples.truth_score(self.place(i), w)
    }

    /// `<w, dpsi_i(y)>`, the margin of the true output over y.
    pub(crate) fn margin(&self, i: usize, w: &Weights, y: &Output) -> Result<f64> {
        self.examples.margin(self.place(i), w, y)
    }

    /// Leaves the prediction for example i in y.
    pub(crate) fn predict(&self, i: usize, w: &Weights, scratch: &mut Scratch, y: &mut Output) -> Result<()> {
        self.examples.argmax(self.place(i), w, None, scratch, y)
    }

    /// Gives an output of example i that was read from a saved state its type. Returns false where it is none.
    pub(crate) fn restore(&self, i: usize, y: &mut Output) -> bool {
        self.examples.restore(self.place(i), y).is_ok()
    }

    /// The weights of a generative model of these examples; None where the task has none.
    pub(crate) fn generative(&self) -> Option<Weights> {
        self.examples.generative(&mut (0..self.len()).map(|i| (self.place(i), self.weight(i))))
    }

    /// The constraint of an output whose loss is `loss`.
    pub fn term(&self, loss: f64) -> Term {
        self.formulation.term(loss)
    }

    /// Emits `factor * dpsi_i(y)`.
    pub fn emit(&self, i: usize, y: &Output, factor: f64, sink: &mut impl Sink) -> Result<()> {
        self.examples.add_difference(self.place(i), y, factor, sink.as_target())
    }

    /// How one example's H enters the sum: H or H^2/2.
    pub fn slack(&self, h: f64) -> f64 {
        self.formulation.slack(h)
    }

    /// With the hard margin and margin rescaling an error that costs nothing would still have to score below the truth, by
    /// any margin however small: no multiple of a w that fails there would do, so no primal value could be given.
    fn check_errors_cost(&self) -> Result<()> {
        let Some(listed) = self.enumerable() else { return Ok(()) };
        let mut scratch = Scratch::default();
        let mut is_free = |i: usize| {
            let at = listed.truth_index(i);
            listed.losses(i, &mut scratch).iter().enumerate().any(|(k, &loss)| k != at && loss == 0.0)
        };
        if (0..self.examples.len()).any(&mut is_free) {
            let rule = "the hard margin with margin rescaling needs a positive loss for every error; take slack rescaling, \
                        or give each error a cost";
            return Err(Error::setting("penalty", rule));
        }
        Ok(())
    }
}

/// Checks that the formulation is one that the oracle of these examples can do.
fn check_formulation(examples: &dyn Examples, formulation: Formulation) -> Result<()> {
    let positive = |x: f64| x > 0.0 && x.is_finite();
    if !positive(formulation.c) {
        return Err(Error::setting("c", format!("must be positive and finite, not {}", formulation.c)));
    }
    if !positive(formulation.loss_scale) {
        let rule = format!("must be positive and finite, not {}", formulation.loss_scale);
        return Err(Error::setting("loss-scale", rule));
    }
    if formulation.penalty == Penalty::Quadratic
        && formulation.rescaling == Rescaling::Margin
        && examples.enumerable().is_none()
        && !examples.loss_counting().is_some_and(|counting| (0..examples.len()).all(|i| counting.applies(i)))
    {
        let rule = "quadratic slack with margin rescaling needs argmax score + sqrt(loss), which this task's \
                    decoder does not do for all of these inputs; take linear slack or slack rescaling";
        return Err(Error::setting("penalty", rule));
    }
    Ok(())
}
