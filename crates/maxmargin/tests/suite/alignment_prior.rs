//! Alignments learned along known directions, from known scores on or with tied ones: the same laws and exact oracles, one optimum for all solvers, and what a prior does
//! with little and with much weight on the data.

use crate::common;

use std::path::Path;

use common::alignments::{LOSSES, check_oracles, outputs, problem, settings};
use common::{Any, Draw, formulation, n_slack, patience, psi, to_gap};
use maxmargin::data::alignments::{Alphabet, Alphabets, Substitutions};
use maxmargin::data::input::Input;
use maxmargin::inference::align::{Op, Path as Columns, Reach};
use maxmargin::parallel::Pool;
use maxmargin::problem::{Penalty, Problem, Rescaling};
use maxmargin::solver::bcfw::Bcfw;
use maxmargin::solver::cutting_plane::CuttingPlane;
use maxmargin::solver::n_slack::Update;
use maxmargin::solver::{Certificate, Settings, Solver};
use maxmargin::sparse::dot;
use maxmargin::task::Task;
use maxmargin::tasks::alignment::{
    AlignLoss, AlignScratch, AlignSettings, Aligned, Alignment, FromPrior, Gaps, PriorScratch, Query, Sequence,
};
use maxmargin::testing::check_task;
use maxmargin::weights::Weights;
use proptest::prelude::*;

fn from_prior(draw: &mut Draw, settings: AlignSettings) -> FromPrior {
    let task = Alignment::new(settings);
    let known = draw.weights(task.dimension(), 2.0);
    let directions = match draw.below(3) {
        0 => vec![known],
        1 => task.tied(),
        _ => [vec![known], task.tied()].concat(),
    };
    FromPrior::new(task, directions)
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn they_obey_the_laws(seed: u64) {
        for kind in LOSSES {
            let mut draw = Draw(seed);
            let settings = settings(&mut draw, kind);
            let (queries, truths) = problem(&mut draw, &settings, 4);
            let task = from_prior(&mut draw, settings);
            let examples: Vec<(&Query, Aligned)> = queries.iter().zip(truths).collect();
            check_task(&task, &examples, draw.next()).unwrap();
        }
    }

    /// The score is that of the effective weights; argmax and oracles against all outputs.
    #[test]
    fn oracles_are_exact(seed: u64) {
        for kind in LOSSES {
            let mut draw = Draw(seed);
            let settings = settings(&mut draw, kind);
            let (queries, truths) = problem(&mut draw, &settings, 3);
            let task = from_prior(&mut draw, settings.clone());
            let inputs: Vec<&Query> = queries.iter().collect();
            let w = draw.weights(task.dimension(), 1.0);
            let effective = task.effective(&w);
            for query in &inputs {
                for output in &outputs(query, &settings) {
                    let plain = dot(&psi(task.task(), query, output), effective.as_slice());
                    let score = task.score(&w, query, output).unwrap();
                    prop_assert!((score - plain).abs() <= 1e-9 * (1.0 + plain.abs()), "{score} is not {plain}");
                }
            }
            check_oracles(&task, &settings, &inputs, &truths, &w);
        }
    }

    /// One optimum, with a proof; there the factors follow from the other weights, and effective weights tell all.
    #[test]
    fn solvers_agree(seed: u64) {
        for kind in LOSSES {
            let mut draw = Draw(seed);
            let settings = settings(&mut draw, kind);
            let (queries, truths) = problem(&mut draw, &settings, 5);
            let task = from_prior(&mut draw, settings);
            let inputs: Vec<&Query> = queries.iter().collect();
            let problem = Problem::new(&task, &inputs, &truths, None, formulation(5.0, Rescaling::Margin, Penalty::Linear)).unwrap();
            let pool = Pool::new(1).unwrap();
            let mut least = Vec::new();
            let solvers = [Any::Cuts(CuttingPlane::default()), n_slack(Update::Batch(5)), Any::Bcfw(Bcfw::default()), Any::FrankWolfe];
            for solver in solvers {
                let gap = if matches!(solver, Any::FrankWolfe) { 0.1 } else { 1e-4 };
                let one = solver.solve(&problem, &Settings { threads: 1, ..to_gap(gap) }, &mut patience());
                let two = solver.solve(&problem, &Settings { threads: 2, ..to_gap(gap) }, &mut patience());
                prop_assert_eq!(common::bits_of(&one), common::bits_of(&two));
                prop_assert_eq!(one.report.certificate, Certificate::Exact);
                let p = problem.objective(&one.weights, &pool).unwrap();
                prop_assert!((p - one.report.primal).abs() <= 1e-9 * (1.0 + p) && one.report.dual <= p + 1e-9);
                least.push((one.report.dual, p));
                // All of them hand out combinations of cuts.
                let w = one.weights.as_slice();
                let size = 1.0 + w.iter().map(|w| w.abs()).fold(0.0, f64::max);
                prop_assert!(distance(task.lifted(&task.effective(&one.weights)).as_slice(), w) <= 1e-6 * size);
            }
            for (_, p) in &least {
                for (dual, _) in &least {
                    prop_assert!(dual <= &(p + 1e-9), "{kind:?}: a bound {dual} above an objective {p}");
                }
            }
        }
    }

    /// Lifted weights have the effective ones that were asked for, and no others have a smaller norm.
    #[test]
    fn lifted_weights_are_the_least(seed: u64) {
        let mut draw = Draw(seed);
        let settings = settings(&mut draw, AlignLoss::Q);
        let task = from_prior(&mut draw, settings);
        let asked = draw.weights(task.task().dimension(), 1.0);
        let lifted = task.lifted(&asked);
        prop_assert!(distance(task.effective(&lifted).as_slice(), asked.as_slice()) < 1e-12);
        for factor in task.task().dimension()..task.dimension() {
            let direction = task.effective(&(0..task.dimension()).map(|k| f64::from(u8::from(k == factor))).collect());
            for step in [-0.3, 0.01, 2.0] {
                let mut other = lifted.clone();
                other.as_mut_slice().iter_mut().zip(direction.as_slice()).for_each(|(v, k)| *v -= step * k);
                other.as_mut_slice()[factor] += step;
                prop_assert!(distance(task.effective(&other).as_slice(), asked.as_slice()) < 1e-9);
                prop_assert!(other.norm2() > lifted.norm2());
            }
        }
    }

    /// Whatever the bytes: a table, or an error that names the line.
    #[test]
    fn any_bytes_are_a_table_or_an_error(bytes: Vec<u8>, cut in 0_usize..40, noise: Vec<u8>) {
        let mut text = b"# c\n   A C\nA 1 -2\nC 3 4\n".to_vec();
        text.truncate(cut);
        text.extend(noise);
        for bytes in [bytes, text] {
            let Ok(input) = Input::new("m", &bytes[..]) else { continue };
            if let Err(error) = Substitutions::read(input) {
                prop_assert!(error.to_string().starts_with('m'), "{error}");
            }
        }
    }
}

fn protein(reach: Reach, loss: AlignLoss) -> (Alphabets, Alignment) {
    let letters = Alphabet::new(Alphabet::PROTEIN.chars()).unwrap();
    let settings = AlignSettings { letters: 20, marks: 0, reach, gaps: Gaps::Affine, loss, gap_grid: Vec::new() };
    (Alphabets { letters, marks: Alphabet::default() }, Alignment::new(settings))
}

fn sequence(alphabets: &Alphabets, letters: &str) -> Sequence {
    Sequence { letters: letters.chars().map(|letter| alphabets.letters.code(letter)).collect(), marks: Vec::new() }
}

fn query(alphabets: &Alphabets, x: &str, z: &str) -> Query {
    Query { x: sequence(alphabets, x), candidates: vec![sequence(alphabets, z)], given: None }
}

/// Any positive factor and no other weights: the alignments are the prior's. Score by hand:
/// HEAGAWGHEE and PAWHEAE (Durbin, Eddy, Krogh, Mitchison 1998) over BLOSUM62 with gaps of 11 and 1: AW, 4 + 11, is the best.
#[test]
fn the_factor_alone_aligns_as_the_prior_does() {
    let (alphabets, task) = protein(Reach::Local, AlignLoss::Q);
    let known = Substitutions::blosum62().unwrap().weights(&alphabets, &task, &[11.0, 1.0]).unwrap();
    let query = query(&alphabets, "HEAGAWGHEE", "PAWHEAE");
    let mut path = Columns::default();
    let score = task.align(&known, &query, 0, &mut AlignScratch::default(), &mut path);
    // The gap between AW and HE costs 11, and HE brings 8 + 5.
    assert_eq!((score, path.matches().collect::<Vec<_>>()), (17.0, vec![(4, 1), (5, 2), (7, 3), (8, 4)]));
    let primed = FromPrior::new(task, vec![known]);
    for factor in [1e-3, 1.0, 250.0] {
        let mut w = Weights::zeros(primed.dimension());
        w.as_mut_slice()[402] = factor;
        let mut y = Aligned::default();
        primed.argmax(&w, &query, None, &mut PriorScratch::default(), &mut y).unwrap();
        assert_eq!(y.path, path);
        assert!((primed.score(&w, &query, &y).unwrap() - factor * score).abs() < 1e-9);
    }
}

/// Pairs that match by the rule of the prior, but for one letter, which goes with another one. With little weight on the data the
/// learned scores are the prior's, where they were not seen, too; with much weight the rule for that letter is learned besides.
#[test]
fn small_and_large_c() {
    let (alphabets, task) = protein(Reach::Global, AlignLoss::Q);
    let known = Substitutions::blosum62().unwrap().weights(&alphabets, &task, &[11.0, 1.0]).unwrap();
    let primed = FromPrior::new(task.clone(), vec![known.clone()]);
    // K is where W should be, W where K should be.
    let pairs = [("ACDEKGHI", "ACDEWGHI"), ("KKLMNAA", "WWLMNAA"), ("GGWHEAC", "GGKHEAC")];
    let queries = pairs.map(|(x, z)| query(&alphabets, x, z));
    let truths: Vec<Aligned> = queries
        .iter()
        .map(|query| {
            let mut path = Columns::default();
            path.push(Op::Match, query.x.len() as u32);
            Aligned { candidate: 0, residues: query.residues(0), path }
        })
        .collect();
    let inputs: Vec<&Query> = queries.iter().collect();
    let cosine = |a: &[f64], b: &[f64]| dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
    let mut shapes = Vec::new();
    for c in [1e-3, 1e3] {
        let problem =
            Problem::new(&primed, &inputs, &truths, None, formulation(c, Rescaling::Margin, Penalty::Linear)).unwrap();
        let solution = Bcfw::default().solve(&problem, &to_gap(1e-6 * c), &mut patience()).unwrap();
        let effective = primed.effective(&solution.weights);
        assert!(primed.factors(&solution.weights)[0] > 0.0);
        let score = |w: &Weights, a: char, b: char| {
            let code = |letter| alphabets.letters.code(letter);
            task.match_score(w, (code(a), code(b)), (255, 255))
        };
        // Letters that no example has: the prior's scores times the factor.
        let expected = primed.factors(&solution.weights)[0] * score(&known, 'V', 'I');
        assert!((score(&effective, 'V', 'I') - expected).abs() < 1e-12);
        shapes.push((cosine(effective.as_slice(), known.as_slice()), score(&effective, 'K', 'W'), solution));
    }
    let [(small, _, _), (large, match_of_k, at_large)] = &shapes[..] else { panic!("two") };
    assert!(*small > 0.99 && large < small, "{small} {large}");
    // BLOSUM62 has -3 there.
    let by_prior = primed.factors(&at_large.weights)[0] * -3.0;
    assert!(*match_of_k > by_prior, "{match_of_k} {by_prior}");
    let problem =
        Problem::new(&primed, &inputs, &truths, None, formulation(1e3, Rescaling::Margin, Penalty::Linear)).unwrap();
    assert_eq!(problem.train_loss(&at_large.weights, &Pool::new(1).unwrap()).unwrap(), 0.0);
}

/// A pair of letters that no example has gets the score that its kind shares, and no other.
#[test]
fn ties_speak_for_letters_that_were_not_seen() {
    let (alphabets, task) = protein(Reach::Global, AlignLoss::Q);
    let pairs = [("ACDEFGHI", "ACDFGHI"), ("KLMNAA", "KLNAA")];
    let queries = pairs.map(|(x, z)| query(&alphabets, x, z));
    let truths: Vec<Aligned> = queries
        .iter()
        .zip([3, 2])
        .map(|(query, before)| {
            let mut path = Columns::default();
            path.push(Op::Match, before);
            path.push(Op::OnlyX, 1);
            path.push(Op::Match, query.x.len() as u32 - before - 1);
            Aligned { candidate: 0, residues: query.residues(0), path }
        })
        .collect();
    let inputs: Vec<&Query> = queries.iter().collect();
    let tied = FromPrior::new(task.clone(), task.tied());
    let problem =
        Problem::new(&tied, &inputs, &truths, None, formulation(10.0, Rescaling::Margin, Penalty::Linear)).unwrap();
    let solution = Bcfw::default().solve(&problem, &to_gap(1e-4), &mut patience()).unwrap();
    let (w, factors) = (tied.effective(&solution.weights), tied.factors(&solution.weights));
    let score =
        |a: char, b: char| task.match_score(&w, (alphabets.letters.code(a), alphabets.letters.code(b)), (255, 255));
    assert_eq!((score('W', 'W'), score('V', 'Y')), (factors[0], factors[1]));
    assert!(factors[0] > 0.0 && factors[0] > factors[1], "{factors:?}");
}

/// Facts about BLOSUM62 that are in every textbook: symmetric, these scores of identical letters, the sum of all 210.
#[test]
fn blosum62_is_itself() {
    let table = Substitutions::blosum62().unwrap();
    let letters: Vec<char> = Alphabet::PROTEIN.chars().collect();
    let of = |a: char, b: char| table.score(a, b).unwrap();
    let diagonal: Vec<f64> = letters.iter().map(|&a| of(a, a)).collect();
    let known = [4, 9, 6, 5, 6, 6, 8, 4, 5, 4, 5, 6, 7, 5, 5, 4, 5, 4, 11, 7].map(f64::from);
    assert_eq!(diagonal, known);
    for &a in &letters {
        for &b in &letters {
            assert_eq!(of(a, b), of(b, a), "{a} {b}");
            assert!(a == b || (-4.0..=3.0).contains(&of(a, b)), "{a} {b}");
        }
    }
    let few = [
        ('I', 'V', 3),
        ('F', 'Y', 3),
        ('W', 'Y', 2),
        ('D', 'E', 2),
        ('K', 'R', 2),
        ('L', 'W', -2),
        ('C', 'E', -4),
        ('A', 'S', 1),
    ];
    for (a, b, score) in few {
        assert_eq!(of(a, b), f64::from(score), "{a} {b}");
    }
    let sum: f64 = letters
        .iter()
        .enumerate()
        .flat_map(|(k, &a)| letters[..=k].iter().map(move |&b| (a, b)))
        .map(|(a, b)| of(a, b))
        .sum();
    assert_eq!(sum, -155.0);
    assert_eq!((table.score('B', 'N'), table.score('X', 'X'), table.score('J', 'A')), (Some(3.0), Some(-1.0), None));
}

#[test]
fn tables_are_read_or_refused_by_line() {
    let read = |text: &[u8]| Substitutions::read(Input::new("m", text).unwrap()).map_err(|error| error.to_string());
    let table = read(b"\xef\xbb\xbf# mine\r\n   A  C\r\n\nC  -1 2.5\r\n# more\nA\t1e1 0\n").unwrap();
    let scores = [('A', 'A'), ('A', 'C'), ('C', 'A'), ('C', 'C')].map(|(a, b)| table.score(a, b));
    assert_eq!(scores, [10.0, 0.0, -1.0, 2.5].map(Some));
    let many: String = (0..300).filter_map(|k| char::from_u32(0x400 + k)).flat_map(|c| [c, ' ']).collect();
    let cases: [(&[u8], &str); 13] = [
        (b"", "m:1: no table of substitutions"),
        (b"# only\n\n", "m:1: no table of substitutions"),
        (b"A C\nA 1 2\n", "m:2: no row for 'C'"),
        (b"A C\nA 1\n", "m:2: the row of 'A' has 1 scores for 2 letters"),
        (b"\nA C\nA 1 2 3\n", "m:3: the row of 'A' has more than 2 scores"),
        (b"A C\nA 1 2\nA 1 2\n", "m:3: a second row for 'A'"),
        (b"A C\nG 1 2\n", "m:2: a row for 'G', which is not among the letters on top"),
        (b"A A\n", "m:1: the letters on top: 'A' is there twice"),
        (b"A -\n", "m:1: the letters on top: '-' cannot be a letter"),
        (b"A CC\n", "m:1: 'CC' where a letter should stand"),
        (b"A\nA x\n", "m:2: 'x' where a score should stand"),
        (b"A\nA nan\n", "m:2: the score nan"),
        (b"A\n\xff", "m:2: this is no text (UTF-8)"),
    ];
    for (text, what) in cases {
        let said = read(text).unwrap_err();
        assert!(said.starts_with(what), "{said}");
    }
    assert!(read(many.as_bytes()).unwrap_err().contains("too many"));
    let said = read(&vec![b' '; (16 << 20) + 1]).unwrap_err();
    assert!(said.contains("bytes are no table"), "{said}");
}

/// The fuzzer's corpus: each file is a table or is refused by a line, as its name says.
#[test]
fn the_corpus_is_replayed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/substitutions");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let read = Substitutions::read(Input::open(&path).unwrap()).map_err(|error| error.to_string());
        let is_good = path.file_name().unwrap().to_string_lossy().starts_with("good");
        assert_eq!(read.is_ok(), is_good, "{}: {:?}", path.display(), read.err());
        count += 1;
    }
    assert!(count >= 6, "{count} files");
}

#[test]
fn tables_become_weights_or_it_is_said_why() {
    let table = Substitutions::blosum62().unwrap();
    let (alphabets, task) = protein(Reach::Local, AlignLoss::Q);
    let w = table.weights(&alphabets, &task, &[10.0, 0.5]).unwrap();
    for (a, x) in (0..).zip(Alphabet::PROTEIN.chars()) {
        for (b, z) in (0..).zip(Alphabet::PROTEIN.chars()) {
            assert_eq!(Some(task.match_score(&w, (a, b), (255, 255))), table.score(x, z));
        }
    }
    assert_eq!(task.gap_scores(&w, 255), (-10.0, -0.5));
    assert!(table.weights(&alphabets, &task, &[1.0]).unwrap_err().contains("1 costs of gaps where 2 are needed"));
    let letters = Alphabet::new("ACGU".chars()).unwrap();
    let other = Alignment::new(AlignSettings { letters: 4, ..task.settings().clone() });
    let said = table.weights(&Alphabets { letters, marks: Alphabet::default() }, &other, &[1.0, 1.0]).unwrap_err();
    assert!(said.ends_with("no scores for U"), "{said}");
}
