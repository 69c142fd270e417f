//! Text in blocks that end at line ends: the part that readers of lines share.

use std::io::{self, Read};

use crate::data::input::Input;
use crate::error::Error;
use crate::parallel::Pool;

/// Sizes of the pieces in which text is read and parsed. What is read does not depend on them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    /// Bytes read at a time.
    pub(crate) block: usize,
    /// Bytes parsed by one thread at a time.
    pub(crate) chunk: usize,
}

impl Default for Cut {
    // Chunks fit into a core's cache, and a block has some for each of many threads, but is small beside the matrix
    // that so much text becomes. The same for any number of threads, so that of two things wrong with a file (a bad
    // line, packed data damaged after it) the same is reported.
    fn default() -> Self {
        Self { block: 1 << 20, chunk: 64 << 10 }
    }
}

/// Cuts an input into blocks of whole lines. Only a line longer than a block makes a longer block.
pub(crate) struct Blocks<'a> {
    input: Input<'a>,
    block: usize,
    /// The start of a line whose end is still to be read.
    begun: Vec<u8>,
    checksum: crc32fast::Hasher,
    is_first: bool,
    at_end: bool,
}

impl<'a> Blocks<'a> {
    pub(crate) fn new(input: Input<'a>, cut: Cut) -> Self {
        let checksum = crc32fast::Hasher::new();
        Self { input, block: cut.block.max(1), begun: Vec::new(), checksum, is_first: true, at_end: false }
    }

    /// What errors call the input.
    pub(crate) fn name(&self) -> &str {
        self.input.name()
    }

    /// An error in a line of the input.
    pub(crate) fn error(&self, line: u64, what: impl Into<String>) -> Error {
        Error::Parse { name: self.name().to_owned(), line, what: what.into() }
    }

    /// CRC-32 of all bytes so far.
    pub(crate) fn checksum(&self) -> u32 {
        self.checksum.clone().finalize()
    }

    /// Fills `text` with the next lines; false when there are none left.
    pub(crate) fn next(&mut self, text: &mut Vec<u8>) -> Result<bool, Error> {
        self.fill(text, |input, block, text| {
            // Room to spare: with none, `read_to_end` would look for the end with a small read of its own.
            text.reserve(block + 64);
            input.reader().take(block as u64).read_to_end(text)
        })
    }

    /// As [`next`](Self::next), but content with what one read gives, so that lines typed or piped in are
    /// answered at once.
    pub(crate) fn next_available(&mut self, text: &mut Vec<u8>) -> Result<bool, Error> {
        self.fill(text, |input, block, text| {
            let old = text.len();
            text.resize(old + block, 0);
            loop {
                match input.reader().read(&mut text[old..]) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    result => {
                        text.truncate(old + result.as_ref().map_or(0, |n| *n));
                        return result;
                    }
                }
            }
        })
    }

    /// Parses the rest with all threads of `pool`, in pieces of whole lines, which are gathered in order. `gather` may say that
    /// a line is bad, and what is wrong with it.
    pub(crate) fn each_piece<P: Send>(
        &mut self,
        cut: Cut,
        pool: &Pool,
        parse: impl Fn(&[u8]) -> P + Sync + Send,
        mut gather: impl FnMut(P) -> Result<(), (u64, String)>,
    ) -> Result<(), Error> {
        let (mut text, mut ahead) = (Vec::new(), Vec::new());
        let mut more = self.next(&mut text)?;
        while more {
            // The first job reads, and unpacks, the next block while the others parse this one.
            let mut jobs = vec![Job::Read(&mut *self, &mut ahead)];
            jobs.extend(chunks(&text, cut.chunk).into_iter().map(Job::Parse));
            let done = pool.map(jobs, |job| match job {
                Job::Read(blocks, ahead) => Done::Read(blocks.next(ahead)),
                Job::Parse(text) => Done::Parsed(Box::new(parse(text))),
            });
            let mut read = Ok(false);
            for result in done {
                match result {
                    Done::Read(more) => read = more,
                    Done::Parsed(piece) => gather(*piece).map_err(|(line, what)| self.error(line, what))?,
                }
            }
            // Only now: a bad line before the place where reading failed comes first.
            more = read?;
            std::mem::swap(&mut text, &mut ahead);
        }
        Ok(())
    }

    fn fill(
        &mut self,
        text: &mut Vec<u8>,
        mut read: impl FnMut(&mut Input<'a>, usize, &mut Vec<u8>) -> io::Result<usize>,
    ) -> Result<bool, Error> {
        text.clear();
        text.append(&mut self.begun);
        while !self.at_end {
            let old = text.len();
            self.at_end = read(&mut self.input, self.block, text).map_err(|e| self.input.failed(e))? == 0;
            let new = &text[old..];
            self.checksum.update(new);
            if let Some(last) = memchr::memrchr(b'\n', new) {
                self.begun.extend_from_slice(&new[last + 1..]);
                text.truncate(old + last + 1);
                break;
            }
        }
        // The first block holds the first line whole, and so the mark that some editors put before it.
        if std::mem::take(&mut self.is_first) && text.starts_with(b"\xef\xbb\xbf") {
            text.drain(..3);
        }
        Ok(!text.is_empty())
    }
}

/// What a thread does next.
enum Job<'j, 'a> {
    Read(&'j mut Blocks<'a>, &'j mut Vec<u8>),
    Parse(&'j [u8]),
}

/// What came of it.
enum Done<P> {
    Read(Result<bool, Error>),
    Parsed(Box<P>),
}

/// `text` in pieces of about `size` bytes, cut after line ends.
pub(crate) fn chunks(mut text: &[u8], size: usize) -> Vec<&[u8]> {
    let mut pieces = Vec::with_capacity(text.len() / size.max(1) + 1);
    while !text.is_empty() {
        let size = size.clamp(1, text.len());
        let end = memchr::memchr(b'\n', &text[size - 1..]).map_or(text.len(), |n| size + n);
        let (piece, rest) = text.split_at(end);
        pieces.push(piece);
        text = rest;
    }
    pieces
}

/// The start of a user's text, fit for a message: short, and without control characters.
pub(crate) fn shown(text: &[u8]) -> String {
    const LONGEST: usize = 40;
    let start = String::from_utf8_lossy(&text[..text.len().min(4 * LONGEST)]);
    let mut short: String = start.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if start.chars().count() > LONGEST || text.len() > 4 * LONGEST {
        short.push('…');
    }
    format!("'{short}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_at_line_ends_and_miss_nothing() {
        let text = b"a\n\nbcd\r\nlong line here\n\n\nlast";
        for size in 0..40 {
            let pieces = chunks(text, size);
            assert_eq!(pieces.concat(), text);
            assert!(pieces[..pieces.len() - 1].iter().all(|p| p.ends_with(b"\n")));
        }
    }

    #[test]
    fn blocks_are_whole_lines() {
        let text = b"\xef\xbb\xbfa\n\nbcd\r\nlong line here\n\n\nlast";
        for block in 0..40 {
            for available in [false, true] {
                let cut = Cut { block, chunk: 1 };
                let mut blocks = Blocks::new(Input::new("x", text.as_slice()).unwrap(), cut);
                let (mut all, mut part) = (Vec::new(), Vec::new());
                while if available { blocks.next_available(&mut part) } else { blocks.next(&mut part) }.unwrap() {
                    assert!(part.ends_with(b"\n") || part.ends_with(b"last"));
                    all.extend_from_slice(&part);
                }
                assert_eq!(all, &text[3..]);
                assert_eq!(blocks.checksum(), crc32fast::hash(text));
            }
        }
    }

    #[test]
    fn messages_stay_short_and_printable() {
        assert_eq!(shown(b"abc"), "'abc'");
        assert_eq!(shown(b"a\0\x1b\xff"), "'a\\0\\u{1b}\u{fffd}'");
        assert_eq!(shown(&b"x".repeat(1 << 20)), format!("'{}…'", "x".repeat(40)));
        assert!(shown(&b"\0".repeat(1 << 20)).len() < 200);
        assert_eq!(shown("é".repeat(41).as_bytes()).chars().count(), 43);
    }
}
