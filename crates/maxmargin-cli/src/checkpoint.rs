//! `--checkpoint`: training saved now and then, so that `--resume` can go on after a crash.
//!
//! The file is [`MAGIC`], a version (u32), [`Saved`] in the format of the crate `postcard`, and the CRC-32 of all that.
//! Integers are little-endian.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use maxmargin::Error;
use maxmargin::data::output::{remove_leftovers, replace_file};
use maxmargin::solver::heldout::Looks;
use maxmargin::solver::{Snapshot, State};
use maxmargin::weights::Weights;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Result};
use crate::step::{Kept, Step};
use crate::streams::note;

const MAGIC: &[u8; 21] = b"maxmargin checkpoint\n";

/// Raised whenever the content changes: old files are refused, not misread.
const VERSION: u32 = 3;

/// Seconds between two checkpoints, unless told otherwise.
const EVERY: f64 = 5.0;

/// After a save that took a second training goes on for so many: a twentieth of the time goes into saving.
const PAUSE: f64 = 19.0;

/// Options that may differ when training goes on: where results go, and when to give up. Files count by their content.
const FREE: [&str; 15] = [
    "input",
    "model",
    "log",
    "json",
    "quiet",
    "threads",
    "max_seconds",
    "max_passes",
    "checkpoint",
    "checkpoint_every",
    "resume",
    "heldout",
    "cost_matrix",
    "prior",
    "warm_start",
];

/// What a checkpoint belongs to: the options as they were typed, and the checksums of what was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    options: Vec<(String, String)>,
    pub(crate) checksums: Vec<(String, u32)>,
}

/// CRC-32 of numbers.
pub(crate) fn checksum(numbers: &[f64]) -> u32 {
    let mut digest = crc32fast::Hasher::new();
    for x in numbers {
        digest.update(&x.to_le_bytes());
    }
    digest.finalize()
}

impl Identity {
    /// With the options of the program's subcommand that were typed.
    pub(crate) fn new(program: &Command, matches: &ArgMatches) -> Self {
        let chosen = matches.subcommand().and_then(|(name, matches)| Some((program.find_subcommand(name)?, matches)));
        let (command, matches) = chosen.unwrap_or((program, matches));
        let typed = |arg: &clap::Arg| {
            let id = arg.get_id().as_str();
            let is_typed = !FREE.contains(&id) && matches.value_source(id) == Some(ValueSource::CommandLine);
            let words: Vec<_> =
                matches.get_raw(id).filter(|_| is_typed)?.map(|word| word.to_string_lossy().into_owned()).collect();
            Some((arg.get_long().map_or("the task".to_owned(), |long| format!("--{long}")), words.join(" ")))
        };
        Self { options: command.get_arguments().filter_map(typed).collect(), checksums: Vec::new() }
    }

    /// Refuses a checkpoint that belongs to something else.
    fn check(&self, saved: &Self, path: &Path) -> Result<()> {
        let path = path.display();
        if let Some((name, theirs, ours)) = difference(&saved.options, &self.options) {
            let told = |value: Option<&String>| {
                value.map_or_else(|| format!("without {name}"), |value| format!("with {name} {value}"))
            };
            let (theirs, ours) = (told(theirs), told(ours));
            return Err(Failure::Usage(format!("--resume: {path} was made {theirs}, this run is {ours}")));
        }
        if let Some((name, ..)) = difference(&saved.checksums, &self.checksums) {
            return Err(Failure::Data(format!("{path}: cannot go on from this checkpoint: {name} is another now")));
        }
        Ok(())
    }
}

/// The first name whose value is not the same in both lists.
fn difference<'l, V: PartialEq>(
    a: &'l [(String, V)],
    b: &'l [(String, V)],
) -> Option<(&'l str, Option<&'l V>, Option<&'l V>)> {
    let of = |list: &'l [(String, V)], name: &str| list.iter().find(|entry| entry.0 == name).map(|entry| &entry.1);
    let names = a.iter().chain(b).map(|entry| entry.0.as_str());
    names.map(|name| (name, of(a, name), of(b, name))).find(|(_, a, b)| a != b)
}

/// What the file holds.
#[derive(Debug, Deserialize)]
pub(crate) struct Saved {
    identity: Identity,
    /// The path so far.
    pub(crate) steps: Vec<Step>,
    pub(crate) kept: Option<Kept>,
    /// Of the C in hand.
    pub(crate) looks: Looks,
    state: Vec<u8>,
}

/// The same as it is written: the fields and their order are those of [`Saved`].
#[derive(Serialize)]
struct Saving<'s> {
    identity: &'s Identity,
    steps: &'s [Step],
    kept: Option<&'s Kept>,
    looks: &'s Looks,
    state: &'s [u8],
}

impl Saved {
    /// Reads the checkpoint of a run with this identity, so many C, and weights that fit; None where there is no file.
    pub(crate) fn load(
        path: &Path,
        identity: &Identity,
        rungs: usize,
        fits: impl Fn(&Weights) -> bool,
    ) -> Result<Option<Self>> {
        let refuse = |what: &str| Err(Failure::Data(format!("{}: {what}", path.display())));
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                note(&format!("there is no checkpoint {}: training starts from the beginning", path.display()));
                return Ok(None);
            }
            Err(e) => return Err(Error::io(path, e).into()),
        };
        let Some((version, rest)) = bytes.strip_prefix(MAGIC).and_then(<[u8]>::split_first_chunk) else {
            return refuse("this is no checkpoint");
        };
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            return refuse(&format!("the checkpoint has version {version}, this program reads {VERSION}"));
        }
        let Some((content, checksum)) = rest.split_last_chunk() else {
            return refuse("the checkpoint is cut off");
        };
        let is_whole = crc32fast::hash(&bytes[..bytes.len() - checksum.len()]) == u32::from_le_bytes(*checksum);
        let Some(saved) = postcard::from_bytes::<Self>(content).ok().filter(|_| is_whole) else {
            return refuse("the checkpoint is damaged");
        };
        identity.check(&saved.identity, path)?;
        let kept = saved.kept.as_ref().map(|kept| &kept.weights);
        let mut weights = kept.into_iter().chain(saved.looks.best().map(|best| &best.weights));
        if !weights.all(fits) || saved.steps.len() >= rungs {
            return refuse("the checkpoint is damaged");
        }
        Ok(Some(saved))
    }

    /// Where the solver stood.
    pub(crate) fn state(&mut self) -> Result<State> {
        Ok(State::from_bytes(std::mem::take(&mut self.state))?)
    }
}

/// Writes checkpoints.
#[derive(Debug)]
pub(crate) struct Saver {
    path: PathBuf,
    identity: Identity,
    every: f64,
    last: Instant,
    /// How long the last save took.
    cost: Duration,
    has_warned: bool,
}

impl Saver {
    pub(crate) fn new(path: &Path, every: Option<f64>, identity: Identity) -> Self {
        let every = every.unwrap_or(EVERY);
        let path = path.to_owned();
        remove_leftovers(&path);
        Self { path, identity, every, last: Instant::now(), cost: Duration::ZERO, has_warned: false }
    }

    /// Is it time for another?
    pub(crate) fn is_due(&self) -> bool {
        let pause = if self.every > 0.0 { self.every.max(PAUSE * self.cost.as_secs_f64()) } else { 0.0 };
        self.last.elapsed().as_secs_f64() >= pause
    }

    /// Saves. A full disk does not stop training; it is told once.
    pub(crate) fn save(
        &mut self,
        steps: &[Step],
        kept: Option<&Kept>,
        looks: &Looks,
        snapshot: &dyn Snapshot,
    ) -> maxmargin::Result<()> {
        let began = Instant::now();
        let state = snapshot.save()?;
        let saving = Saving { identity: &self.identity, steps, kept, looks, state: state.as_bytes() };
        let head = [MAGIC.as_slice(), &VERSION.to_le_bytes()].concat();
        let mut bytes = postcard::to_extend(&saving, head).expect("plain structs serialise");
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        if let Err(error) = replace_file(&self.path, |file| file.write_all(&bytes))
            && !self.has_warned
        {
            note(&format!("{error}; training goes on, and the checkpoint is tried again"));
            self.has_warned = true;
        }
        (self.last, self.cost) = (Instant::now(), began.elapsed());
        Ok(())
    }

    /// Training is done: nothing is left to go on with.
    pub(crate) fn remove(&self) {
        // There may be none yet.
        drop(fs::remove_file(&self.path));
    }

    /// The file, where there is one to go on from.
    pub(crate) fn file(&self) -> Option<&Path> {
        Some(self.path.as_path()).filter(|path| path.exists())
    }
}
