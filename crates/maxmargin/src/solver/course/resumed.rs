//! A run that goes on from a saved state, and the checks of one that came from outside.

use super::{Computed, Course, SoFar, Worth};
use crate::error::Result;
use crate::parallel::Pool;
use crate::problem::Problem;
use crate::solver::state::{Reader, check};
use crate::weights::Weights;

/// Relative rounding error of a P that was carried along from round to round.
const CARRIED: f64 = 1e-9;

/// A saved state, at the beginning of the solver's own part.
pub(in crate::solver) struct Saved<'s> {
    /// Reads that part.
    pub(in crate::solver) reader: Reader<'s>,
    /// What C has been multiplied by since, where it is another. The course is a new one then.
    pub(in crate::solver) growth: Option<f64>,
    /// The state came from outside: numbers on which the bound rests are to be computed anew.
    pub(in crate::solver) is_foreign: bool,
}

/// A dual value that was computed anew from a state that came from outside.
#[derive(Debug, Clone, Copy)]
pub(in crate::solver) struct Rederived {
    pub(in crate::solver) dual: f64,
    /// The size of the numbers that were added up.
    pub(in crate::solver) scale: f64,
    /// Was it computed from the dual variables and the examples alone, so that the bound does not rest on the state?
    pub(in crate::solver) from_examples: bool,
}

impl<'o> Course<'o> {
    /// Goes back to where the state in the settings was saved, if there is one; the solver does the same with what is
    /// returned. With another C the course is a new one that begins with P of the best point so far.
    pub(in crate::solver) fn resume(&mut self, problem: &Problem<'_>, pool: &Pool) -> Result<Option<Saved<'o>>> {
        let Some(state) = &self.settings.resume else { return Ok(None) };
        let (header, mut reader) = Reader::new(state)?;
        let growth = self.header.resumes(&header)?;
        let so_far: SoFar = reader.take()?;
        so_far.check(self.has_kernel, &self.so_far.best)?;
        if growth.is_some() {
            let primal = self.offer_exact(problem, &Weights::from(so_far.best), pool)?;
            check(primal.is_finite(), "weights")?;
            self.so_far.verified = true;
        } else {
            self.earlier = so_far.seconds;
            self.so_far = so_far;
            if state.is_foreign() {
                self.check_values()?;
            }
        }
        (self.is_foreign, self.rests_on_state) = (state.is_foreign(), state.is_foreign());
        Ok(Some(Saved { reader, growth, is_foreign: state.is_foreign() }))
    }

    /// Computes P of the best point of a state that came from outside, and refuses the state where it tells another P, or a
    /// bound above P. With a kernel both are computed anew at the end of each run.
    fn check_values(&self) -> Result<()> {
        let best = self.so_far.best.weights();
        if best.has_coefficients() || !self.so_far.primal.is_finite() {
            return Ok(());
        }
        let computed = (self.objective)(&best)?;
        check(self.is_primal(self.so_far.primal, computed), "the objective")?;
        let error = computed.error.max(CARRIED * computed.primal);
        check(self.so_far.worth == Worth::Estimate || self.so_far.dual <= self.so_far.primal + error, "the bound")
    }

    /// Can `told` be P of weights whose P was computed? A search may find less than another one has found, up to an upper
    /// bound.
    pub(super) fn is_primal(&self, told: f64, Computed { primal, error, at_most }: Computed) -> bool {
        let error = error.max(CARRIED * primal);
        told >= primal - error && (self.primal_is_upper || told <= at_most.unwrap_or(primal) + error)
    }

    /// After a state that came from outside was read: refuses it where it tells a better bound than its dual variables give.
    pub(in crate::solver) fn check_bound(&mut self, value: Rederived) -> Result<()> {
        /// Relative rounding error of a long sum.
        const ROUNDING: f64 = 1e-12;
        // With a kernel D is computed anew at the end of each run.
        let is_computed_anew = self.so_far.best.weights().has_coefficients();
        if self.has_bound() && !is_computed_anew && self.so_far.dual > value.dual + ROUNDING * value.scale {
            return check(false, "the bound");
        }
        self.rests_on_state &= !value.from_examples;
        Ok(())
    }
}
