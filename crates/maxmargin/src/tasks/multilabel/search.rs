//! The best set of labels: `max over y of sum_{k in y} unary_k + sum of the weights of the pairs within y`.
//!
//! Most labels are settled by themselves: one that scores too little for all good pairs to help it is not in the set, one that
//! scores too much for all bad pairs to harm it is; and each label that is settled settles others. A decoder finds the rest.

use super::Pairs;
use crate::inference::map::{Decoder, Found, Scores};

/// What is known of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Open,
    Out,
    In,
}

/// The search's memory.
#[derive(Debug, Default)]
pub(super) struct Search {
    standing: Vec<Standing>,
    /// What a label gains at most, and at least, given what is settled.
    most: Vec<f64>,
    least: Vec<f64>,
    /// Labels that were settled and whose neighbours do not know yet.
    news: Vec<u32>,
    open: Vec<u32>,
    scores: Scores,
    decoder: Decoder,
    labels: Vec<u32>,
}

impl Search {
    pub(super) fn best(&mut self, pairs: &Pairs, unary: &[f64], weights: &[f64], y: &mut Vec<u32>) -> Found {
        y.clear();
        if pairs.is_empty() {
            y.extend((0..).zip(unary).filter(|(_, u)| **u > 0.0).map(|(k, _)| k));
            let value = y.iter().map(|&k| unary[k as usize]).sum();
            return Found { value, bound: value };
        }
        self.settle(pairs, unary, weights);
        self.decode(pairs, unary, weights, y)
    }

    fn settle(&mut self, pairs: &Pairs, unary: &[f64], weights: &[f64]) {
        self.standing.clear();
        self.standing.resize(unary.len(), Standing::Open);
        self.most.clear();
        self.most.extend(unary);
        self.least.clear();
        self.least.extend(unary);
        let (most, least) = (&mut self.most, &mut self.least);
        pairs.each(|number, a, b| {
            let weight = weights[number];
            let bound = if weight > 0.0 { &mut *most } else { &mut *least };
            bound[a as usize] += weight;
            bound[b as usize] += weight;
        });
        self.news.clear();
        (0..unary.len()).for_each(|k| self.judge(k));
        while let Some(k) = self.news.pop() {
            let is_in = self.standing[k as usize] == Standing::In;
            for (j, number) in pairs.of(k) {
                let (j, weight) = (j as usize, weights[number]);
                if self.standing[j] != Standing::Open || weight == 0.0 {
                    continue;
                }
                // What could have been now is, or never will be.
                match (is_in, weight > 0.0) {
                    (true, true) => self.least[j] += weight,
                    (true, false) => self.most[j] += weight,
                    (false, true) => self.most[j] -= weight,
                    (false, false) => self.least[j] -= weight,
                }
                self.judge(j);
            }
        }
    }

    fn judge(&mut self, k: usize) {
        self.standing[k] = if self.most[k] <= 0.0 {
            Standing::Out
        } else if self.least[k] > 0.0 {
            Standing::In
        } else {
            return;
        };
        self.news.push(k as u32);
    }

    fn decode(&mut self, pairs: &Pairs, unary: &[f64], weights: &[f64], y: &mut Vec<u32>) -> Found {
        self.open.clear();
        for (k, standing) in (0..).zip(&self.standing) {
            match standing {
                Standing::In => y.push(k),
                Standing::Open => self.open.push(k),
                Standing::Out => {}
            }
        }
        let own = |y: &[u32]| {
            let pair_sum = |(at, &k): (usize, &u32)| pairs.among(k, &y[..at]).map(|(_, p)| weights[p]).sum::<f64>();
            y.iter().map(|&k| unary[k as usize]).sum::<f64>() + y.iter().enumerate().map(pair_sum).sum::<f64>()
        };
        let settled = own(y);
        if self.open.is_empty() {
            return Found { value: settled, bound: settled };
        }
        self.scores.clear();
        for &k in &self.open {
            let help: f64 = pairs.among(k, y).map(|(_, p)| weights[p]).sum();
            self.scores.variable(2)[1] = unary[k as usize] + help;
        }
        for (b, &k) in self.open.iter().enumerate() {
            for (a, number) in pairs.among(k, &self.open[..b]).filter(|&(_, number)| weights[number] != 0.0) {
                let (table, values) = self.scores.table(4);
                values[3] = weights[number];
                self.scores.factor(&[a as u32, b as u32], table);
            }
        }
        let found = self.decoder.decode(&self.scores, &mut self.labels);
        y.extend(self.open.iter().zip(&self.labels).filter(|(_, on)| **on == 1).map(|(k, _)| k));
        y.sort_unstable();
        Found { value: settled + found.value, bound: settled + found.bound }
    }
}
