//! A task of your own: a tagger that labels every token of a sequence, with Viterbi as its argmax.
//!
//! ```text
//! <w, psi(x, y)> = sum_t emission[x_t, y_t] + sum_t transition[y_{t-1}, y_t]
//! D(truth, y)    = number of wrong tags
//! ```
//!
//! Joint features, a loss and an argmax are all that a task has to give; solvers, cache and certificate come with the
//! library. `cargo run --release --example own_task`

use maxmargin::features::{Block, Sink};
use maxmargin::problem::{Formulation, Problem};
use maxmargin::solver::cutting_plane::CuttingPlane;
use maxmargin::solver::{Settings, Solver};
use maxmargin::sparse::SparseView;
use maxmargin::task::{LossTerm, Task, first_max};
use maxmargin::testing::check_task;
use maxmargin::weights::Weights;

/// Tags for sequences of symbols.
struct Tagger {
    /// Two blocks: emission (a row a symbol, a slot a tag) and transition (a row for the tag before, a slot a tag).
    blocks: [Block; 2],
}

/// The tables of Viterbi's algorithm, kept by the caller so that a warm argmax allocates nothing.
#[derive(Default)]
struct Tables {
    /// Scores of all tags of a token.
    scores: Vec<f64>,
    /// Score of the best way to end in each tag, at this token and at the last.
    best: Vec<f64>,
    last: Vec<f64>,
    /// For each token and tag the tag before it on the best way.
    from: Vec<u32>,
}

impl Tagger {
    fn new(symbols: u32, tags: u32) -> Self {
        let emission = Block { base: 0, rows: symbols, width: tags };
        let transition = Block { base: emission.len(), rows: tags, width: tags };
        Self { blocks: [emission, transition] }
    }

    fn tags(&self) -> usize {
        self.blocks[0].width as usize
    }
}

impl Task for Tagger {
    type Input<'a> = &'a [u32];
    type Output = Vec<u32>;
    type Scratch = Tables;

    fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// psi(x, y), emitted part by part: a symbol (or the tag before) in the slot of a tag.
    fn features(&self, x: &[u32], y: &Vec<u32>, sink: &mut impl Sink) -> maxmargin::Result<()> {
        let [emission, transition] = self.blocks;
        for (t, (&symbol, &tag)) in x.iter().zip(y).enumerate() {
            sink.part(emission, tag, SparseView::new(&[symbol], &[1.0]), 1.0);
            if t > 0 {
                sink.part(transition, tag, SparseView::new(&[y[t - 1]], &[1.0]), 1.0);
            }
        }
        Ok(())
    }

    fn loss(&self, truth: &Vec<u32>, y: &Vec<u32>) -> f64 {
        truth.iter().zip(y).filter(|(a, b)| a != b).count() as f64
    }

    fn max_loss(&self, truth: &Vec<u32>) -> f64 {
        truth.len() as f64
    }

    /// `argmax_y <w, psi(x, y)> + weight * D(truth, y)`: the loss adds up over the tokens, so it goes into their scores.
    fn argmax(
        &self,
        w: &Weights,
        x: &[u32],
        loss: Option<LossTerm<'_, Vec<u32>>>,
        tables: &mut Tables,
        y: &mut Vec<u32>,
    ) -> maxmargin::Result<()> {
        let ([emission, transition], k) = (self.blocks, self.tags());
        let Tables { scores, best, last, from } = tables;
        scores.resize(k, 0.0);
        best.clear();
        best.resize(k, 0.0);
        from.clear();
        from.resize(x.len() * k, 0);
        for (t, &symbol) in x.iter().enumerate() {
            w.scores(emission, SparseView::new(&[symbol], &[1.0]), scores);
            if let Some(loss) = loss {
                let right = loss.truth[t] as usize;
                scores.iter_mut().enumerate().filter(|s| s.0 != right).for_each(|s| *s.1 += loss.weight);
            }
            last.clone_from(best);
            for tag in 0..k {
                let mut highest = 0.0;
                if t > 0 {
                    let way = |before: usize| last[before] + w.as_slice()[transition.at(before as u32, tag as u32)];
                    let mut before = 0;
                    // >, not >=: ties go to the earlier tag, so that runs agree.
                    (1..k).for_each(|tag| before = if way(tag) > way(before) { tag } else { before });
                    from[t * k + tag] = before as u32;
                    highest = way(before);
                }
                best[tag] = highest + scores[tag];
            }
        }
        y.clear();
        y.resize(x.len(), 0);
        let mut tag = first_max(best) as u32;
        for t in (0..x.len()).rev() {
            y[t] = tag;
            tag = from[t * k + tag as usize];
        }
        Ok(())
    }

    /// Fails at the door: `Problem::new` calls this for every example.
    fn check(&self, x: &[u32], y: &Vec<u32>) -> Result<(), String> {
        let [emission, _] = self.blocks;
        if x.is_empty() || x.len() != y.len() {
            return Err(format!("{} tags for {} symbols (at least one, and as many)", y.len(), x.len()));
        }
        match x.iter().find(|&&s| s >= emission.rows).or(y.iter().find(|&&tag| tag >= emission.width)) {
            Some(number) => Err(format!("{number} is no symbol or tag of this task")),
            None => Ok(()),
        }
    }
}

/// Sequences whose tags stay the same for a while, and symbols that show the tag three times out of five.
fn sequences(count: usize, tags: u32, seed: u64) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
    let mut state = seed;
    let mut below = |n: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % u64::from(n)) as u32
    };
    let mut draw = |_| {
        let mut tag = below(tags);
        (0..20)
            .map(|_| {
                tag = if below(10) == 0 { below(tags) } else { tag };
                (if below(5) < 3 { tag } else { below(tags) }, tag)
            })
            .unzip()
    };
    (0..count).map(&mut draw).unzip()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tags = 4;
    let task = Tagger::new(tags, tags);
    let (symbols, truths) = sequences(200, tags, 1);
    let inputs: Vec<&[u32]> = symbols.iter().map(Vec::as_slice).collect();

    // First the laws: a wrong argmax is found here, not in a model that is a little worse than it could be.
    let some: Vec<_> = inputs.iter().copied().zip(truths.iter().cloned()).take(10).collect();
    check_task(&task, &some, 7)?;
    println!("the task obeys the laws on {} examples", some.len());

    // The outputs are too many to list, so the solver asks the argmax, and keeps 10 of its answers for each example: most
    // rounds are built from these.
    let formulation = Formulation { c: 10.0, ..Formulation::default() };
    let problem = Problem::new(&task, &inputs, &truths, None, formulation)?;
    let solver = CuttingPlane { cache: Some(10), ..CuttingPlane::default() };
    let solution = solver.solve(&problem, &Settings::default(), &mut ())?;
    let report = &solution.report;
    println!("{:?}, certificate {:?}", report.status, report.certificate);
    println!("objective {:.3} is at most {:.3} above its minimum", report.primal, report.gap);
    println!("{} rounds, {:.0} of them asked the argmax", report.rounds, report.passes);

    // Prediction is the argmax without a loss term.
    let (unseen, expected) = sequences(200, tags, 2);
    let (mut tables, mut y) = (Tables::default(), Vec::new());
    let (mut right, mut shown, mut all) = (0, 0, 0);
    for (x, truth) in unseen.iter().zip(&expected) {
        task.argmax(&solution.weights, x, None, &mut tables, &mut y)?;
        right += y.iter().zip(truth).filter(|(a, b)| a == b).count();
        shown += x.iter().zip(truth).filter(|(a, b)| a == b).count();
        all += truth.len();
    }
    println!("{right} of {all} unseen tags are right; the symbols alone show {shown}");
    Ok(())
}
