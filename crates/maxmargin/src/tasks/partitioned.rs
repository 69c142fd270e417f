//! Examples that are elsewhere: in partitions, which answer `cut(w)`.
//!
//! The slack of a group of partitions, `H_g(w) = (1/n_g) sum_i H_i(w)`, is a maximum of linear functions of w like that of an
//! example: an output y of the group has one output for each of its examples, their constraints add up to that of y, and the
//! most violated y has the most violated output of each. So a group is an example, and what solves a problem whose examples are
//! at hand solves this one:
//!
//! ```text
//! dpsi(y) = lhs / n_g,   D(y) = rhs / n_g   where   <w, lhs> >= rhs - xi   is the sum of the cuts of its partitions
//! ```
//!
//! With quadratic slack the cuts are tangents of `sum H_i^2 / 2`, and the same holds.

use std::fmt::{self, Debug};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::features::{Block, Sink};
use crate::task::{LossTerm, Task};
use crate::weights::Weights;

/// The partitions, wherever they are.
pub trait Partitions: Sync {
    /// For each group of them the sum of their cuts at w: left-hand side and right-hand side. A pure function of w.
    fn cuts(&self, w: &[f64]) -> Result<Vec<(Vec<f64>, f64)>>;

    /// The sum of the losses of the predictions at w, over all groups.
    fn loss(&self, w: &[f64]) -> Result<f64>;
}

/// What is known of a group of partitions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Facts {
    /// How many examples.
    pub examples: usize,
    /// The sum of their largest losses.
    pub max_loss: f64,
    /// Do their oracles find the maximum?
    pub is_exact: bool,
}

/// All outputs of a group's examples, by what they come to; the default are the truths.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Joint {
    group: u32,
    /// Empty for the truths.
    lhs: Arc<[f64]>,
    /// `D(y)` of the group, or for predictions the mean loss of all.
    loss: f64,
}

impl Joint {
    /// The truths of a group.
    pub fn truths(group: usize) -> Self {
        Self { group: group as u32, ..Self::default() }
    }
}

// Millions of numbers tell nothing.
impl Debug for Joint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "outputs of group {} with loss {} ({} coordinates)", self.group, self.loss, self.lhs.len())
    }
}

/// The cuts at one point.
type Asked = (Vec<f64>, Vec<Joint>);

/// The task of which the groups of partitions are the examples, by their numbers.
pub struct Partitioned<'p> {
    partitions: &'p dyn Partitions,
    facts: Vec<Facts>,
    blocks: [Block; 1],
    /// The last point, and the answers there: all groups are asked together.
    asked: Mutex<Option<Asked>>,
}

impl<'p> Partitioned<'p> {
    /// Groups of partitions of a problem with `dimension` coordinates.
    pub fn new(partitions: &'p dyn Partitions, facts: Vec<Facts>, dimension: usize) -> Result<Self> {
        if let Some(empty) = facts.iter().position(|facts| facts.examples == 0) {
            return Err(Error::Data { example: empty, what: "the group of partitions has no examples".to_owned() });
        }
        let rows = u32::try_from(dimension).map_err(|_| {
            Error::setting("partitions", format!("{dimension} weights are more than {} can be handled", u32::MAX))
        })?;
        Ok(Self { partitions, facts, blocks: [Block { base: 0, rows, width: 1 }], asked: Mutex::new(None) })
    }

    /// Number of examples in all groups.
    pub fn examples(&self) -> usize {
        self.facts.iter().map(|facts| facts.examples).sum()
    }

    /// What each group weighs, where the mean weight is 1.
    pub fn weights(&self) -> Vec<f64> {
        let mean = self.examples() as f64 / self.facts.len() as f64;
        self.facts.iter().map(|facts| facts.examples as f64 / mean).collect()
    }

    /// The most violated outputs of a group.
    fn ask(&self, w: &Weights, group: usize) -> Result<Joint> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let w = w.as_slice();
        if let Some((at, answers)) = &*asked
            && at == w
        {
            return Ok(answers[group].clone());
        }
        let cuts = self.partitions.cuts(w)?;
        let is_sound =
            |(lhs, rhs): &(Vec<f64>, f64)| lhs.len() == w.len() && rhs.is_finite() && lhs.iter().all(|x| x.is_finite());
        if cuts.len() != self.facts.len() || !cuts.iter().all(is_sound) {
            let what =
                format!("the partitions must answer with {} finite cuts of {} numbers", self.facts.len(), w.len());
            return Err(Error::Task(what.into()));
        }
        let joint = |(g, (lhs, rhs)): (usize, (Vec<f64>, f64))| Joint {
            group: g as u32,
            lhs: lhs.into(),
            loss: rhs / self.facts[g].examples as f64,
        };
        let answers: Vec<Joint> = cuts.into_iter().enumerate().map(joint).collect();
        let answer = answers[group].clone();
        *asked = Some((w.to_vec(), answers));
        Ok(answer)
    }
}

impl Task for Partitioned<'_> {
    type Input<'a> = usize;
    type Output = Joint;
    type Scratch = ();

    fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Of psi only differences from the truths are known: those of y, times -1.
    fn features(&self, group: usize, y: &Joint, sink: &mut impl Sink) -> Result<()> {
        if !y.lhs.is_empty() {
            sink.vector(self.blocks[0], &y.lhs, -1.0 / self.facts[group].examples as f64);
        }
        Ok(())
    }

    fn difference(&self, group: usize, _truth: &Joint, y: &Joint, sink: &mut impl Sink) -> Result<()> {
        if !y.lhs.is_empty() {
            sink.vector(self.blocks[0], &y.lhs, 1.0 / self.facts[group].examples as f64);
        }
        Ok(())
    }

    fn loss(&self, _truth: &Joint, y: &Joint) -> f64 {
        y.loss
    }

    fn max_loss(&self, truth: &Joint) -> f64 {
        let facts = &self.facts[truth.group as usize];
        facts.max_loss / facts.examples as f64
    }

    /// Without a loss: the mean loss of all predictions, as that of each group.
    fn argmax(
        &self,
        w: &Weights,
        group: usize,
        loss: Option<LossTerm<'_, Joint>>,
        (): &mut (),
        y: &mut Joint,
    ) -> Result<()> {
        *y = match loss {
            Some(_) => self.ask(w, group)?,
            None if group == 0 => {
                let sum = self.partitions.loss(w.as_slice())?;
                Joint { loss: sum * self.facts.len() as f64 / self.examples() as f64, ..Joint::truths(group) }
            }
            None => Joint::truths(group),
        };
        Ok(())
    }

    fn check(&self, group: usize, y: &Joint) -> std::result::Result<(), String> {
        let is_known = group < self.facts.len() && y.group as usize == group;
        let is_whole = y.lhs.is_empty() || y.lhs.len() == self.dimension();
        if is_known && is_whole && y.loss.is_finite() { Ok(()) } else { Err(format!("no outputs of group {group}")) }
    }

    fn argmax_is_exact(&self, group: usize) -> bool {
        self.facts[group].is_exact
    }
}
