//! The laws that a task must obey, for our tasks and for yours.
//!
//! ```
//! use maxmargin::sparse::SparseView;
//! use maxmargin::tasks::binary::Binary;
//! use maxmargin::testing::check_task;
//!
//! let x = SparseView::new(&[0, 2], &[1.0, -0.5]);
//! check_task(&Binary::new(3), &[(x, 1), (x, 0)], 7).unwrap();
//! ```

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::features::{Accumulate, Block, Collect, Sink};
use crate::sparse::{SparseView, dot};
use crate::task::{Listed, LossTerm, Losses, Task};
use crate::weights::Weights;

/// The lambdas that the argmax is asked with; None: without loss.
const LAMBDAS: [Option<f64>; 5] = [None, Some(0.0), Some(0.3), Some(1.0), Some(20.0)];

/// Scales of the random weights: from where the loss decides to where it hardly matters.
const SCALES: [f64; 5] = [0.0, 0.1, 1.0, 1.0, 10.0];

/// Rounding that is forgiven, as a share of the numbers that are summed.
const ROUNDING: f64 = 1e-9;

/// Checks the laws of [`Task`] on these examples, with weights drawn at random:
///
/// - the blocks do not overlap, and every part lies within a block of the task;
/// - every example passes [`Task::check`], and so does every output that the argmax gives, which is the same after it was
///   saved and read;
/// - the score of an output is the inner product of w with its features;
/// - the loss is finite, not negative, zero on the truth, and at most [`Task::max_loss`];
/// - the argmax, with and without a loss term, is no worse than the truth and than the argmaxes of all other weights and
///   loss terms, and, where the outputs are listed, than every output; it gives the same answer when asked
///   again, whatever was left in its scratch;
/// - the list of outputs, where there is one, agrees with the scores and losses one by one.
///
/// The first law that is broken is told in words, with the example (counted from 1) on which it is.
///
/// ```text
/// example 2: argmax: with lambda = 1 it gives 3 (value 0.25), but 0 has value 1.5
/// ```
pub fn check_task<T: Task>(
    task: &T,
    examples: &[(T::Input<'_>, T::Output)],
    seed: u64,
) -> std::result::Result<(), String> {
    check_blocks(task.blocks())?;
    if let Some(listed) = task.listed() {
        check_list(listed)?;
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let weights: Vec<Weights> = SCALES.iter().map(|&scale| draw(task.dimension(), scale, &mut random)).collect();
    let mut scratch = T::Scratch::default();
    for (i, (x, truth)) in examples.iter().enumerate() {
        let mut example = Example { task, x: *x, truth, outputs: vec![truth.clone()] };
        example.check(&weights, &mut scratch).map_err(|what| format!("example {}: {what}", i + 1))?;
    }
    Ok(())
}

fn draw(d: usize, scale: f64, random: &mut Xoshiro256PlusPlus) -> Weights {
    let mut uniform = || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    Weights::from((0..d).map(|_| scale * (2.0 * uniform() - 1.0)).collect::<Vec<_>>())
}

fn check_blocks(blocks: &[Block]) -> std::result::Result<(), String> {
    let mut sorted: Vec<&Block> = blocks.iter().filter(|b| !b.is_empty()).collect();
    sorted.sort_by_key(|b| b.base);
    for pair in sorted.windows(2) {
        if pair[0].base + pair[0].len() > pair[1].base {
            return Err(format!("blocks: {:?} and {:?} overlap", pair[0], pair[1]));
        }
    }
    Ok(())
}

fn check_list<T: Task>(listed: &dyn Listed<T>) -> std::result::Result<(), String> {
    if listed.count() == 0 {
        return Err("list: no output".into());
    }
    for k in 0..listed.count() {
        let y = listed.output(k);
        let back = listed.index(&y);
        if back != k {
            return Err(format!("list: output {k} is {y:?}, whose index is {back}"));
        }
    }
    Ok(())
}

fn close(a: f64, b: f64, size: f64) -> bool {
    (a - b).abs() <= ROUNDING * (1.0 + size)
}

/// Finds the first part that is not within a block of the task.
struct Within<'a> {
    blocks: &'a [Block],
    outside: Option<String>,
}

impl Sink for Within<'_> {
    fn part(&mut self, block: Block, slot: u32, phi: SparseView<'_>, scale: f64) {
        let fault = if !self.blocks.contains(&block) {
            format!("a part in {block:?}, which is no block of the task")
        } else if slot >= block.width {
            format!("a part in slot {slot} of {block:?}")
        } else if let Some(j) = phi.indices().iter().find(|&&j| j >= block.rows) {
            format!("a part with feature {j} in {block:?}")
        } else if !scale.is_finite() || phi.values().iter().any(|v| !v.is_finite()) {
            "a part that is not finite".into()
        } else {
            return;
        };
        self.outside.get_or_insert(fault);
    }
}

/// An example, and the outputs that were met so far.
struct Example<'t, 'x, T: Task> {
    task: &'t T,
    x: T::Input<'x>,
    truth: &'t T::Output,
    outputs: Vec<T::Output>,
}

type Checked = std::result::Result<(), String>;

impl<T: Task> Example<'_, '_, T> {
    fn check(&mut self, weights: &[Weights], scratch: &mut T::Scratch) -> Checked {
        self.task.check(self.x, self.truth).map_err(|what| format!("check: {what}"))?;
        let mut asked = Vec::new();
        for w in weights {
            for lambda in LAMBDAS {
                let y = self.argmax(w, lambda, scratch)?;
                if !self.outputs.contains(&y) {
                    self.outputs.push(y.clone());
                }
                asked.push((w, lambda, y));
            }
        }
        if let Some(listed) = self.task.listed() {
            self.check_listed(listed, weights)?;
        }
        for y in &self.outputs {
            self.check_saved(y)?;
            self.check_loss(y)?;
            self.check_features(y, weights)?;
        }
        for (w, lambda, y) in &asked {
            self.check_argmax(w, *lambda, y, scratch)?;
        }
        Ok(())
    }

    fn argmax(
        &self,
        w: &Weights,
        lambda: Option<f64>,
        scratch: &mut T::Scratch,
    ) -> std::result::Result<T::Output, String> {
        let mut y = T::Output::default();
        let loss = lambda.map(|weight| LossTerm { truth: self.truth, weight });
        self.task.argmax(w, self.x, loss, scratch, &mut y).map_err(|e| format!("argmax: {e}"))?;
        Ok(y)
    }

    fn score(&self, w: &Weights, y: &T::Output) -> std::result::Result<f64, String> {
        self.task.score(w, self.x, y).map_err(|e| format!("score: {e}"))
    }

    /// Training is saved with the outputs that it has met, and what is read again is checked.
    fn check_saved(&self, y: &T::Output) -> Checked {
        self.task.check(self.x, y).map_err(|what| format!("check: {what} (but {y:?} is an output of this task)"))?;
        let bytes = postcard::to_stdvec(y).map_err(|e| format!("output: {y:?} cannot be saved: {e}"))?;
        match postcard::from_bytes::<T::Output>(&bytes) {
            Ok(read) if read == *y => Ok(()),
            Ok(read) => Err(format!("output: {y:?} was saved, but {read:?} read again")),
            Err(e) => Err(format!("output: {y:?} was saved, but cannot be read: {e}")),
        }
    }

    fn check_loss(&self, y: &T::Output) -> Checked {
        let (loss, max) = (self.task.loss(self.truth, y), self.task.max_loss(self.truth));
        if !(loss >= 0.0 && loss.is_finite()) {
            return Err(format!("loss: {loss} of {y:?} (a loss is finite and not negative)"));
        }
        if y == self.truth && loss != 0.0 {
            return Err(format!("loss: {loss} of the truth {y:?} (it must be 0)"));
        }
        if loss > max + ROUNDING * (1.0 + max) {
            return Err(format!("max_loss: {max}, but {y:?} has loss {loss}"));
        }
        Ok(())
    }

    fn check_features(&self, y: &T::Output, weights: &[Weights]) -> Checked {
        let emitted = |e| format!("features: {e}");
        let mut within = Within { blocks: self.task.blocks(), outside: None };
        self.task.features(self.x, y, &mut within).map_err(emitted)?;
        if let Some(outside) = within.outside {
            return Err(format!("features: {y:?} has {outside}"));
        }
        let mut collect = Collect::default();
        self.task.features(self.x, y, &mut collect).map_err(emitted)?;
        let mut dense = vec![0.0; self.task.dimension()];
        self.task.features(self.x, y, &mut Accumulate { sum: &mut dense, factor: 1.0 }).map_err(emitted)?;
        for w in weights {
            let score = self.score(w, y)?;
            let size: f64 = dense.iter().zip(w.as_slice()).map(|(a, b)| (a * b).abs()).sum();
            let collected: f64 = collect.merged().iter().map(|&(j, v)| v * w.as_slice()[j as usize]).sum();
            for inner in [collected, dot(&dense, w.as_slice())] {
                if !close(score, inner, size) {
                    return Err(format!("score: {score} of {y:?}, but its features give {inner}"));
                }
            }
        }
        Ok(())
    }

    /// `<w, psi(x, y)> + lambda * D(truth, y)`
    fn value(&self, w: &Weights, lambda: Option<f64>, y: &T::Output) -> std::result::Result<f64, String> {
        Ok(self.score(w, y)? + lambda.map_or(0.0, |lambda| lambda * self.task.loss(self.truth, y)))
    }

    fn check_argmax(&self, w: &Weights, lambda: Option<f64>, y: &T::Output, scratch: &mut T::Scratch) -> Checked {
        let term = lambda.map_or("without loss".into(), |lambda| format!("with lambda = {lambda}"));
        let value = self.value(w, lambda, y)?;
        for other in &self.outputs {
            let better = self.value(w, lambda, other)?;
            if better > value && !close(better, value, value.abs()) {
                return Err(format!("argmax: {term} it gives {y:?} (value {value}), but {other:?} has value {better}"));
            }
        }
        for scratch in [scratch, &mut T::Scratch::default()] {
            let again = self.argmax(w, lambda, scratch)?;
            if again != *y {
                return Err(format!("argmax: {term} it gives {y:?}, and {again:?} when asked again"));
            }
        }
        Ok(())
    }

    /// The list agrees with the task, and the argmax will be measured against all of it.
    fn check_listed(&mut self, listed: &dyn Listed<T>, weights: &[Weights]) -> Checked {
        let count = listed.count();
        for y in &self.outputs {
            let k = listed.index(y);
            if k >= count || listed.output(k) != *y {
                return Err(format!("list: {y:?} has index {k}, where it does not stand"));
            }
        }
        let mut scratch = T::Scratch::default();
        let losses = listed.losses(self.truth, &mut scratch);
        if losses.len() != count {
            return Err(format!("list: {} losses for {count} outputs", losses.len()));
        }
        self.outputs = (0..count).map(|k| listed.output(k)).collect();
        for (y, &listed) in self.outputs.iter().zip(losses) {
            let loss = self.task.loss(self.truth, y);
            if !close(loss, listed, loss.abs()) {
                return Err(format!("list: loss {listed} of {y:?}, but loss() gives {loss}"));
            }
        }
        if let Some(stacked) = listed.stacked() {
            self.check_all_losses(stacked.all_losses(), listed.index(self.truth))?;
        }
        let mut scores = vec![f64::NAN; count];
        for w in weights {
            listed.scores(w, self.x, &mut scratch, &mut scores);
            for (y, &listed) in self.outputs.iter().zip(&scores) {
                let score = self.score(w, y)?;
                if !close(score, listed, score.abs()) {
                    return Err(format!("list: score {listed} of {y:?}, but score() gives {score}"));
                }
            }
        }
        Ok(())
    }

    /// Losses by the places of outputs in the list, one by one and row by row.
    fn check_all_losses(&self, losses: Losses<'_>, truth: usize) -> Checked {
        let mut room = vec![f64::NAN; 1];
        let row = losses.row(truth, &mut room);
        if row.len() != self.outputs.len() {
            return Err(format!("all_losses: {} losses for {} outputs", row.len(), self.outputs.len()));
        }
        for (k, (y, &in_row)) in self.outputs.iter().zip(row).enumerate() {
            let loss = self.task.loss(self.truth, y);
            if let Some(told) = [losses.of(truth, k), in_row].into_iter().find(|&told| !close(loss, told, loss.abs())) {
                return Err(format!("all_losses: {told} of {y:?}, but loss() gives {loss}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::error::Result;
    use crate::task::{Places, Stacked, first_max};

    const LOSSES: [[f64; 3]; 3] = [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]];
    const NEGATIVE: [[f64; 3]; 3] = [[0.0, 1.0, -2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]];
    const ON_TRUTH: [[f64; 3]; 3] = [[0.0, 1.0, 2.0], [1.0, 0.5, 1.0], [2.0, 1.0, 0.0]];

    /// The one thing that is wrong with a [`Broken`].
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Fault {
        None,
        BlocksOverlap,
        CheckFails,
        ForeignBlock,
        SlotOutside,
        RowOutside,
        NotFinite,
        ScoreForgetsPart,
        LossNegative,
        LossOnTruth,
        MaxLossTooSmall,
        ArgmaxForgetsLoss,
        ArgmaxForgetsLambda,
        ArgmaxLossWithoutTerm,
        ArgmaxForgetsPart,
        ArgmaxWanders,
        ArgmaxReadsScratch,
        ListEmpty,
        ListIndex,
        ListTooShort,
        ListScores,
        ListLosses,
        ListLossesShort,
        AllLosses,
        AllLossesShort,
    }

    /// Three classes with a second block for a bias, and one fault.
    struct Broken {
        fault: Fault,
        is_listed: bool,
        blocks: Vec<Block>,
        calls: AtomicU32,
    }

    impl Broken {
        fn new(fault: Fault, is_listed: bool) -> Self {
            let base = if fault == Fault::BlocksOverlap { 5 } else { 6 };
            let blocks = vec![Block { base, rows: 1, width: 3 }, Block { base: 0, rows: 2, width: 3 }];
            Self { fault, is_listed, blocks, calls: AtomicU32::new(0) }
        }

        fn has(&self, fault: Fault) -> bool {
            self.fault == fault
        }

        fn table(&self) -> &[[f64; 3]; 3] {
            match self.fault {
                Fault::LossNegative => &NEGATIVE,
                Fault::LossOnTruth => &ON_TRUTH,
                _ => &LOSSES,
            }
        }

        fn all_scores(&self, w: &Weights, x: SparseView<'_>, scores: &mut [f64]) {
            let mut bias = [0.0; 3];
            w.scores(self.blocks[0], SparseView::new(&[0], &[1.0]), &mut bias);
            w.scores(self.blocks[1], x, scores);
            if !self.has(Fault::ArgmaxForgetsPart) {
                scores.iter_mut().zip(bias).for_each(|(s, b)| *s += b);
            }
        }
    }

    impl Task for Broken {
        type Input<'a> = SparseView<'a>;
        type Output = u32;
        type Scratch = u32;

        fn blocks(&self) -> &[Block] {
            &self.blocks
        }

        fn features(&self, x: SparseView<'_>, y: &u32, sink: &mut impl Sink) -> Result<()> {
            sink.part(self.blocks[1], *y, x, 1.0);
            let one = SparseView::new(&[0], if self.has(Fault::NotFinite) { &[f32::NAN] } else { &[1.0] });
            match self.fault {
                Fault::ForeignBlock => sink.part(Block { base: 0, rows: 1, width: 3 }, *y, one, 1.0),
                Fault::SlotOutside => sink.part(self.blocks[1], 3, one, 1.0),
                Fault::RowOutside => sink.part(self.blocks[1], *y, SparseView::new(&[2], &[1.0]), 1.0),
                _ => sink.part(self.blocks[0], *y, one, 1.0),
            }
            Ok(())
        }

        fn loss(&self, truth: &u32, y: &u32) -> f64 {
            self.table()[*truth as usize][*y as usize]
        }

        fn max_loss(&self, truth: &u32) -> f64 {
            if self.has(Fault::MaxLossTooSmall) { 1.0 } else { LOSSES[*truth as usize].into_iter().fold(0.0, f64::max) }
        }

        fn argmax(
            &self,
            w: &Weights,
            x: SparseView<'_>,
            loss: Option<LossTerm<'_, u32>>,
            scratch: &mut u32,
            y: &mut u32,
        ) -> Result<()> {
            let mut scores = [0.0; 3];
            self.all_scores(w, x, &mut scores);
            let term = match loss {
                None if self.has(Fault::ArgmaxLossWithoutTerm) => Some((1.0, &2)),
                Some(_) if self.has(Fault::ArgmaxForgetsLoss) => None,
                Some(loss) if self.has(Fault::ArgmaxForgetsLambda) => Some((1.0, loss.truth)),
                loss => loss.map(|l| (l.weight, l.truth)),
            };
            if let Some((weight, truth)) = term {
                scores.iter_mut().zip(self.table()[*truth as usize]).for_each(|(s, loss)| *s += weight * loss);
            }
            let mut best = first_max(&scores);
            let calls = self.calls.fetch_add(1, Ordering::Relaxed);
            if self.has(Fault::ArgmaxWanders) && calls % 2 == 1 {
                best = (0..3).rev().max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap();
                best = (best..3).rev().find(|&k| scores[k] == scores[best]).unwrap();
            }
            if self.has(Fault::ArgmaxReadsScratch) && scores.iter().all(|&s| s == scores[0]) {
                best = *scratch as usize;
            }
            *scratch = best as u32;
            *y = best as u32;
            Ok(())
        }

        fn check(&self, _: SparseView<'_>, y: &u32) -> std::result::Result<(), String> {
            if self.has(Fault::CheckFails) && *y == 1 { Err("class 1 is not wanted".into()) } else { Ok(()) }
        }

        fn listed(&self) -> Option<&dyn Listed<Self>> {
            self.is_listed.then_some(self)
        }

        fn score(&self, w: &Weights, x: SparseView<'_>, y: &u32) -> Result<f64> {
            let mut sink = crate::weights::Score { w, total: 0.0 };
            self.features(x, y, &mut sink)?;
            let forgotten = if self.has(Fault::ScoreForgetsPart) { w.as_slice()[6 + *y as usize] } else { 0.0 };
            Ok(sink.total - forgotten)
        }
    }

    impl Listed<Broken> for Broken {
        fn count(&self) -> usize {
            match self.fault {
                Fault::ListEmpty => 0,
                Fault::ListTooShort => 2,
                _ => 3,
            }
        }

        fn output(&self, k: usize) -> u32 {
            k as u32
        }

        fn index(&self, y: &u32) -> usize {
            if self.has(Fault::ListIndex) { 2 - *y as usize } else { *y as usize }
        }

        fn scores(&self, w: &Weights, x: SparseView<'_>, _: &mut u32, scores: &mut [f64]) {
            let mut all = [0.0; 3];
            self.all_scores(w, x, &mut all);
            scores.copy_from_slice(&all[..scores.len()]);
            if self.has(Fault::ListScores) {
                scores.swap(0, 1);
            }
        }

        fn losses<'s>(&'s self, truth: &u32, _: &'s mut u32) -> &'s [f64] {
            let row = &self.table()[*truth as usize];
            match self.fault {
                Fault::ListLosses => &LOSSES[0],
                Fault::ListLossesShort => &row[..2],
                _ => &row[..self.count()],
            }
        }

        fn stacked(&self) -> Option<&dyn Stacked<Self>> {
            Some(self)
        }
    }

    impl Stacked<Broken> for Broken {
        fn phis<'s, 'a>(&self, inputs: &'s [<Self as Task>::Input<'a>]) -> &'s [SparseView<'a>] {
            inputs
        }

        fn places(&self) -> Places<'_> {
            Places::Slots(self.blocks[1])
        }

        fn all_losses(&self) -> Losses<'_> {
            match self.fault {
                Fault::AllLosses => Losses::Table(3, [LOSSES[0]; 3].as_flattened()),
                Fault::AllLossesShort => Losses::Table(2, self.table().as_flattened()),
                _ => Losses::Table(3, self.table().as_flattened()),
            }
        }
    }

    fn verdict(fault: Fault, is_listed: bool) -> std::result::Result<(), String> {
        let x = [SparseView::new(&[0, 1], &[1.0, -0.5]), SparseView::new(&[1], &[2.0]), SparseView::new(&[], &[])];
        check_task(&Broken::new(fault, is_listed), &[(x[0], 0), (x[1], 1), (x[2], 2)], 11)
    }

    #[test]
    fn a_sound_task_passes() {
        for is_listed in [false, true] {
            verdict(Fault::None, is_listed).unwrap();
        }
    }

    #[test]
    fn every_fault_is_found_and_named() {
        let faults = [
            (Fault::BlocksOverlap, "blocks: "),
            (Fault::CheckFails, "check: class 1 is not wanted"),
            (Fault::ForeignBlock, "example 1: features: "),
            (Fault::SlotOutside, "example 1: features: "),
            (Fault::RowOutside, "example 1: features: "),
            (Fault::NotFinite, "example 1: features: "),
            (Fault::ScoreForgetsPart, "example 1: score: "),
            (Fault::LossNegative, "example 1: loss: -2"),
            (Fault::LossOnTruth, "example 2: loss: 0.5 of the truth"),
            (Fault::MaxLossTooSmall, "example 1: max_loss: 1"),
            (Fault::ArgmaxForgetsLoss, "example 1: argmax: with lambda = 0.3"),
            (Fault::ArgmaxForgetsLambda, "example 1: argmax: with lambda = 0 "),
            (Fault::ArgmaxLossWithoutTerm, "example 1: argmax: without loss"),
            (Fault::ArgmaxForgetsPart, "example 1: argmax: "),
            (Fault::ArgmaxWanders, "example 1: argmax: without loss it gives"),
            (Fault::ArgmaxReadsScratch, "example 1: argmax: without loss it gives"),
        ];
        for (fault, message) in faults {
            let said = verdict(fault, false).expect_err(&format!("{fault:?} is not found"));
            assert!(said.contains(message), "{fault:?}: {said}");
            // A task that lists its outputs obeys the same laws; only the score may be caught earlier, by the list.
            let said = verdict(fault, true).expect_err(&format!("{fault:?} is not found in a listed task"));
            let listed = said.contains("list: ") && matches!(fault, Fault::ScoreForgetsPart | Fault::ArgmaxForgetsPart);
            let foreign = said.contains("list: score") && message.contains("features");
            assert!(said.contains(message) || listed || foreign, "{fault:?}, listed: {said}");
        }
    }

    #[test]
    fn every_fault_of_the_list_is_found_and_named() {
        let faults = [
            (Fault::ListEmpty, "list: no output"),
            (Fault::ListIndex, "list: output 0 is 0, whose index is 2"),
            (Fault::ListTooShort, "list: 2 has index 2, where it does not stand"),
            (Fault::ListScores, "list: score "),
            (Fault::ListLosses, "example 2: list: loss 0 of 0, but loss() gives 1"),
            (Fault::ListLossesShort, "list: 2 losses for 3 outputs"),
            (Fault::AllLosses, "example 2: all_losses: 0 of 0, but loss() gives 1"),
            (Fault::AllLossesShort, "all_losses: 2 losses for 3 outputs"),
        ];
        for (fault, message) in faults {
            let said = verdict(fault, true).expect_err(&format!("{fault:?} is not found"));
            assert!(said.contains(message), "{fault:?}: {said}");
        }
    }
}
