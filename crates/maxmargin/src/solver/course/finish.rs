//! The end of a run: the weights, and the report on them.

use std::borrow::Cow;

use super::{Course, Worth};
use crate::error::Result;
use crate::solver::reported::Values;
use crate::solver::{Certificate, Report, Solution, Status};
use crate::weights::Weights;

impl Course<'_> {
    /// The best weights and the report on them.
    pub(in crate::solver) fn finish(self, status: Status) -> Result<Solution> {
        self.finish_over(status, Weights::default())
    }

    /// The same; the weights may have the memory of others, which the solver needs no longer.
    pub(in crate::solver) fn finish_over(mut self, status: Status, others: Weights) -> Result<Solution> {
        let point = std::mem::replace(&mut self.point, Ok(None))?;
        let weights = std::mem::take(&mut self.so_far.best).spread_over(others);
        let (weights, values) = match self.settled.take().filter(|settled| settled.0 == self.so_far.primal) {
            Some((_, best, values)) => (best.unwrap_or(weights), values),
            None if self.is_estimated || !self.so_far.primal.is_finite() => {
                let primal = self.so_far.primal;
                (weights, Values { primal, primal_error: 0.0, dual: None })
            }
            None => {
                let mut weights = Cow::Owned(weights);
                let values = (self.evaluate)(&mut weights, self.so_far.primal, point.as_ref(), self.so_far.dual)?;
                (weights.into_owned(), values)
            }
        };
        self.so_far.primal = values.primal;
        if self.is_foreign && !(weights.has_coefficients() || self.primal_is_bound) && values.primal.is_finite() {
            // Sums that solvers carry along went through the state too.
            let computed = (self.objective)(&weights)?;
            if !self.is_primal(values.primal, computed) {
                self.so_far.primal = computed.primal;
            }
        }
        if let Some(dual) = values.dual.filter(|_| self.so_far.worth == Worth::Bound && self.so_far.dual.is_finite()) {
            // Slack and norms are not negative.
            self.so_far.dual = dual.max(self.so_far.dual.min(0.0));
        }
        // At the optimum rounding may put the bound above P. More than rounding would be a false bound, which only a state
        // that somebody else wrote may bring.
        let is_above = self.so_far.dual > self.so_far.primal * (1.0 + 1e-6) + 1e-9 * self.c;
        // Or a kernel whose matrix has no feature map once it is rounded: then there is none.
        if is_above && weights.has_coefficients() {
            self.so_far.worth = Worth::Estimate;
        }
        let is_bound = self.is_bound();
        debug_assert!(
            !is_bound || self.settings.resume.is_some() || !is_above,
            "the bound {} is above P = {}",
            self.so_far.dual,
            self.so_far.primal
        );
        self.so_far.dual = self.so_far.dual.min(self.so_far.primal);
        let (primal, dual) = (self.so_far.primal, self.so_far.dual);
        // Slack and norms are never negative, so a bound of 0 tells nothing, unless P is as near to 0 as was asked for.
        let is_nothing = dual <= 0.0 && primal > 0.0 && self.gap() > self.target();
        let certificate = match dual {
            f64::NEG_INFINITY => Certificate::None,
            _ if is_bound && is_nothing => Certificate::None,
            _ if is_bound => Certificate::Exact,
            _ => Certificate::Estimate,
        };
        let gap = certificate.gap(primal, dual);
        let report = Report {
            solver: self.solver,
            status,
            certificate,
            target: self.target(),
            primal: self.so_far.primal,
            primal_error: values.primal_error,
            primal_is_bound: self.primal_is_bound,
            dual,
            gap,
            rests_on_state: self.rests_on_state && certificate == Certificate::Exact,
            rounds: self.so_far.rounds,
            passes: self.passes(),
            oracle_calls: self.so_far.oracle_calls,
            cache_hits: self.so_far.cache_hits,
            working_set: self.so_far.working_set,
            support: self.so_far.support,
            seconds_training: self.seconds(),
            seconds_oracle: self.so_far.seconds_oracle,
            seconds_qp: self.so_far.seconds_qp,
            disagreement: None,
        };
        Ok(Solution { weights, report, train_loss: None, state: self.kept? })
    }
}
