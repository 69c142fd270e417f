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
mod objective;
mod rounding;

use crate::error::{Error, Result};
use crate::features::{Scaled, Sink};
use crate::kernel::{AtomsOf, Metric};
use crate::task::{Counted, Factored, Listed, LossTerm, Task, first_max};
use crate::weights::Weights;

pub(crate) use classes::Classes;
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

/// What the oracle needs to work without allocating, and its answer `y`.
#[derive(Debug)]
pub struct OracleScratch<T: Task> {
    task: T::Scratch,
    scores: Vec<f64>,
    trial: T::Output,
    /// Upper bound on H, where the last call of the oracle searched with several argmaxes.
    searched_at_most: Option<f64>,
    /// The output that the last call of the oracle found.
    pub y: T::Output,
}

impl<T: Task> Default for OracleScratch<T> {
    fn default() -> Self {
        let (task, trial, y) = (T::Scratch::default(), T::Output::default(), T::Output::default());
        Self { task, scores: Vec::new(), trial, searched_at_most: None, y }
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

/// Examples, task and formulation, checked once and immutable from then on.
#[derive(Debug)]
pub struct Problem<'a, T: Task> {
    task: &'a T,
    inputs: &'a [T::Input<'a>],
    outputs: &'a [T::Output],
    weights: Option<&'a [f64]>,
    formulation: Formulation,
    selection: Selection<'a>,
    /// What a kernel makes of inner products of weights; None: nothing.
    metric: Option<Metric<'a>>,
}

impl<'a, T: Task> Problem<'a, T> {
    /// Checks that every example fits the task and that the formulation is one that the task's oracle can do.
    /// `weights`: c_i >= 0 for each example, 1 where None.
    pub fn new(
        task: &'a T,
        inputs: &'a [T::Input<'a>],
        outputs: &'a [T::Output],
        weights: Option<&'a [f64]>,
        formulation: Formulation,
    ) -> Result<Self> {
        let positive = |x: f64| x > 0.0 && x.is_finite();
        if inputs.len() != outputs.len() {
            return Err(Error::setting("outputs", format!("{} for {} inputs", outputs.len(), inputs.len())));
        }
        if inputs.is_empty() {
            return Err(Error::setting("inputs", "at least one example is needed"));
        }
        if !positive(formulation.c) {
            return Err(Error::setting("c", format!("must be positive and finite, not {}", formulation.c)));
        }
        if !positive(formulation.loss_scale) {
            let rule = format!("must be positive and finite, not {}", formulation.loss_scale);
            return Err(Error::setting("loss-scale", rule));
        }
        if formulation.penalty == Penalty::Quadratic
            && formulation.rescaling == Rescaling::Margin
            && task.listed().is_none()
            && !task.counted().is_some_and(|counted| inputs.iter().all(|&x| counted.applies(x)))
        {
            let rule = "quadratic slack with margin rescaling needs argmax score + sqrt(loss), which this task's \
                        decoder does not do for all of these inputs; take linear slack or slack rescaling";
            return Err(Error::setting("penalty", rule));
        }
        if let Some(weights) = weights {
            if weights.len() != inputs.len() {
                return Err(Error::setting("weights", format!("{} for {} examples", weights.len(), inputs.len())));
            }
            if let Some(example) = weights.iter().position(|c| !(0.0..=LARGEST).contains(c)) {
                let what = format!("weight {:e} (weights must be from 0 to {LARGEST:e})", weights[example]);
                return Err(Error::Data { example, what });
            }
        }
        for (example, (&x, y)) in inputs.iter().zip(outputs).enumerate() {
            task.check(x, y).map_err(|what| Error::Data { example, what })?;
        }
        let problem = Self { task, inputs, outputs, weights, formulation, selection: Selection::ALL, metric: None };
        if let Some(counted) = problem.counted() {
            for (example, (&x, y)) in inputs.iter().zip(outputs).enumerate() {
                counted.check(x, y).map_err(|what| Error::Data { example, what })?;
            }
        }
        if problem.max_loss() > LARGEST {
            let rule = format!("makes the largest loss {:e}; at most {LARGEST:e} can be handled", problem.max_loss());
            return Err(Error::setting("loss-scale", rule));
        }
        if formulation.penalty == Penalty::Hard && formulation.rescaling == Rescaling::Margin {
            check_errors_cost(task, outputs)?;
        }
        Ok(problem)
    }

    /// Number of examples n.
    pub fn len(&self) -> usize {
        self.selection.chosen.map_or(self.inputs.len(), <[u32]>::len).div_ceil(self.selection.step)
    }

    /// The same problem on every `step`-th example only, with the same C on the mean of fewer slacks: its solution is
    /// near that of the whole.
    ///
    /// # Panics
    /// If `step` is 0.
    #[must_use]
    pub fn every(&self, step: usize) -> Self {
        assert!(step > 0, "a step of at least 1");
        Self { selection: Selection { step: self.selection.step * step, ..self.selection }, ..*self }
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
        Self { selection: Selection { chosen: Some(chosen), step: 1 }, ..self.with_c(c) }
    }

    /// The same problem with a kernel: inputs are one-hot vectors of atoms.
    ///
    /// # Panics
    /// If the kernel's block is none of the task's.
    #[must_use]
    pub fn with_kernel(&self, metric: Metric<'a>) -> Self {
        assert!(self.task.blocks().contains(&metric.block()), "a block of the task");
        Self { metric: Some(metric), ..*self }
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
            self.task.features(self.input(i), self.truth(i), &mut sink)?;
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
        let can_be_short = |block| self.task.factored().and_then(Factored::short_rows) == Some(block);
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
        Self { formulation: Formulation { c, ..self.formulation }, ..*self }
    }

    /// The inputs, of which these may be some.
    pub(crate) fn inputs(&self) -> &'a [T::Input<'a>] {
        self.inputs
    }

    /// Where example i stands among the inputs.
    #[inline]
    pub(crate) fn place(&self, i: usize) -> usize {
        self.selection.place(i)
    }

    /// Never true: a problem has at least one example.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// Number of coordinates of w.
    pub fn dimension(&self) -> usize {
        self.task.dimension()
    }

    /// The task.
    pub fn task(&self) -> &'a T {
        self.task
    }

    /// Input of example i.
    pub fn input(&self, i: usize) -> T::Input<'a> {
        self.inputs[self.place(i)]
    }

    /// Correct output of example i.
    pub fn truth(&self, i: usize) -> &'a T::Output {
        &self.outputs[self.place(i)]
    }

    /// c_i, the weight of example i.
    #[inline]
    pub fn weight(&self, i: usize) -> f64 {
        self.weights.map_or(1.0, |c| c[self.place(i)])
    }

    /// C and the choices.
    pub fn formulation(&self) -> Formulation {
        self.formulation
    }

    /// The largest loss in the data, scaled: what epsilon is measured against.
    pub fn max_loss(&self) -> f64 {
        self.formulation.loss_scale * self.outputs.iter().map(|y| self.task.max_loss(y)).fold(0.0, f64::max)
    }

    /// The loss that is usual at most, scaled: the largest in the data; where outputs cannot be listed and may be long or
    /// short, the mean of the examples' largest.
    pub fn usual_loss(&self) -> f64 {
        if self.task.listed().is_some() {
            return self.max_loss();
        }
        let sum: f64 = self.outputs.iter().map(|y| self.task.max_loss(y)).sum();
        self.formulation.loss_scale * sum / self.outputs.len() as f64
    }

    /// Does the oracle find the true maximum? If not, no certificate is given.
    pub fn oracle_is_exact(&self) -> bool {
        self.searched() == 0
    }

    /// The number of examples whose oracle only searches for the maximum.
    pub fn searched(&self) -> usize {
        self.inputs.iter().filter(|&&x| !self.is_exact(x)).count()
    }

    /// Does the oracle find the true maximum for this input?
    fn is_exact(&self, x: T::Input<'_>) -> bool {
        match self.counted() {
            _ if self.task.listed().is_some() => true,
            Some(counted) => counted.is_exact(x),
            None => self.loss_adds_up() && self.task.argmax_is_exact(x),
        }
    }

    /// Is `H` the argmax of `score + loss`, loss and all, which every task has?
    fn loss_adds_up(&self) -> bool {
        self.formulation.rescaling == Rescaling::Margin && self.formulation.penalty != Penalty::Quadratic
    }

    /// The argmax over counts, where the formulation needs it and the task has it.
    fn counted(&self) -> Option<&'a dyn Counted<T>> {
        if self.loss_adds_up() { None } else { self.task.counted() }
    }

    /// The constraint of an output whose loss is `loss`.
    pub fn term(&self, loss: f64) -> Term {
        self.formulation.term(loss)
    }

    /// `H` of all listed outputs of example i, the truth's being 0.
    ///
    /// # Panics
    /// If the task does not list its outputs.
    pub fn violations(&self, i: usize, w: &Weights, scratch: &mut OracleScratch<T>, values: &mut [f64]) {
        let listed = self.task.listed().expect("a task that lists its outputs");
        listed.scores(w, self.input(i), &mut scratch.task, values);
        self.turn_into_violations(i, listed, &mut scratch.task, values);
    }

    /// From the scores of all outputs of example i to their `H`.
    fn turn_into_violations(&self, i: usize, listed: &dyn Listed<T>, scratch: &mut T::Scratch, values: &mut [f64]) {
        let truth = self.truth(i);
        let at = listed.index(truth);
        let at_truth = values[at];
        let losses = listed.losses(truth, scratch);
        // One loop for each rescaling: the hot one is two additions an output.
        match (self.formulation.rescaling, self.formulation.penalty) {
            (Rescaling::Margin, Penalty::Linear | Penalty::Hard) => {
                let scale = self.formulation.loss_scale;
                for (value, &loss) in values.iter_mut().zip(losses) {
                    *value = scale * loss - (at_truth - *value);
                }
            }
            _ => {
                for (value, &loss) in values.iter_mut().zip(losses) {
                    *value = self.term(loss).violation(at_truth - *value);
                }
            }
        }
        values[at] = 0.0;
    }

    /// The separation oracle: `argmax_y H` of example i, left in `scratch.y`; returns H, zero for the truth.
    pub fn oracle(&self, i: usize, w: &Weights, scratch: &mut OracleScratch<T>) -> Result<f64> {
        self.oracle_at(i, w, 1.0, scratch)
    }

    /// The same at the point `scale * w`, with scale > 0, which need not be computed.
    pub fn oracle_at(&self, i: usize, w: &Weights, scale: f64, scratch: &mut OracleScratch<T>) -> Result<f64> {
        let (x, truth) = (self.input(i), self.truth(i));
        scratch.searched_at_most = None;
        let value = if let Some(listed) = self.task.listed() {
            let scores = &mut scratch.scores;
            scores.resize(listed.count(), 0.0);
            listed.scores(w, x, &mut scratch.task, scores);
            if scale != 1.0 {
                for score in scores.iter_mut() {
                    *score *= scale;
                }
            }
            self.turn_into_violations(i, listed, &mut scratch.task, scores);
            let best = first_max(scores);
            scratch.y = listed.output(best);
            scores[best]
        } else if self.is_counted(i, w, scale, scratch)? {
            self.violation_at(i, w, scale, &scratch.y)?
        } else if self.formulation.rescaling == Rescaling::Margin {
            let term = LossTerm { truth, weight: self.formulation.loss_scale / scale };
            self.task.argmax(w, x, Some(term), &mut scratch.task, &mut scratch.y)?;
            self.violation_at(i, w, scale, &scratch.y)?
        } else {
            self.search_slack(i, w, scale, scratch)?
        };
        if value > 0.0 {
            return Ok(value);
        }
        scratch.y.clone_from(truth);
        Ok(0.0)
    }

    /// `H` of the output y of example i.
    pub fn violation(&self, i: usize, w: &Weights, y: &T::Output) -> Result<f64> {
        self.violation_at(i, w, 1.0, y)
    }

    /// The same at the point `scale * w`.
    pub fn violation_at(&self, i: usize, w: &Weights, scale: f64, y: &T::Output) -> Result<f64> {
        let (x, truth) = (self.input(i), self.truth(i));
        if y == truth {
            return Ok(0.0);
        }
        let margin = scale * self.task.margin(w, x, truth, y)?;
        Ok(self.term(self.task.loss(truth, y)).violation(margin))
    }

    /// `H` of some outputs of example i.
    pub fn violations_of(
        &self,
        i: usize,
        w: &Weights,
        outputs: &[T::Output],
        scratch: &mut OracleScratch<T>,
        values: &mut [f64],
    ) -> Result<()> {
        if let Some(listed) = self.task.listed() {
            let OracleScratch { task, scores, .. } = scratch;
            scores.resize(listed.count(), 0.0);
            listed.scores(w, self.input(i), task, scores);
            self.turn_into_violations(i, listed, task, scores);
            for (value, y) in values.iter_mut().zip(outputs) {
                *value = scratch.scores[listed.index(y)];
            }
            return Ok(());
        }
        for (value, y) in values.iter_mut().zip(outputs) {
            let margin = self.task.margin(w, self.input(i), self.truth(i), y)?;
            *value = self.term(self.task.loss(self.truth(i), y)).violation(margin);
        }
        Ok(())
    }

    /// The argmax of H over counts of errors. Returns false where the formulation does not need it, or the task cannot do it
    /// for this input.
    fn is_counted(&self, i: usize, w: &Weights, scale: f64, scratch: &mut OracleScratch<T>) -> Result<bool> {
        let Some(counted) = self.counted() else { return Ok(false) };
        let (x, truth) = (self.input(i), self.truth(i));
        let at_truth = self.task.score(w, x, truth)?;
        let value = |loss: f64, score: f64| self.term(loss).violation(scale * (at_truth - score));
        counted.argmax_of(w, x, truth, &value, &mut scratch.task, &mut scratch.y)
    }

    /// Slack rescaling by search: the best product `loss * (1 - margin)` on the convex hull of (margin, loss) is an argmax
    /// of `score + lambda * loss` for lambda = (1 - margin) / loss at the best point (half of that where the root of the
    /// loss counts). Finds points of the hull only, so what it returns is a lower bound of H.
    ///
    /// Each argmax also gives an upper bound of H: with `1 - margin + lambda * loss <= m` for all outputs, the product is
    /// largest where both terms are `m / 2`, and `H <= m^2 / (4 lambda)`. Where the root of the loss counts,
    /// `lambda * loss = m / 3` and `H <= 2/3 m sqrt(m / (3 lambda))`.
    fn search_slack(&self, i: usize, w: &Weights, scale: f64, scratch: &mut OracleScratch<T>) -> Result<f64> {
        const TRIES: usize = 25;
        let (x, truth) = (self.input(i), self.truth(i));
        let at_truth = self.task.score(w, x, truth)?;
        let is_root = self.formulation.penalty == Penalty::Quadratic;
        let power = if is_root { 0.5 } else { 1.0 };
        let is_exact = self.task.argmax_is_exact(x);
        scratch.y.clone_from(truth);
        // Below `low` the truth wins, above `high` nothing is violated.
        let (mut low, mut high) = (0.0, f64::INFINITY);
        let (mut best, mut at_most, mut lambda) = (0.0, f64::INFINITY, 1.0);
        for _ in 0..TRIES {
            let term = LossTerm { truth, weight: lambda / scale };
            self.task.argmax(w, x, Some(term), &mut scratch.task, &mut scratch.trial)?;
            let loss = self.task.loss(truth, &scratch.trial);
            let score = self.task.score(w, x, &scratch.trial)?;
            let rest = 1.0 - scale * (at_truth - score);
            let most = if is_exact { Some(score + lambda / scale * loss) } else { self.task.bound(&scratch.task) };
            if let Some(most) = most {
                // The truth alone has 1: m is not negative.
                let m = (1.0 - scale * (at_truth - most)).max(1.0);
                let (loss, rest) =
                    if is_root { (m / (3.0 * lambda), 2.0 / 3.0 * m) } else { (0.5 * m / lambda, 0.5 * m) };
                at_most = at_most.min(self.term(loss).violation(1.0 - rest));
            }
            let mut next = f64::NAN;
            if loss == 0.0 {
                low = lambda;
            } else if rest <= 0.0 {
                high = lambda;
            } else {
                let value = self.term(loss).violation(1.0 - rest);
                if value > best {
                    best = value;
                    scratch.y.clone_from(&scratch.trial);
                }
                next = power * rest / loss;
            }
            if !(next > low && next < high) {
                next = if high.is_finite() { 0.5 * (low + high) } else { 4.0 * low.max(lambda) };
            }
            if (next - lambda).abs() <= 1e-12 * lambda {
                break;
            }
            lambda = next;
        }
        scratch.searched_at_most = Some(at_most);
        Ok(best)
    }

    /// Emits `factor * dpsi_i(y)`.
    pub fn emit(&self, i: usize, y: &T::Output, factor: f64, sink: &mut impl Sink) -> Result<()> {
        self.task.difference(self.input(i), self.truth(i), y, &mut Scaled { sink, factor })
    }

    /// How one example's H enters the sum: H or H^2/2.
    pub fn slack(&self, h: f64) -> f64 {
        self.formulation.slack(h)
    }
}

/// With the hard margin and margin rescaling an error that costs nothing would still have to score below the truth, by
/// any margin however small: no multiple of a w that fails there would do, so no primal value could be given.
fn check_errors_cost<T: Task>(task: &T, outputs: &[T::Output]) -> Result<()> {
    let Some(listed) = task.listed() else { return Ok(()) };
    let mut scratch = T::Scratch::default();
    let free = |y: &T::Output| {
        let at = listed.index(y);
        listed.losses(y, &mut scratch).iter().enumerate().any(|(k, &loss)| k != at && loss == 0.0)
    };
    if outputs.iter().any(free) {
        let rule = "the hard margin with margin rescaling needs a positive loss for every error; take slack rescaling, \
                    or give each error a cost";
        return Err(Error::setting("penalty", rule));
    }
    Ok(())
}
