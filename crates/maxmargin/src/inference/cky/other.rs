//! The best derivation but one that is given.
//!
//! A derivation that differs from the given one differs at some of its nodes. From the leaves up, the best way to differ
//! below a node is the best of: another chain of unary rules there, another binary rule or split, or the given ones with a
//! child that differs.

use super::{Chart, Rules, Scores, Step};

/// A node of the given derivation: a symbol with the chain and the binary rule below it.
#[derive(Debug)]
struct Given {
    symbol: u32,
    span: (usize, usize),
    chain: Option<u32>,
    bottom: u32,
    /// Entry, split and children.
    binary: Option<(usize, usize, [usize; 2])>,
}

/// How to differ at a node.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// By another chain, or none.
    Chain(Option<u32>),
    /// By another entry or split.
    Split(usize, usize),
    /// Below the left child, or the right one.
    Child(usize),
}

/// A symbol that is to come, its span, and whose child it is: a node, and on which side.
type Coming = (u32, (usize, usize), Option<(usize, usize)>);

/// Where the way to differ is worked out.
#[derive(Debug, Default)]
pub(super) struct Differing {
    /// The nodes of the given derivation, parents before children.
    nodes: Vec<Given>,
    ways: Vec<(f64, Option<Way>)>,
    open: Vec<Coming>,
    chain: Vec<u32>,
    later: Vec<(usize, usize, u32)>,
}

impl Chart {
    /// After [`best`](Self::best): the derivation with the largest score among all but `given`, which must be one with spans
    /// that there are. Returns the score, minus infinity and no steps where there is no other.
    ///
    /// # Panics
    /// If `given` is no derivation.
    pub fn best_other(&mut self, rules: &Rules, scores: &Scores, given: &[Step], steps: &mut Vec<Step>) -> f64 {
        steps.clear();
        let mut differing = std::mem::take(&mut self.differing);
        let root = differing.take(rules, given, self.len());
        let Differing { nodes, ways, .. } = &mut differing;
        ways.clear();
        ways.resize(nodes.len(), (f64::NEG_INFINITY, None));
        // Children come after their parents.
        for at in (0..nodes.len()).rev() {
            ways[at] = self.way_to_differ(rules, scores, nodes, at, ways);
        }
        let mut best = (ways.first().map_or(f64::NEG_INFINITY, |way| way.0) + scores.root[root as usize], root);
        for (symbol, (score, at_root)) in (0..).zip(self.cell(0, self.len()).iter().zip(&scores.root)) {
            if symbol != root && score + at_root > best.0 {
                best = (score + at_root, symbol);
            }
        }
        let (score, symbol) = best;
        if score > f64::NEG_INFINITY {
            steps.push(Step::Root(symbol));
            if symbol == root {
                self.tell_other(rules, scores, &mut differing, steps);
            } else {
                self.tell_all(rules, scores, (0, self.len()), symbol, steps);
            }
        }
        self.differing = differing;
        score
    }

    fn way_to_differ(
        &self,
        rules: &Rules,
        scores: &Scores,
        nodes: &[Given],
        at: usize,
        ways: &[(f64, Option<Way>)],
    ) -> (f64, Option<Way>) {
        let Given { symbol, span, chain, bottom, binary } = nodes[at];
        let (i, j) = span;
        let mut best = (f64::NEG_INFINITY, None);
        let mut offer = |score: f64, way: Way| {
            if score > best.0 {
                best = (score, Some(way));
            }
        };
        for other in std::iter::once(None).chain(rules.chains_to(symbol).map(Some)).filter(|other| chain != *other) {
            let score = match other {
                None => self.inner_of(rules, span, symbol).0,
                Some(other) => self.chain_score(rules, scores, span, other),
            };
            offer(score, Way::Chain(other));
        }
        let Some((entry, split, children)) = binary else { return best };
        let at_bottom = self.node_of(i, j, bottom);
        // From a score right under the binary rule's parent to one over the whole chain.
        let over = |inner: f64| self.over_chain(rules, scores, span, chain, inner + at_bottom);
        for k in self.splits(i, j) {
            for other in rules.with_parent(bottom).iter().map(|&other| other as usize) {
                if (other, k) != (entry, split) {
                    let (left, right) = rules.children(other);
                    let sides = (self.cell(i, k)[left as usize], self.cell(k, j)[right as usize]);
                    offer(over(sides.0 + self.binary[other] + sides.1), Way::Split(other, k));
                }
            }
        }
        let (left, right) = rules.children(entry);
        let (left, right) = (self.cell(i, split)[left as usize], self.cell(split, j)[right as usize]);
        offer(over(ways[children[0]].0 + self.binary[entry] + right), Way::Child(0));
        offer(over(left + self.binary[entry] + ways[children[1]].0), Way::Child(1));
        best
    }

    /// Tells the derivation that differs, from the root of the given one on.
    fn tell_other(&mut self, rules: &Rules, scores: &Scores, differing: &mut Differing, steps: &mut Vec<Step>) {
        let Differing { nodes, ways, later, .. } = differing;
        // What is still to be told after the node that differs: the right siblings of those above it, innermost last.
        later.clear();
        let mut at = 0;
        loop {
            let Given { symbol, span: (i, j), chain, binary, .. } = nodes[at];
            let Some(way) = ways[at].1 else { panic!("a way to differ") };
            if let Way::Chain(other) = way {
                self.tell(rules, (i, j), symbol, other, steps);
                break;
            }
            steps.extend(rules.unrolled(chain).map(|link| Step::Unary(link.rule)));
            let (entry, split, children) = binary.expect("a binary rule");
            let (entry, k) = if let Way::Split(entry, k) = way { (entry, k) } else { (entry, split) };
            steps.push(Step::Binary(rules.order()[entry], k as u32));
            let (left, right) = rules.children(entry);
            match way {
                Way::Child(0) => {
                    later.push((k, j, right));
                    at = children[0];
                }
                Way::Child(_) => {
                    self.tell_all(rules, scores, (i, k), left, steps);
                    at = children[1];
                }
                Way::Split(..) | Way::Chain(_) => {
                    self.open.extend([(k, j, right), (i, k, left)]);
                    break;
                }
            }
        }
        while let Some((i, j, symbol)) = self.open.pop() {
            self.tell_all(rules, scores, (i, j), symbol, steps);
        }
        while let Some((i, j, symbol)) = later.pop() {
            self.tell_all(rules, scores, (i, j), symbol, steps);
        }
    }
}

impl Differing {
    /// Takes a derivation of `len` words apart; returns the symbol at its root.
    fn take(&mut self, rules: &Rules, steps: &[Step], len: usize) -> u32 {
        let Some((&Step::Root(root), rest)) = steps.split_first() else { panic!("a derivation begins at the root") };
        let Self { nodes, open, chain, .. } = self;
        nodes.clear();
        open.clear();
        open.push((root, (0, len), None));
        let mut rest = rest.iter().copied();
        while let Some((symbol, span, parent)) = open.pop() {
            let (at, mut bottom) = (nodes.len(), symbol);
            chain.clear();
            let binary = loop {
                match rest.next() {
                    Some(Step::Unary(rule)) => {
                        chain.push(rule);
                        bottom = rules.unary_child(rule);
                    }
                    Some(Step::Binary(rule, k)) => {
                        let (entry, k) = (rules.entry(rule), k as usize);
                        let (left, right) = rules.children(entry);
                        open.extend([(right, (k, span.1), Some((at, 1))), (left, (span.0, k), Some((at, 0)))]);
                        break Some((entry, k, [0; 2]));
                    }
                    Some(Step::Word(..)) => break None,
                    Some(Step::Root(_)) | None => panic!("a derivation ends at words"),
                }
            };
            if let Some((parent, side)) = parent {
                let parent: &mut Given = &mut nodes[parent];
                parent.binary.as_mut().expect("a parent").2[side] = at;
            }
            let same = |&other: &u32| rules.unrolled(Some(other)).map(|chain| chain.rule).eq(chain.iter().copied());
            let chain = rules.chains_to(symbol).find(same);
            assert!(chain.is_some() || bottom == symbol, "a derivation has chains that there are");
            nodes.push(Given { symbol, span, chain, bottom, binary });
        }
        root
    }
}
