//! Graphs with cycles: block descent of the dual of the linear relaxation, and labellings rounded on the way.
//!
//! A factor f holds for each of its variables v a vector h_fv, which is taken from the variable's scores and given to the
//! factor's. Labellings score the same whatever these vectors are, hence none scores more than
//!
//! ```text
//! bound(h) = sum_v max ( unary_v - sum_f h_fv ) + sum_f max ( table_f + sum_v h_fv )
//! ```
//!
//! The variables are visited in turn, forth and back. Each takes from the factors that it shares with earlier ones all that
//! they have for it (a message), and gives an equal share of what it has to those that it shares with later ones. The bound
//! never rises. With factors of two variables this is sequential tree-reweighted message passing (Kolmogorov, PAMI 2006),
//! with larger ones that of Kolmogorov, PAMI 2015, with vectors for single variables only.

#![expect(clippy::inline_always, reason = "what is not inlined is compiled for the oldest machine only")]

use pulp::{Arch, Simd, WithSimd};

use super::graph::Graph;
use super::message::{add_entries, first_best, largest, message, message_given};

/// Sweeps, forth and back, at most.
const MOST_SWEEPS: usize = 300;
/// After so many sweeps it is looked whether the bound still falls, by at least this part of the gap.
const WINDOW: usize = 8;
const FALL: f64 = 0.03;
/// Rounds of polishing after each sweep at most.
const ROUNDS: usize = 3;
/// A gap of this part of all that is added up is rounding.
const ROUNDING: f64 = 1e-12;

/// A factor, from the side of one of its variables.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Link {
    pub(super) factor: u32,
    /// The place of the variable in the factor's scope.
    pub(super) place: u32,
    has_earlier: bool,
    has_later: bool,
}

/// In which order the variables are visited.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Forth,
    Back,
}

/// What a pass over the variables found.
#[derive(Debug, Clone, Copy, Default)]
struct Pass {
    bound: f64,
    /// The same with absolute values.
    scale: f64,
    /// The value of the labelling.
    value: f64,
}

/// The vectors, and the room to work in.
#[derive(Debug, Default)]
pub(super) struct Ascent {
    pub(super) variables: Vec<u32>,
    /// The place of each variable of the graph among them.
    pub(super) places: Vec<u32>,
    /// The links of each variable, one after the other.
    link_begin: Vec<u32>,
    links: Vec<Link>,
    /// What part of what a variable has goes to each factor.
    share: Vec<f64>,
    /// The vectors h, by slot.
    help: Vec<f64>,
    help_begin: Vec<usize>,
    /// The labelling of the last pass and the best one, by variable of the graph.
    now: Vec<u32>,
    best: Vec<u32>,
    /// Vectors of one variable: two messages; what it has; what its labels score for sure, and may score besides.
    out: Vec<f64>,
    extra: Vec<f64>,
    total: Vec<f64>,
    pub(super) sure: Vec<f64>,
    pub(super) hoped: Vec<f64>,
    digits: Vec<u32>,
    fill: Vec<u32>,
}

/// A pass, in the widest vectors that the machine has.
struct Run<'a>(&'a mut Ascent, &'a Graph, &'a [f64], Way);

impl WithSimd for Run<'_> {
    type Output = Pass;

    // What is inlined here is compiled once for each kind of machine.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Pass {
        let Self(ascent, graph, given, way) = self;
        let n = ascent.variables.len();
        let mut pass = Pass::default();
        for i in 0..n {
            ascent.visit(graph, given, if way == Way::Forth { i } else { n - 1 - i }, way, &mut pass);
        }
        pass
    }
}

impl Ascent {
    /// Labels the variables with live factors; returns by how much they are below the best labelling at most.
    pub(super) fn solve(&mut self, graph: &Graph, given: &[f64], labels: &mut [u32]) -> f64 {
        self.prepare(graph);
        let (mut bound, mut value) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut last = bound;
        let mut gap = bound;
        for sweep in 1..=MOST_SWEEPS {
            let mut scale = 0.0;
            for way in [Way::Forth, Way::Back] {
                let pass = Arch::new().dispatch(Run(self, graph, given, way));
                bound = pass.bound.min(bound);
                scale = pass.scale;
                if pass.value > value {
                    value = pass.value;
                    self.best.clone_from(&self.now);
                }
            }
            value = self.improve(graph, given, value);
            if sweep % WINDOW == 0 || sweep == MOST_SWEEPS {
                let mut best = std::mem::take(&mut self.best);
                self.polish(graph, given, &mut best);
                self.best = best;
                value = self.value(graph, given, &self.best).max(value);
            }
            gap = bound - value;
            if gap <= ROUNDING * scale {
                // Not 0: times a large C it still counts.
                gap = gap.max(0.0);
                break;
            }
            if sweep % WINDOW == 0 {
                if last - bound < FALL * gap {
                    break;
                }
                last = bound;
            }
        }
        for &v in &self.variables {
            labels[v as usize] = self.best[v as usize];
        }
        gap
    }

    /// Polishes the last labelling a little, which is cheap beside a pass; returns the best value so far.
    fn improve(&mut self, graph: &Graph, given: &[f64], value: f64) -> f64 {
        let (mut now, mut ones) = (std::mem::take(&mut self.now), std::mem::take(&mut self.sure));
        let mut rounds = 0..ROUNDS;
        while rounds.next().is_some() && self.polish_ones(graph, given, &mut now, &mut ones) {}
        let new = self.value(graph, given, &now);
        if new > value {
            self.best.clone_from(&now);
        }
        (self.now, self.sure) = (now, ones);
        new.max(value)
    }

    fn prepare(&mut self, graph: &Graph) {
        let n = graph.variables();
        self.variables.clear();
        self.variables.extend((0..n as u32).filter(|&v| graph.degree(v as usize) > 0));
        self.fill.resize(n, 0);
        self.places.resize(n, 0);
        self.link_begin.clear();
        let (mut end, mut domain) = (0, 0);
        for (i, &v) in self.variables.iter().enumerate() {
            self.places[v as usize] = i as u32;
            self.link_begin.push(end);
            self.fill[v as usize] = end;
            end += graph.degree(v as usize);
            domain = graph.domain(v as usize).max(domain);
        }
        self.link_begin.push(end);
        self.links.clear();
        self.links.resize(end as usize, Link::default());
        self.help_begin.resize(graph.slots(), 0);
        let mut help = 0;
        for f in graph.live_factors() {
            let scope = graph.scope(f);
            let first = scope.iter().copied().fold(u32::MAX, u32::min);
            let last = scope.iter().copied().fold(0, u32::max);
            for (place, &v) in scope.iter().enumerate() {
                self.help_begin[graph.slot(f) + place] = help;
                help += graph.domain(v as usize);
                let (factor, place) = (f as u32, place as u32);
                let link = Link { factor, place, has_earlier: v > first, has_later: v < last };
                self.links[self.fill[v as usize] as usize] = link;
                self.fill[v as usize] += 1;
            }
        }
        self.help.clear();
        self.help.resize(help, 0.0);
        self.share.clear();
        for i in 0..self.variables.len() {
            let links = &self.links[self.links_of(i)];
            let earlier = links.iter().filter(|link| link.has_earlier).count();
            let later = links.iter().filter(|link| link.has_later).count();
            self.share.push(1.0 / earlier.max(later) as f64);
        }
        for labels in [&mut self.now, &mut self.best] {
            labels.clear();
            labels.resize(n, 0);
        }
        for room in [&mut self.out, &mut self.extra, &mut self.total, &mut self.sure, &mut self.hoped] {
            room.resize(domain, 0.0);
        }
    }

    fn links_of(&self, i: usize) -> std::ops::Range<usize> {
        self.link_begin[i] as usize..self.link_begin[i + 1] as usize
    }

    /// The links of the i-th variable.
    pub(super) fn links(&self, i: usize) -> &[Link] {
        &self.links[self.links_of(i)]
    }

    /// Visits the i-th variable: takes, labels, gives.
    #[inline(always)]
    fn visit(&mut self, graph: &Graph, given: &[f64], i: usize, way: Way, pass: &mut Pass) {
        let v = self.variables[i] as usize;
        let (unary, k) = (graph.unary(v), graph.domain(v));
        let (out, extra, total) = (&mut self.out[..k], &mut self.extra[..k], &mut self.total[..k]);
        let (sure, hoped) = (&mut self.sure[..k], &mut self.hoped[..k]);
        let links = &self.links[self.link_begin[i] as usize..self.link_begin[i + 1] as usize];
        total.copy_from_slice(unary);
        sure.copy_from_slice(unary);
        hoped.fill(0.0);
        for link in links {
            let (f, place) = (link.factor as usize, link.place as usize);
            let (scope, slot) = (graph.scope(f), graph.slot(f));
            let own = self.help_begin[slot + place];
            if link.has_before(way) {
                let table = graph.table(f, given);
                let arity = scope.len();
                let help = &self.help;
                let part = |j: usize| &help[self.help_begin[slot + j]..][..graph.domain(scope[j] as usize)];
                message(table, (arity, place), part, &mut self.digits, out);
                let most = largest(out);
                let label = |j: usize| self.now[scope[j] as usize];
                if link.has_after(way) {
                    let is_known = |j: usize| if way == Way::Forth { scope[j] < v as u32 } else { scope[j] > v as u32 };
                    let known = |j: usize| is_known(j).then(|| label(j));
                    message_given(table, (arity, place), part, known, &mut self.digits, extra);
                    hoped.iter_mut().zip(&*extra).for_each(|(hoped, extra)| *hoped += extra);
                } else {
                    // The factor has nothing left but its largest entry, and is not seen again in this pass.
                    pass.bound += most;
                    pass.scale += most.abs();
                    let domain = |j: usize| graph.domain(scope[j] as usize);
                    add_entries(table, (arity, place), domain, label, sure);
                }
                let own = &mut self.help[own..own + k];
                own.iter_mut().zip(&*out).for_each(|(own, out)| *own = most - out);
            } else {
                let own = &self.help[own..own + k];
                hoped.iter_mut().zip(own).for_each(|(hoped, own)| *hoped -= own);
            }
            total.iter_mut().zip(&self.help[own..own + k]).for_each(|(total, own)| *total -= own);
        }
        let most = largest(total);
        pass.bound += most;
        pass.scale += most.abs();
        let (label, _) = first_best(sure.iter().zip(&*hoped).map(|(sure, hoped)| sure + hoped));
        self.now[v] = label as u32;
        pass.value += sure[label];
        // What all labels have is kept: only differences are given away, and numbers stay small.
        let share = self.share[i];
        for total in total.iter_mut() {
            *total = share * (*total - most);
        }
        for link in links.iter().filter(|link| link.has_after(way)) {
            let own = self.help_begin[graph.slot(link.factor as usize) + link.place as usize];
            self.help[own..own + k].iter_mut().zip(&*total).for_each(|(own, total)| *own += total);
        }
    }
}

impl Link {
    #[inline(always)]
    fn has_before(self, way: Way) -> bool {
        if way == Way::Forth { self.has_earlier } else { self.has_later }
    }

    #[inline(always)]
    fn has_after(self, way: Way) -> bool {
        if way == Way::Forth { self.has_later } else { self.has_earlier }
    }
}
