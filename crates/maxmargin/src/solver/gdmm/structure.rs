//! The factor graph of one example, as one visit needs it.

use crate::sparse::SparseView;
use crate::task::{Factored, Part, Task};

/// Where a factor and a variable meet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Joint {
    pub(super) factor: u32,
    /// The number of this joint among those of the example.
    pub(super) number: u32,
}

/// A factor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Factor<'a> {
    pub(super) part: Part<'a>,
    /// Where its scope starts.
    start: u32,
    pub(super) arity: u32,
    /// Number of labels: the product of its variables'.
    pub(super) labels: u32,
}

/// The graph: filled for one example after the other.
#[derive(Debug, Default)]
pub(super) struct Structure<'a> {
    pub(super) domains: Vec<u32>,
    pub(super) factors: Vec<Factor<'a>>,
    /// The scopes of all factors; a joint's number is its place here.
    scopes: Vec<u32>,
    /// By place in `scopes`: what one step of the variable's label means in the factor's label.
    strides: Vec<u32>,
    starts: Vec<u32>,
    joints: Vec<Joint>,
    scope: Vec<u32>,
}

impl<'a> Structure<'a> {
    pub(super) fn fill<T: Task>(&mut self, factored: &dyn Factored<T>, x: T::Input<'a>) {
        let variables = factored.variables(x);
        self.domains.clear();
        self.domains.extend((0..variables).map(|v| factored.domain(x, v)));
        self.factors.clear();
        self.scopes.clear();
        self.strides.clear();
        self.starts.clear();
        self.starts.resize(variables + 1, 0);
        for f in 0..factored.factors(x) {
            let mut part = None;
            factored.factor(x, f, &mut self.scope, &mut |own| part = Some(own));
            let part = part.expect("a factor has a part");
            let start = self.scopes.len() as u32;
            let mut labels = 1;
            for &v in self.scope.iter().rev() {
                self.strides.push(labels);
                labels *= self.domains[v as usize];
            }
            self.strides[start as usize..].reverse();
            self.scopes.extend(&self.scope);
            self.scope.iter().for_each(|&v| self.starts[v as usize + 1] += 1);
            self.factors.push(Factor { part, start, arity: self.scope.len() as u32, labels });
        }
        for v in 0..variables {
            self.starts[v + 1] += self.starts[v];
        }
        self.joints.clear();
        self.joints.resize(self.scopes.len(), Joint { factor: 0, number: 0 });
        let mut next: Vec<u32> = std::mem::take(&mut self.scope);
        next.clear();
        next.extend(&self.starts[..variables]);
        for (factor, f) in (0..).zip(&self.factors) {
            for position in 0..f.arity {
                let number = f.start + position;
                let at = &mut next[self.scopes[number as usize] as usize];
                self.joints[*at as usize] = Joint { factor, number };
                *at += 1;
            }
        }
        self.scope = next;
    }

    /// The factors that variable v is in.
    pub(super) fn joints(&self, v: usize) -> &[Joint] {
        &self.joints[self.starts[v] as usize..self.starts[v + 1] as usize]
    }

    /// Number of joints.
    pub(super) fn count(&self) -> usize {
        self.scopes.len()
    }

    /// The joints of factor f: number and variable.
    pub(super) fn joints_of(&self, f: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let Factor { start, arity, .. } = self.factors[f];
        (start..start + arity).map(|number| (number as usize, self.scopes[number as usize] as usize))
    }

    /// What label of the variable at a joint is part of the factor's label.
    pub(super) fn own(&self, joint: usize, label: u32) -> u32 {
        label / self.strides[joint] % self.domains[self.scopes[joint] as usize]
    }

    /// The factor's labels, of which there are `all`, in which the variable at a joint has the label `own`.
    pub(super) fn labels_with(&self, joint: usize, own: u32, all: usize) -> impl Iterator<Item = usize> + use<> {
        let stride = self.strides[joint] as usize;
        let turn = stride * self.domains[self.scopes[joint] as usize] as usize;
        let first = own as usize * stride;
        (0..all / turn).flat_map(move |k| k * turn + first..k * turn + first + stride)
    }

    /// The factor's label that these labels of variables make.
    pub(super) fn label(&self, f: usize, labels: &[u32]) -> u32 {
        self.joints_of(f).map(|(joint, v)| self.strides[joint] * labels[v]).sum()
    }
}

/// Is it the one feature that is always there?
pub(super) fn is_constant(phi: SparseView<'_>) -> bool {
    phi.indices() == [0] && phi.values() == [1.0]
}
