//! What goes wrong, as message and exit code: 1 for bad data and files, 2 for bad usage.

use std::io::{self, Write};
use std::process::ExitCode;

use maxmargin::Error;

/// The result of a command.
pub type Result<T> = std::result::Result<T, Failure>;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// A flag, or flags that exclude each other.
    Usage(String),
    /// Data or files.
    Data(String),
    /// Whoever reads our output has had enough (`maxmargin predict ... | head`): no failure at all.
    Closed,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Setting { name, rule } => Self::Usage(format!("--{name}: {rule}")),
            Error::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe => Self::Closed,
            other => Self::Data(other.to_string()),
        }
    }
}

impl Failure {
    /// Says what is wrong on standard error.
    pub(crate) fn report(self, command: &str) -> ExitCode {
        // Standard error may be closed, too; then nobody wants to know.
        let mut stderr = io::stderr();
        match self {
            Self::Usage(what) => {
                let help = format!("For more information, try 'maxmargin {command} --help'.");
                drop(writeln!(stderr, "error: {what}\n\n{help}"));
                ExitCode::from(2)
            }
            Self::Data(what) => {
                drop(writeln!(stderr, "error: {what}"));
                ExitCode::from(1)
            }
            Self::Closed => ExitCode::SUCCESS,
        }
    }
}
