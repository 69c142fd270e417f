//! The task of alignments against exhaustive search: laws, losses, oracles, and what solvers make of it.

use crate::common;

use common::alignments::{LOSSES, check_oracles, problem, settings};
use common::{Any, Draw, formulation, n_slack, patience, to_gap};
use maxmargin::inference::align::{Op, Path, Reach, Run};
use maxmargin::parallel::Pool;
use maxmargin::problem::{Penalty, Problem, Rescaling};
use maxmargin::solver::bcfw::Bcfw;
use maxmargin::solver::cutting_plane::CuttingPlane;
use maxmargin::solver::mle::Mle;
use maxmargin::solver::n_slack::Update;
use maxmargin::solver::{Certificate, Settings, Solver};
use maxmargin::task::Task;
use maxmargin::tasks::alignment::{
    Agreement, AlignLoss, AlignScratch, AlignSettings, Aligned, Alignment, Gaps, Query, Sequence,
};
use maxmargin::testing::check_task;
use maxmargin::weights::Weights;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn alignments_obey_the_laws(seed: u64) {
        for kind in LOSSES {
            let mut draw = Draw(seed);
            let settings = settings(&mut draw, kind);
            let (queries, truths) = problem(&mut draw, &settings, 4);
            let task = Alignment::new(settings);
            let examples: Vec<(&Query, Aligned)> = queries.iter().zip(truths).collect();
            check_task(&task, &examples, draw.next()).unwrap();
        }
    }

    /// The argmax and the oracles of all formulations against all outputs; losses against their definitions.
    #[test]
    fn oracles_are_exact(seed: u64) {
        for kind in LOSSES {
            let mut draw = Draw(seed);
            let settings = settings(&mut draw, kind);
            let (queries, truths) = problem(&mut draw, &settings, 3);
            let task = Alignment::new(settings.clone());
            let inputs: Vec<&Query> = queries.iter().collect();
            for scale in [0.0, 0.3, 3.0] {
                check_oracles(&task, &settings, &inputs, &truths, &draw.weights(task.dimension(), scale));
            }
        }
    }

    /// Solvers find the same optimum, with a proof; as many threads as one likes give the same bits.
    #[test]
    fn solvers_agree(seed: u64) {
        for kind in LOSSES {
            let mut draw = Draw(seed);
            let settings = settings(&mut draw, kind);
            let (queries, truths) = problem(&mut draw, &settings, 5);
            let task = Alignment::new(settings);
            let inputs: Vec<&Query> = queries.iter().collect();
            let problem = Problem::new(&task, &inputs, &truths, None, formulation(5.0, Rescaling::Margin, Penalty::Linear)).unwrap();
            let pool = Pool::new(1).unwrap();
            let mut least = Vec::new();
            for solver in [Any::Cuts(CuttingPlane::default()), n_slack(Update::Batch(5)), Any::Bcfw(Bcfw::default())] {
                let one = solver.solve(&problem, &Settings { threads: 1, ..to_gap(1e-4) }, &mut patience());
                let two = solver.solve(&problem, &Settings { threads: 2, ..to_gap(1e-4) }, &mut patience());
                prop_assert_eq!(common::bits_of(&one), common::bits_of(&two));
                prop_assert_eq!(one.report.certificate, Certificate::Exact);
                let p = problem.objective(&one.weights, &pool).unwrap();
                prop_assert!((p - one.report.primal).abs() <= 1e-9 * (1.0 + p) && one.report.dual <= p + 1e-9);
                least.push((one.report.dual, p));
            }
            for (_, p) in &least {
                for (dual, _) in &least {
                    prop_assert!(dual <= &(p + 1e-9), "{kind:?}: a bound {dual} above an objective {p}");
                }
            }
        }
    }
}

/// Outputs of a damaged state do not pass.
#[test]
fn damaged_outputs_are_refused() {
    let settings = AlignSettings {
        letters: 2,
        marks: 0,
        reach: Reach::Local,
        gaps: Gaps::Linear,
        loss: AlignLoss::ZeroOne,
        gap_grid: Vec::new(),
    };
    let run = |op, count| Run { op, count };
    let of = |letters: &[u8]| Sequence { letters: letters.to_vec(), marks: Vec::new() };
    let query = Query { x: of(&[0, 1, 0]), candidates: vec![of(&[0, 1]), of(&[1])], given: None };
    let task = Alignment::new(settings.clone());
    let good = Aligned { candidate: 0, residues: 5, path: Path { x: 0, z: 0, runs: vec![run(Op::Match, 2)] } };
    assert_eq!(task.check(&query, &good), Ok(()));
    let with = |path: Path| Aligned { path, ..good.clone() };
    let global = Alignment::new(AlignSettings { reach: Reach::Global, ..settings.clone() });
    let aligned = Alignment::new(AlignSettings { loss: AlignLoss::Q, ..settings });
    for (task, y, what) in [
        (&task, Aligned { candidate: 2, ..good.clone() }, "candidate 2 of 2"),
        (&task, Aligned { residues: 4, ..good.clone() }, "4 residues where there are 5"),
        (&task, with(Path { x: 2, z: 0, runs: vec![run(Op::Match, 2)] }), "goes beyond"),
        (&task, with(Path { x: u32::MAX, z: 0, runs: vec![run(Op::Match, u32::MAX)] }), "goes beyond"),
        (&task, with(Path { x: 0, z: 0, runs: vec![run(Op::Match, 1), run(Op::Match, 1)] }), "belong together"),
        (&task, with(Path { x: 0, z: 0, runs: vec![run(Op::Match, 0)] }), "belong together"),
        (
            &task,
            with(Path { x: 0, z: 0, runs: vec![run(Op::Match, 1), run(Op::OnlyX, 1)] }),
            "begin and end with a match",
        ),
        (&task, with(Path { x: 1, z: 0, runs: Vec::new() }), "begin and end with a match"),
        (&global, good.clone(), "leaves residues out"),
        (&aligned, Aligned { candidate: 1, residues: 4, path: Path::default() }, "the alignment of the first"),
    ] {
        let said = task.check(&query, &y).unwrap_err();
        assert!(said.contains(what), "{said}");
    }
    let given = Query { given: Some(good.path.clone()), ..query };
    assert!(task.check(&given, &with(Path::default())).unwrap_err().contains("another alignment"));
}

/// Log odds by hand, and the gap cost that does best.
#[test]
fn the_generative_model_counts() {
    let settings = AlignSettings {
        letters: 2,
        marks: 0,
        reach: Reach::Local,
        gaps: Gaps::Linear,
        loss: AlignLoss::ZeroOne,
        gap_grid: vec![0.5, 3.0],
    };
    let of = |letters: &[u8]| Sequence { letters: letters.to_vec(), marks: Vec::new() };
    let path = Path { x: 0, z: 0, runs: vec![Run { op: Op::Match, count: 3 }] };
    let query = Query { x: of(&[0, 0, 1]), candidates: vec![of(&[0, 0, 1]), of(&[1, 1])], given: Some(path.clone()) };
    let truth = Aligned { candidate: 0, residues: 6, path };
    let task = Alignment::new(settings);
    let (inputs, truths) = ([&query], [truth]);
    let problem =
        Problem::new(&task, &inputs, &truths, None, formulation(1.0, Rescaling::Margin, Penalty::Linear)).unwrap();
    let solution = Mle.solve(&problem, &Settings::default(), &mut ()).unwrap();
    // Pairs: 2 + 1, 0 + 1, 0 + 1, 1 + 1 of 7; letters of x, and of z: 2 + 1, 1 + 1 of 5.
    let (p, q) = ([3.0 / 7.0, 1.0 / 7.0, 1.0 / 7.0, 2.0 / 7.0], [3.0 / 5.0, 2.0 / 5.0]);
    let w: &[f64] = solution.weights.as_slice();
    for a in 0..2 {
        for b in 0..2 {
            let expected = f64::ln(p[2 * a + b] / (q[a] * q[b]));
            assert!((w[2 * a + b] - expected).abs() < 1e-12, "{} is not {expected}", w[2 * a + b]);
        }
    }
    assert!([-0.5, -3.0].contains(&w[4]));
}

/// Long sequences take memory by the root of their size, and less than all cells would.
#[test]
fn long_sequences_are_aligned_in_little_memory() {
    use maxmargin::inference::align::bytes;
    assert!(bytes(50_000, 50_000) < 300e6, "{}", bytes(50_000, 50_000));
    let mut draw = Draw(3);
    let settings = AlignSettings {
        letters: 4,
        marks: 0,
        reach: Reach::Local,
        gaps: Gaps::Affine,
        loss: AlignLoss::Q,
        gap_grid: Vec::new(),
    };
    let task = Alignment::new(settings.clone());
    // A copy with a piece left out: the best alignment is known.
    let x = Sequence { letters: (0..6000).map(|_| draw.below(4) as u8).collect(), marks: Vec::new() };
    let z = Sequence { letters: [&x.letters[..2000], &x.letters[2500..]].concat(), marks: Vec::new() };
    let mut w = Weights::zeros(task.dimension());
    for a in 0..4 {
        for b in 0..4 {
            w.as_mut_slice()[4 * a + b] = if a == b { 1.0 } else { -1.0 };
        }
    }
    w.as_mut_slice()[16..].copy_from_slice(&[-3.0, -0.01]);
    let query = Query { x, candidates: vec![z], given: None };
    let (mut scratch, mut path) = (AlignScratch::default(), Path::default());
    let score = task.align(&w, &query, 0, &mut scratch, &mut path);
    assert!((score - (5500.0 - 3.0 - 4.99)).abs() < 1e-6, "{score}");
    let truth = Path {
        x: 0,
        z: 0,
        runs: vec![
            Run { op: Op::Match, count: 2000 },
            Run { op: Op::OnlyX, count: 500 },
            Run { op: Op::Match, count: 3500 },
        ],
    };
    // The gap may stand a few residues off where these are alike.
    assert!(Agreement::of(&truth, &path).q() > 0.99);
}
