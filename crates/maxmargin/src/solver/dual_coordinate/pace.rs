//! How fast coordinate steps close the gap, and when steps on a face take over.

use serde::{Deserialize, Serialize};

use super::coordinates::{Climb, End, Seen};
use crate::numeric::ln;
use crate::solver::state::is_sound;

/// How fast coordinate steps close the gap.
#[derive(Serialize, Deserialize)]
pub(super) struct Pace {
    /// Looks since the start.
    spent: f64,
    /// Looks since the last exact pass.
    looks: f64,
    /// Looks of coordinate steps since the last steps on a face, and how many of the latter they are worth.
    unclimbed: f64,
    stretch: f64,
    /// Looks so far and the logarithm of the gap seen, of the last passes.
    recent: Vec<(f64, f64)>,
    /// The largest gap seen since the last exact pass.
    most: f64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { spent: 0.0, looks: 0.0, unclimbed: 0.0, stretch: 1.0, recent: Vec::new(), most: 0.0 }
    }
}

impl Pace {
    const PASSES: usize = 4;

    /// Can it be what was saved?
    pub(super) fn is_sound(&self) -> bool {
        let counts = [self.spent, self.looks, self.unclimbed, self.stretch, self.most];
        counts.into_iter().all(|count| count >= 0.0 && is_sound(count)) && self.recent.len() <= 2 * Self::PASSES
    }

    /// Looks since the start.
    pub(super) fn spent(&self) -> f64 {
        self.spent
    }

    /// Looks since the last exact pass.
    pub(super) fn looks(&self) -> f64 {
        self.looks
    }

    /// Looks that the next steps on a face may take.
    pub(super) fn allowance(&self) -> f64 {
        self.stretch * self.unclimbed
    }

    /// Has the gap that passes see fallen so far that those who do not take part should be looked at again?
    pub(super) fn has_fallen(&self, seen: &Seen) -> bool {
        const FALLEN: f64 = 0.1;
        seen.gap <= FALLEN * self.most
    }

    pub(super) fn after(&mut self, seen: &Seen) {
        self.most = self.most.max(seen.gap);
        self.add(seen.looks as f64);
        if self.recent.len() == 2 * Self::PASSES {
            self.recent.remove(0);
        }
        self.recent.push((self.looks, ln(seen.gap.max(f64::MIN_POSITIVE))));
    }

    /// After an exact pass, which wakes all examples, the gap that passes see is another.
    pub(super) fn begin_again(&mut self) {
        self.looks = 0.0;
        self.most = 0.0;
        self.recent.clear();
    }

    /// Looks at a few outputs only cost less.
    pub(super) fn also(&mut self, on_support: &Seen) {
        const COST: f64 = 0.4;
        self.add(COST * on_support.looks as f64);
    }

    fn add(&mut self, looks: f64) {
        self.looks += looks;
        self.spent += looks;
        self.unclimbed += looks;
    }

    /// Will coordinate steps take as long again as they have since the last steps on a face?
    pub(super) fn crawls(&self, target: f64) -> bool {
        self.looks_left(target).is_some_and(|left| left > self.unclimbed)
    }

    /// After steps on a face, which coordinate steps have to follow.
    pub(super) fn climbed(&mut self, climb: Climb) {
        /// Each run of steps begins anew, so the next ones are more where these did not come to an end; fewer where limits
        /// were in the way: the face was not the right one.
        const LONGER: f64 = 2.0;
        const LONGEST: f64 = 64.0;
        if climb.looks > 0 {
            self.add(climb.looks as f64);
            self.unclimbed = 0.0;
            self.stretch = match climb.end {
                End::Allowance => (LONGER * self.stretch).min(LONGEST),
                End::Settled => 1.0,
                End::Limits => self.stretch / LONGER,
            };
            self.recent.clear();
        }
    }

    /// Looks until the gap is the target; None while nothing can be said.
    pub(super) fn looks_left(&self, target: f64) -> Option<f64> {
        if self.recent.len() < Self::PASSES {
            return None;
        }
        let (first, last) = (self.recent.first()?, self.recent.last()?);
        let fall = (first.1 - last.1) / (last.0 - first.0);
        let left = last.1 - ln(target);
        Some(if fall > 0.0 { left / fall } else { f64::INFINITY })
    }
}
