//! Training saved between two rounds, to be resumed.
//!
//! A state is the 16 bytes [`MAGIC`], a version (u32), parts in the format of the crate `postcard`, and the CRC-32 of all
//! that. Integers are little-endian. The first part is the [`Header`], which says what the state belongs to; the second the
//! course so far; the solver's own follow. Numbers are kept bit for bit, so that a resumed run ends where an undisturbed
//! one does. A state may come from a damaged or a hostile file: whoever reads a part checks it.

use std::borrow::Cow;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::reported::DualPoint;
use super::{Settings, Solver};
use crate::error::{Error, Result};
use crate::features::{Block, Sink};
use crate::problem::{Formulation, Penalty, Problem};
use crate::sparse::SparseView;
use crate::weights::Weights;

const MAGIC: &[u8; 16] = b"maxmargin state\n";

/// Raised whenever the parts change: old states are refused, not misread.
const VERSION: u32 = 15;

/// Magic and version in front, the checksum behind.
const FRONT: usize = MAGIC.len() + 4;
const BACK: usize = 4;

/// A saved state of training: [`Settings::resume`](super::Settings::resume) goes on from it.
///
/// An [`Observer`](super::Observer) may save one after every round. The one at the end leads along a path over C, where each
/// run begins near its end:
///
/// ```
/// use maxmargin::problem::{Formulation, Problem};
/// use maxmargin::solver::cutting_plane::CuttingPlane;
/// use maxmargin::solver::{Settings, Solver};
/// use maxmargin::sparse::SparseMatrix;
/// use maxmargin::tasks::binary::Binary;
///
/// # fn main() -> maxmargin::Result<()> {
/// let mut x = SparseMatrix::new();
/// for (a, b) in [(2.0, 0.1), (1.5, -0.2), (-1.0, 1.6), (0.3, 1.8)] {
///     x.push_row([(0, a), (1, b)]);
/// }
/// let (task, rows, y) = (Binary::new(2), x.views(), [1, 1, 0, 0]);
/// let mut state = None;
/// for c in [1.0, 2.0, 4.0] {
///     let formulation = Formulation { c, ..Formulation::default() };
///     let problem = Problem::new(&task, &rows, &y, None, formulation)?;
///     let settings = Settings { resume: state, keep_state: true, ..Settings::default() };
///     let solution = CuttingPlane::default().solve(&problem, &settings, &mut ())?;
///     println!("C = {c}: {} passes", solution.report.passes);
///     state = solution.state;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct State {
    bytes: Vec<u8>,
    /// Did the bytes, or those of a state that the run went on from, come from outside? Somebody may have changed them.
    is_foreign: bool,
}

/// States are equal if their bytes are.
impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for State {}

impl State {
    /// The bytes, to be kept in a file.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A state from its bytes. Fails where they are foreign, of another version, or damaged.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        if !bytes.starts_with(MAGIC) {
            return Err(refused("this is no saved state of training"));
        }
        let Some((parts, checksum)) = bytes.split_last_chunk::<BACK>().filter(|(parts, _)| parts.len() >= FRONT) else {
            return Err(damaged("it is cut off"));
        };
        let version = parts[MAGIC.len()..].first_chunk().map_or(0, |v| u32::from_le_bytes(*v));
        if version != VERSION {
            return Err(refused(format!("the saved state has version {version}, this program reads {VERSION}")));
        }
        if crc32fast::hash(parts) != u32::from_le_bytes(*checksum) {
            return Err(damaged("its checksum does not fit"));
        }
        Ok(Self { bytes, is_foreign: true })
    }

    /// Can the state have been changed since a run of this program saved it?
    pub(super) fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    fn parts(&self) -> &[u8] {
        &self.bytes[FRONT..self.bytes.len() - BACK]
    }
}

/// By its length: the bytes say nothing to a reader.
impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "State({} bytes)", self.bytes.len())
    }
}

/// Training as it stands at the end of a round.
pub trait Snapshot {
    /// What training would return if it stopped here, but for a closing exact pass.
    fn weights(&self) -> Cow<'_, Weights>;

    /// Rounds that lie behind what [`save`](Self::save) returns: one less than there were where a limit has cut the last short.
    fn rounds(&self) -> u64;

    /// Everything that decides how training goes on. Fails only where the task's outputs do not serialise.
    fn save(&self) -> Result<State>;

    /// The same to begin with at another C, where a round that was cut short counts.
    fn save_for_another_c(&self) -> Result<State>;
}

/// A solver's own part of a state.
pub(super) trait Resumable {
    /// Writes everything that decides what the solver does next, in the order in which it will be read.
    fn write(&self, out: &mut Writer) -> Result<()>;

    /// What training would return if it stopped here, for solvers whose answer is not the best point of the course.
    fn weights(&self) -> Option<Cow<'_, Weights>> {
        None
    }

    /// The point of the dual whose value is the bound, for solvers whose bound is computed anew before it is reported.
    fn dual_point(&self) -> Result<Option<DualPoint>> {
        Ok(None)
    }
}

/// Puts the parts of a state one after the other.
#[derive(Debug)]
pub(super) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn new(header: &Header) -> Result<Self> {
        let mut writer = Self { bytes: [MAGIC.as_slice(), &VERSION.to_le_bytes()].concat() };
        writer.put(header)?;
        Ok(writer)
    }

    pub(super) fn put(&mut self, part: &(impl Serialize + ?Sized)) -> Result<()> {
        let bytes = std::mem::take(&mut self.bytes);
        self.bytes = postcard::to_extend(part, bytes).map_err(|e| Error::Task(Box::new(e)))?;
        Ok(())
    }

    /// `is_foreign`: does the state rest on one that came from outside?
    pub(super) fn finish(mut self, is_foreign: bool) -> State {
        let checksum = crc32fast::hash(&self.bytes);
        self.bytes.extend(checksum.to_le_bytes());
        State { bytes: self.bytes, is_foreign }
    }
}

/// The parts of a state, read in the order in which they were written.
#[derive(Debug)]
pub(super) struct Reader<'s> {
    rest: &'s [u8],
}

impl<'s> Reader<'s> {
    /// Begins with the header.
    pub(super) fn new(state: &'s State) -> Result<(Header, Self)> {
        let mut reader = Self { rest: state.parts() };
        Ok((reader.take()?, reader))
    }

    pub(super) fn take<P: DeserializeOwned>(&mut self) -> Result<P> {
        let (part, rest) = postcard::take_from_bytes(self.rest).map_err(|e| damaged(&e.to_string()))?;
        self.rest = rest;
        Ok(part)
    }
}

/// What a state belongs to.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    /// The solver's name, and itself with its settings.
    name: String,
    solver: String,
    examples: u64,
    dimension: u64,
    formulation: Formulation,
    seed: u64,
    /// Of the examples.
    fingerprint: u64,
}

impl Header {
    pub(super) fn new(solver: &dyn Solver, problem: &Problem<'_>, settings: &Settings) -> Self {
        Self {
            name: solver.name().to_owned(),
            solver: format!("{solver:?}"),
            examples: problem.len() as u64,
            dimension: problem.dimension() as u64,
            formulation: problem.formulation(),
            seed: settings.seed,
            fingerprint: fingerprint(problem),
        }
    }

    /// Can a run with this header go on from a state with the header `saved`? Says what C has been multiplied by since; None
    /// where it is the same, or of no importance as with the hard margin.
    pub(super) fn resumes(&self, saved: &Self) -> Result<Option<f64>> {
        let differ = |what: &str, saved: &dyn fmt::Display, this: &dyn fmt::Display| {
            Err(refused(format!("the state was saved with {what} {saved}, this run has {this}")))
        };
        if self.name != saved.name {
            return differ("solver", &saved.name, &self.name);
        }
        if self.solver != saved.solver {
            return differ("solver", &saved.solver, &self.solver);
        }
        if self.examples != saved.examples {
            return differ("number of examples", &saved.examples, &self.examples);
        }
        if self.dimension != saved.dimension {
            return differ("number of weights", &saved.dimension, &self.dimension);
        }
        if self.seed != saved.seed {
            return differ("seed", &saved.seed, &self.seed);
        }
        let Formulation { c, .. } = self.formulation;
        if self.formulation != (Formulation { c, ..saved.formulation }) {
            return Err(refused(
                "the state was saved with another rescaling, penalty or loss scale; only C may change",
            ));
        }
        if self.fingerprint != saved.fingerprint {
            return Err(refused("the state was saved with other examples"));
        }
        check(saved.formulation.c > 0.0 && saved.formulation.c.is_finite(), "C")?;
        let is_same = c == saved.formulation.c || self.formulation.penalty == Penalty::Hard;
        Ok((!is_same).then(|| c / saved.formulation.c))
    }
}

/// A state that cannot be used, and why.
fn refused(rule: impl Into<String>) -> Error {
    Error::setting("resume", rule)
}

fn damaged(what: &str) -> Error {
    refused(format!("the saved state is damaged ({what})"))
}

/// Does a part that was read hold what it must? `what` names it.
pub(super) fn check(holds: bool, what: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(damaged(what)) }
}

/// Is `x` a number that a run can go on with?
pub(super) fn is_sound(x: f64) -> bool {
    x.abs() <= crate::qp::LARGEST
}

/// `d` weights that a run can go on with?
pub(super) fn check_weights(w: &Weights, d: usize) -> Result<()> {
    check(is_dense(w, d) && !w.has_coefficients() && w.all(is_sound), "weights")
}

/// The same of weights for this problem, which may have a kernel.
pub(super) fn check_point(w: &Weights, problem: &Problem<'_>) -> Result<()> {
    let (d, has_kernel) = (problem.dimension(), problem.metric().is_some());
    let fits = is_dense(w, d) && w.coefficients().len() == d;
    check(fits && w.has_coefficients() == has_kernel && w.all(is_sound), "weights")
}

/// `d` coordinates, and none in short rows, be these empty?
fn is_dense(w: &Weights, d: usize) -> bool {
    w.as_slice().len() == d && w.short_rows().is_none()
}

/// The same of weights in the form of others: those of a new run.
pub(super) fn check_form(w: &Weights, new: &Weights) -> Result<()> {
    check(w.has_form_of(new) && w.all(is_sound), "weights")
}

/// A number that changes with the examples: cuts of other examples would be false bounds.
fn fingerprint(problem: &Problem<'_>) -> u64 {
    let mut sum = Fingerprint(0);
    for i in 0..problem.len() {
        sum.add(problem.weight(i).to_bits());
        sum.add(problem.max_loss_of(i).to_bits());
        // An output that the task cannot describe fails soon enough; here it is left out.
        drop(problem.add_truth(i, &mut sum));
    }
    // Inputs are the numbers of atoms then, which say nothing of the vectors.
    if let Some(metric) = problem.metric() {
        format!("{:?}", metric.gram().kernel()).bytes().for_each(|byte| sum.add(byte.into()));
        let atoms = metric.gram().atoms();
        (0..atoms.rows()).for_each(|a| sum.part(metric.block(), 0, atoms.row(a), 1.0));
    }
    sum.0
}

struct Fingerprint(u64);

impl Fingerprint {
    fn add(&mut self, x: u64) {
        // FNV's step and a rotation, on words: this tells files apart, it defends against nobody.
        self.0 = (self.0.rotate_left(23) ^ x).wrapping_mul(0x0000_0100_0000_01b3);
    }
}

impl Sink for Fingerprint {
    fn part(&mut self, block: Block, slot: u32, phi: SparseView<'_>, scale: f64) {
        self.add(block.base ^ u64::from(slot));
        self.add(scale.to_bits());
        for (j, v) in phi.iter() {
            self.add(u64::from(j) << 32 | u64::from(v.to_bits()));
        }
    }
}
