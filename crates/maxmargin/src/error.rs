//! What can go wrong, told so that the reader can mend it.

use std::path::PathBuf;

/// A result with maxmargin's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Every error of the library. Not converging is not among them: it is a
/// [`Status`](crate::solver::Status) in the report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A line of an input file does not follow its format.
    #[error("{name}:{line}: {what}")]
    Parse {
        /// The file, as the caller named it.
        name: String,
        /// Line number, from 1.
        line: u64,
        /// The cause and the way out.
        what: String,
    },
    /// A setting is outside its range, or two settings exclude each other.
    #[error("{name}: {rule}")]
    Setting {
        /// The setting's name, as on the command line but without dashes.
        name: &'static str,
        /// The rule that it breaks.
        rule: String,
    },
    /// An example does not fit the task.
    #[error("example {}: {what}", example + 1)]
    Data {
        /// Index of the example, from 0 (shown from 1).
        example: usize,
        /// The cause and the way out.
        what: String,
    },
    /// A model file is foreign, damaged, newer than this program, or for another task.
    #[error("{what}")]
    Model {
        /// The cause and the way out.
        what: String,
    },
    /// Reading or writing failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A user's own task failed; its error, unchanged.
    #[error(transparent)]
    Task(Box<dyn std::error::Error + Send + Sync>),
}

/// What is wrong with the parts of a model.
pub(crate) fn invalid<T>(what: impl std::fmt::Display) -> Result<T> {
    Err(Error::model(format!("not a valid model: {what}")))
}

impl Error {
    /// A broken rule of a setting.
    pub fn setting(name: &'static str, rule: impl Into<String>) -> Self {
        Self::Setting { name, rule: rule.into() }
    }

    /// A failed read or write of `path`.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }

    /// A model file that cannot be used.
    pub fn model(what: impl Into<String>) -> Self {
        Self::Model { what: what.into() }
    }
}
