//! Standard input, output and error, as the commands see them: those of the process, or memory where the program runs inside of
//! another one.

use std::cell::RefCell;
use std::io::{self, Cursor, Read, Write};
use std::path::Path;
use std::sync::Arc;

use maxmargin::Error;
use maxmargin::data::input::Input;

use crate::failure::Result;

/// Streams in memory, each of one thread.
#[derive(Debug, Default)]
struct Memory {
    name: String,
    input: Shared,
    output: Vec<u8>,
    notes: Vec<String>,
}

/// Bytes that may be read several times.
#[derive(Debug, Default, Clone)]
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

thread_local! {
    static MEMORY: RefCell<Option<Memory>> = const { RefCell::new(None) };
}

/// What a command has written.
#[derive(Debug, Default)]
pub struct Written {
    /// To standard output.
    pub output: Vec<u8>,
    /// What it would have noted on standard error.
    pub notes: Vec<String>,
}

/// Runs `work` with streams in memory. `name`: what errors call the input. What `work` calls back may come here again: each call
/// has streams of its own, and leaves those of the call around it as they were.
pub(crate) fn in_memory<R>(name: &str, input: Vec<u8>, work: impl FnOnce() -> R) -> (R, Written) {
    /// The streams of the call around this one. They are given back also after a panic.
    struct Outer(Option<Memory>);
    impl Drop for Outer {
        fn drop(&mut self) {
            MEMORY.set(self.0.take());
        }
    }
    let memory = Memory { name: name.to_owned(), input: Shared(Arc::new(input)), ..Memory::default() };
    let _outer = Outer(MEMORY.replace(Some(memory)));
    let result = work();
    let memory = MEMORY.take().unwrap_or_default();
    (result, Written { output: memory.output, notes: memory.notes })
}

/// Standard input, and what errors call it.
pub(crate) fn input() -> (String, Box<dyn Read + Send>) {
    MEMORY.with_borrow(|memory| -> (String, Box<dyn Read + Send>) {
        match memory {
            Some(memory) => (memory.name.clone(), Box::new(Cursor::new(memory.input.clone()))),
            None => ("standard input".to_owned(), Box::new(io::stdin())),
        }
    })
}

/// Opens what a command is to read: a file, or where that is `-`, or streams are in memory, standard input.
pub(crate) fn open(path: &Path) -> Result<Input<'static>> {
    if path.as_os_str() != "-" && MEMORY.with_borrow(Option::is_none) {
        return Ok(Input::open(path)?);
    }
    let (name, reader) = input();
    Ok(Input::new(name, reader)?)
}

/// Standard output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output;

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        MEMORY.with_borrow_mut(|memory| match memory {
            Some(memory) => memory.output.write(bytes),
            None => io::stdout().write(bytes),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        MEMORY.with_borrow_mut(|memory| if memory.is_some() { Ok(()) } else { io::stdout().flush() })
    }
}

/// Writes to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    Output.write_all(text.as_bytes()).and_then(|()| Output.flush()).map_err(|e| Error::io("standard output", e).into())
}

/// Writes one JSON object and a line end to standard output.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string(value).expect("plain structs become JSON");
    print(&(text + "\n"))
}

/// Says something on standard error that does not stop the work.
pub(crate) fn note(text: &str) {
    MEMORY.with_borrow_mut(|memory| match memory {
        Some(memory) => memory.notes.push(text.to_owned()),
        None => drop(writeln!(io::stderr(), "note: {text}")),
    });
}
