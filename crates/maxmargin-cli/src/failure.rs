//! What goes wrong, as message and exit code: 1 for bad data and files, 2 for bad usage.

use std::io::{self, Write};
use std::process::ExitCode;

use maxmargin::Error;

/// The result of a command.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
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

/// Writes to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|e| Error::io("standard output", e).into())
}

/// Writes one JSON object and a line end to standard output.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string(value).expect("plain structs become JSON");
    print(&(text + "\n"))
}

/// Says something on standard error that does not stop the work.
pub(crate) fn note(text: &str) {
    drop(writeln!(io::stderr(), "note: {text}"));
}
