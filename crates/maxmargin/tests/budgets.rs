//! Budgets: a warm oracle allocates nothing, and what the library hands out may cross threads.
#![allow(unsafe_code, reason = "a global allocator can only be written with unsafe; it counts and hands on")]

#[path = "suite/common/mod.rs"]
mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::{Draw, PENALTIES, RESCALINGS, Typed, formulation};
use maxmargin::cache::Cache;
use maxmargin::data::input::Input;
use maxmargin::data::trees::{self, Strip, read};
use maxmargin::inference::align::{Op, Path, Reach};
use maxmargin::inference::chain::Order;
use maxmargin::inference::map::{Decoder, Scores};
use maxmargin::parallel::Pool;
use maxmargin::problem::{Formulation, OracleScratch, Penalty, Problem};
use maxmargin::qp::{Cut, Qp};
use maxmargin::solver::cutting_plane::CuttingPlane;
use maxmargin::solver::dual_coordinate::DualCoordinate;
use maxmargin::solver::frank_wolfe::FrankWolfe;
use maxmargin::solver::n_slack::NSlack;
use maxmargin::solver::{Progress, Report, Settings, Solution};
use maxmargin::sparse::{SparseMatrix, SparseView};
use maxmargin::task::{LossTerm, Task};
use maxmargin::tasks::alignment::{AlignLoss, AlignSettings, Aligned, Alignment, FromPrior, Gaps, Query, Sequence};
use maxmargin::tasks::binary::Binary;
use maxmargin::tasks::multiclass::{Costs, Multiclass};
use maxmargin::tasks::parsing::{ParseFeatures, ParseLoss, ParseScratch, ParseSettings, Parsing};
use maxmargin::tasks::tagging::{Constraints, Sentence, Shape, TagLoss, TagScratch, Tagging};
use maxmargin::tasks::taxonomy::{Taxonomy, TaxonomyScratch};
use maxmargin::weights::Weights;

thread_local! {
    /// Allocations of this thread. Const and without a destructor: reading it allocates nothing.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, with a count by thread, so that tests side by side do not disturb each other.
struct Counting;

fn count() {
    COUNT.with(|count| count.set(count.get() + 1));
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise about the layout is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: `at` came from `alloc` above, hence from the system, with this layout.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as for `dealloc`; the caller's promise about the size is handed on.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = COUNT.with(Cell::get);
    work();
    COUNT.with(Cell::get) - before
}

#[test]
fn the_counter_counts() {
    assert!(allocations(|| drop(std::hint::black_box(vec![1_u8; 100]))) >= 1);
    assert_eq!(allocations(|| ()), 0);
}

/// One call to warm up, then none may allocate.
fn allocates_nothing<T: Task>(problem: &Typed<'_, T>, w: &Weights) {
    let mut scratch = OracleScratch::default();
    let mut decoder = T::Scratch::default();
    let mut y = T::Output::default();
    let mut round = || {
        for i in 0..problem.len() {
            problem.oracle(i, w, &mut scratch).unwrap();
            for weight in [None, Some(1.0)] {
                let loss = weight.map(|weight| LossTerm { truth: problem.truth(i), weight });
                problem.task().argmax(w, problem.input(i), loss, &mut decoder, &mut y).unwrap();
            }
        }
    };
    round();
    assert_eq!(allocations(round), 0, "{:?}", problem.formulation());
}

#[test]
fn a_warm_oracle_allocates_nothing() {
    let mut draw = Draw(1);
    let (x, binary, classes) = (draw.matrix(20, 6), draw.labels(20, 2), draw.labels(20, 15));
    let views = x.views();
    let (two, many) = (Binary::new(6), Multiclass::new(6, draw.costs(15)));
    let w = draw.weights(6 * 15, 1.0);
    let short = draw.weights(6, 1.0);
    for rescaling in RESCALINGS {
        for penalty in PENALTIES {
            let f = formulation(1.0, rescaling, penalty);
            allocates_nothing(&Typed::new(&two, &views, &binary, None, f).unwrap(), &short);
            allocates_nothing(&Typed::new(&many, &views, &classes, None, f).unwrap(), &w);
        }
    }
}

#[test]
fn a_warm_taxonomy_allocates_nothing() {
    let mut draw = Draw(5);
    let x = draw.matrix(20, 6);
    let views = x.views();
    for is_tree in [true, false] {
        for task in common::taxonomy::tasks(&mut draw, 6, 12, is_tree) {
            let y = draw.labels(20, task.classes().len() as u32);
            let (y, w) = (common::taxonomy::labels(&task, &y), draw.weights(task.dimension(), 1.0));
            for rescaling in RESCALINGS {
                let f = formulation(1.0, rescaling, maxmargin::problem::Penalty::Linear);
                allocates_nothing(&Typed::new(&task, &views, &y, None, f).unwrap(), &w);
            }
        }
    }
}

/// Sentences of all lengths, the longest not first: the tables grow once.
#[test]
fn a_warm_tagger_allocates_nothing() {
    let mut draw = Draw(2);
    let ends = [3, 15, 16, 20, 29];
    let (tokens, edges) = (draw.matrix(29, 6), draw.matrix(29, 2));
    let ranges = ends.iter().scan(0, |begin, &end| Some(std::mem::replace(begin, end)..end));
    let sentences: Vec<Sentence<'_>> = ranges.map(|range| Sentence::new(&tokens, Some(&edges), range)).collect();
    let truths: Vec<Vec<u32>> = sentences.iter().map(|x| vec![1; x.tokens.len()]).collect();
    let names: Vec<String> = (0..5).map(|k| k.to_string()).collect();
    let mut constraints = Constraints::none(&names);
    constraints.forbid("0", "3").unwrap();
    for order in [Order::First, Order::Second] {
        for loss in [TagLoss::hamming(5), TagLoss::ZeroOne] {
            let shape = Shape { tags: 5, features: 6, edges: 2, order };
            let task = Tagging::new(shape, loss, Some(constraints.clone())).unwrap();
            let w = draw.weights(task.dimension(), 1.0);
            for rescaling in RESCALINGS {
                for penalty in PENALTIES {
                    let f = formulation(1.0, rescaling, penalty);
                    allocates_nothing(&Typed::new(&task, &sentences, &truths, None, f).unwrap(), &w);
                }
            }
        }
    }
}

/// Pairs of all lengths and all losses, the longest not first.
#[test]
fn a_warm_aligner_allocates_nothing() {
    let mut draw = Draw(6);
    let mut sequence = |length: usize| {
        let letters: Vec<u8> = (0..length).map(|_| draw.below(4) as u8).collect();
        Sequence { marks: letters.iter().map(|code| code % 2).collect(), letters }
    };
    let mut queries: Vec<Query> = [3, 30, 40, 17]
        .map(|n| Query { x: sequence(n), candidates: vec![sequence(n + 2), sequence(2 * n), sequence(5)], given: None })
        .into();
    let mut draw = Draw(7);
    for loss in [AlignLoss::ZeroOne, AlignLoss::Q, AlignLoss::Q4, AlignLoss::Hamming] {
        for reach in [Reach::Local, Reach::Global] {
            let settings =
                AlignSettings { letters: 4, marks: 2, reach, gaps: Gaps::Affine, loss, gap_grid: Vec::new() };
            let truths: Vec<Aligned> = queries
                .iter_mut()
                .map(|query| {
                    let (n, extra) = (query.x.len() as u32, if reach == Reach::Global { 2 } else { 0 });
                    let mut path = Path::default();
                    path.push(Op::Match, n);
                    path.push(Op::OnlyZ, extra);
                    query.given = (loss == AlignLoss::ZeroOne).then(|| path.clone());
                    Aligned { candidate: 0, residues: query.residues(0), path }
                })
                .collect();
            let task = Alignment::new(settings);
            let w = draw.weights(task.dimension(), 1.0);
            let primed = FromPrior::new(task.clone(), [vec![w.clone()], task.tied()].concat());
            let of_primed = draw.weights(primed.dimension(), 1.0);
            let inputs: Vec<&Query> = queries.iter().collect();
            for rescaling in RESCALINGS {
                let f = formulation(1.0, rescaling, Penalty::Linear);
                allocates_nothing(&Typed::new(&task, &inputs, &truths, None, f).unwrap(), &w);
                allocates_nothing(&Typed::new(&primed, &inputs, &truths, None, f).unwrap(), &of_primed);
            }
        }
    }
}

/// Rings with a tail and a factor of three: trees, cuts and messages all have their turn. The graph is filled anew each
/// time, as a task would.
#[test]
fn a_warm_decoder_of_factor_graphs_allocates_nothing() {
    let (mut scores, mut decoder, mut y) = (Scores::default(), Decoder::default(), Vec::new());
    let mut round = || {
        let mut draw = Draw(4);
        for (n, domain, arity) in [(5, 2, 2), (9, 2, 2), (12, 3, 2), (9, 2, 3), (7, 3, 3), (30, 2, 2)] {
            scores.clear();
            (0..n).for_each(|_| scores.variable(domain).fill_with(|| draw.signed()));
            for v in 0..n {
                let (table, entries) = scores.table((domain as usize).pow(arity));
                entries.fill_with(|| 3.0 * draw.signed());
                let scope = [v, if v > n - 3 { v - 2 } else { v + 1 }, (v + 3) % n];
                scores.factor(&scope[..arity as usize], table);
                scores.factor(&scope[..arity as usize], table);
            }
            decoder.decode(&scores, &mut y);
        }
    };
    round();
    assert_eq!(allocations(round), 0);
}

#[test]
fn a_warm_parser_allocates_nothing() {
    let text = include_str!("../../../testdata/treebank/english.mrg");
    let bank = read(Input::new("trees", text.as_bytes()).unwrap(), Strip::default()).unwrap();
    let trees::Extracted { grammar, derivations, .. } = trees::grammar(&bank, trees::Shape::default()).unwrap();
    let mut draw = Draw(3);
    for loss in [ParseLoss::Hamming, ParseLoss::ZeroOne, ParseLoss::F1] {
        let settings = ParseSettings { loss, features: ParseFeatures::Spans, ..ParseSettings::default() };
        let task = Parsing::new(grammar.clone(), settings).unwrap();
        let is_tag = |symbol: &u32| task.grammar().tags().contains(symbol);
        let tags = |derivation| {
            let nodes = task.grammar().nodes(derivation).unwrap();
            nodes.into_iter().map(|node| node.0).filter(is_tag).collect::<Vec<u32>>()
        };
        let short =
            derivations.iter().flatten().map(|derivation| (tags(derivation), derivation)).filter(|x| x.0.len() < 10);
        let (inputs, outputs): (Vec<_>, Vec<_>) = short.take(20).unzip();
        let views: Vec<&[u32]> = inputs.iter().map(Vec::as_slice).collect();
        let outputs: Vec<_> = outputs.into_iter().map(|derivation| task.parse(derivation.clone()).unwrap()).collect();
        let w = draw.weights(task.dimension(), 0.1);
        for rescaling in RESCALINGS {
            for penalty in PENALTIES {
                let f = formulation(1.0, rescaling, penalty);
                allocates_nothing(&Typed::new(&task, &views, &outputs, None, f).unwrap(), &w);
            }
        }
    }
}

#[test]
fn public_types_cross_threads() {
    fn crosses<T: Send + Sync>() {}
    crosses::<Binary>();
    crosses::<Multiclass>();
    crosses::<Costs>();
    crosses::<Cache<u32>>();
    crosses::<CuttingPlane>();
    crosses::<Cut>();
    crosses::<DualCoordinate>();
    crosses::<Formulation>();
    crosses::<FrankWolfe>();
    crosses::<NSlack>();
    crosses::<OracleScratch>();
    crosses::<ParseScratch>();
    crosses::<Parsing>();
    crosses::<Pool>();
    crosses::<Problem<'static>>();
    crosses::<Progress>();
    crosses::<Qp>();
    crosses::<Report>();
    crosses::<Settings>();
    crosses::<Solution>();
    crosses::<SparseMatrix>();
    crosses::<SparseView<'static>>();
    crosses::<TagScratch>();
    crosses::<Tagging>();
    crosses::<Taxonomy>();
    crosses::<TaxonomyScratch>();
    crosses::<Weights>();
    crosses::<maxmargin::Error>();
}
