//! The program `maxmargin`.

use std::process::ExitCode;

fn main() -> ExitCode {
    maxmargin_cli::main()
}
