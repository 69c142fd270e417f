//! The factor graph of one example, as one visit needs it.

use crate::problem::Factors;
use crate::sparse::SparseView;
use crate::task::{Part, Sets};

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
    /// All variables and factors of an example.
    pub(super) fn fill(&mut self, factored: &'a dyn Factors, x: usize) {
        self.begin((0..factored.variables(x)).map(|v| factored.domain(x, v)));
        let mut scope = std::mem::take(&mut self.scope);
        for f in 0..factored.factors(x) {
            let part = part(factored, x, f, &mut scope);
            self.push(part, &scope);
        }
        self.scope = scope;
        self.link();
    }

    /// Only these variables, and the factors of these pairs of them; a variable has the number of its place among them.
    pub(super) fn fill_among(
        &mut self,
        factored: &'a dyn Factors,
        sets: &dyn Sets,
        x: usize,
        (members, links): (&[u32], &[(u32, u32)]),
    ) {
        self.begin(members.iter().map(|_| 2));
        let mut scope = std::mem::take(&mut self.scope);
        for &(a, b) in links {
            let (first, second) = (members[a as usize], members[b as usize]);
            let f = sets.factor_of(first.min(second), first.max(second)).expect("a link is a factor");
            let part = part(factored, x, f, &mut scope);
            self.push(part, &[a, b]);
        }
        self.scope = scope;
        self.link();
    }

    fn begin(&mut self, domains: impl Iterator<Item = u32>) {
        self.domains.clear();
        self.domains.extend(domains);
        self.factors.clear();
        self.scopes.clear();
        self.strides.clear();
        self.starts.clear();
        self.starts.resize(self.domains.len() + 1, 0);
    }

    fn push(&mut self, part: Part<'a>, scope: &[u32]) {
        let start = self.scopes.len() as u32;
        let mut labels = 1;
        for &v in scope.iter().rev() {
            self.strides.push(labels);
            labels *= self.domains[v as usize];
        }
        self.strides[start as usize..].reverse();
        self.scopes.extend(scope);
        for &v in scope {
            self.starts[v as usize + 1] += 1;
        }
        self.factors.push(Factor { part, start, arity: scope.len() as u32, labels });
    }

    /// Lists the factors by variable.
    fn link(&mut self) {
        let variables = self.domains.len();
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

    /// Do factors make no loop? Two on the same two variables do: they may agree on each label and not on pairs. Variables
    /// with one label tie nothing.
    pub(super) fn is_forest(&self) -> bool {
        fn root(above: &[u32], mut v: u32) -> u32 {
            while above[v as usize] != v {
                v = above[v as usize];
            }
            v
        }
        let mut above: Vec<u32> = (0..self.domains.len() as u32).collect();
        for factor in &self.factors {
            let scope = &self.scopes[factor.start as usize..][..factor.arity as usize];
            let mut first = None;
            for &v in scope.iter().filter(|&&v| self.domains[v as usize] > 1) {
                let own = root(&above, v);
                match first {
                    None => first = Some(own),
                    Some(first) if first == own => return false,
                    Some(first) => above[own as usize] = first,
                }
            }
        }
        true
    }

    /// Is factor f one of variables f and f + 1, and are there no others?
    pub(super) fn is_chain(&self) -> bool {
        let links = |(f, factor): (usize, &Factor<'_>)| {
            self.scopes[factor.start as usize..][..factor.arity as usize] == [f as u32, f as u32 + 1]
        };
        self.factors.len() + 1 == self.domains.len() && self.factors.iter().enumerate().all(links)
    }

    /// The factors that variable v is in.
    pub(super) fn joints(&self, v: usize) -> &[Joint] {
        &self.joints[self.starts[v] as usize..self.starts[v + 1] as usize]
    }

    /// Is the variable of a joint the second of the factor's?
    pub(super) fn is_second(&self, joint: Joint) -> bool {
        joint.number == self.factors[joint.factor as usize].start + 1
    }

    /// Number of joints.
    pub(super) fn count(&self) -> usize {
        self.scopes.len()
    }

    /// The joints of factor f: number and variable.
    pub(super) fn joints_of(&self, f: usize) -> impl Iterator<Item = (usize, usize)> + Clone + '_ {
        let Factor { start, arity, .. } = self.factors[f];
        (start..start + arity).map(|number| (number as usize, self.scopes[number as usize] as usize))
    }

    /// What one step of the label of a factor's variable means in the factor's label.
    pub(super) fn stride(&self, f: usize, position: usize) -> u32 {
        self.strides[self.factors[f].start as usize + position]
    }

    /// The same by the number of the joint.
    pub(super) fn stride_at(&self, joint: usize) -> u32 {
        self.strides[joint]
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

fn part<'a>(factored: &'a dyn Factors, x: usize, f: usize, scope: &mut Vec<u32>) -> Part<'a> {
    let mut part = None;
    factored.factor(x, f, scope, &mut |own| part = Some(own));
    part.expect("a factor has a part")
}

/// Is it the one feature that is always there?
pub(super) fn is_constant(phi: SparseView<'_>) -> bool {
    phi.indices() == [0] && phi.values() == [1.0]
}
