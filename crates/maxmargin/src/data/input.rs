//! Where bytes come from: files, standard input, memory; plain or packed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::error::{Error, Result};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// What we cannot read but can name, so that the user knows what to do.
const FOREIGN: [(&[u8], &str); 6] = [
    (b"BZh", "bzip2 data: unpack it first, or pack it with gzip or zstd"),
    (b"\xfd7zXZ\0", "xz data: unpack it first, or pack it with gzip or zstd"),
    (b"PK\x03\x04", "a zip archive: unpack it first, or pack the file with gzip or zstd"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it first, or pack the file with gzip or zstd"),
    (b"\xff\xfe", "UTF-16 text: save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text: save it as UTF-8"),
];

/// Bytes asked of the operating system at a time.
const BUFFER: usize = 128 << 10;

/// A named stream of bytes. Gzip (one or many members) and zstd (one or many frames) are unpacked on the way;
/// they are known by their first bytes, whatever the name says.
pub struct Input<'a> {
    name: String,
    reader: Box<dyn Read + Send + 'a>,
}

impl std::fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'a> Input<'a> {
    /// The bytes of `reader`, which errors will call `name`.
    pub fn new(name: impl Into<String>, reader: impl Read + Send + 'a) -> Result<Self> {
        let name = name.into();
        match unpacked(&name, Box::new(reader)) {
            Ok(reader) => Ok(Self { name, reader }),
            Err(source) => Err(Error::io(name, source)),
        }
    }

    /// Opens a file; `-` is standard input.
    pub fn open(path: impl AsRef<Path>) -> Result<Input<'static>> {
        let path = path.as_ref();
        if path.as_os_str() == "-" {
            return Input::new("standard input", io::stdin());
        }
        let file = File::open(path).map_err(|source| Error::io(path, source))?;
        Input::new(path.display().to_string(), file)
    }

    /// What errors call this input.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The bytes themselves. (`Read for Input` hides how files fill memory that was not cleared before.)
    pub(crate) fn reader(&mut self) -> &mut (dyn Read + Send + 'a) {
        &mut self.reader
    }

    /// A failed read of this input.
    pub(crate) fn failed(&self, source: io::Error) -> Error {
        Error::io(&self.name, source)
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

/// Looks at the first bytes and puts the right decoder behind them.
fn unpacked<'a>(name: &str, mut reader: Box<dyn Read + Send + 'a>) -> io::Result<Box<dyn Read + Send + 'a>> {
    let mut head = Vec::with_capacity(16);
    // No packed file has a line end in its first bytes: a short line that somebody typed is not kept waiting for more.
    while head.len() < 6 && !head.ends_with(b"\n") && reader.by_ref().take(1).read_to_end(&mut head)? > 0 {}
    let is = |magic: &[u8]| head.starts_with(magic);
    // A packed file cut within its first bytes must not pass for a short text.
    let is_stub =
        |magic: &[u8], ending: &str| name.ends_with(ending) && head.len() < magic.len() && magic.starts_with(&head);
    if is_stub(GZIP, ".gz") {
        return Err(damaged("gzip", "it ends within the first bytes"));
    }
    if is_stub(ZSTD, ".zst") {
        return Err(damaged("zstd", "it ends within the first bytes"));
    }
    // A label may start with BZh: only a block or the end of a stream can follow bzip2's first four bytes.
    let foreign =
        FOREIGN.iter().find(|(magic, _)| is(magic) && (*magic != b"BZh" || matches!(head.get(4), Some(b'1' | 0x17))));
    if let Some((_, what)) = foreign {
        return Err(io::Error::new(io::ErrorKind::InvalidData, *what));
    }
    let (gzip, zstd) = (is(GZIP), is(ZSTD) || is_skippable(&head));
    let reader = io::Cursor::new(head).chain(reader);
    Ok(if gzip {
        Box::new(Gzip { decoder: MultiGzDecoder::new(BufReader::with_capacity(BUFFER, reader)) })
    } else if zstd {
        Box::new(Zstd {
            decoder: FrameDecoder::new(),
            source: BufReader::with_capacity(BUFFER, reader),
            in_frame: false,
        })
    } else {
        Box::new(reader)
    })
}

/// Does a zstd frame without content start here? (0x184D2A50 to 0x184D2A5F; pzstd writes them first.)
fn is_skippable(head: &[u8]) -> bool {
    matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

fn damaged(format: &str, cause: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("truncated or damaged {format} data ({cause})"))
}

struct Gzip<R> {
    decoder: MultiGzDecoder<R>,
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.decoder.read(buffer).map_err(|e| match e.kind() {
            // The disk's own errors and interruptions pass unchanged.
            _ if e.raw_os_error().is_some() => e,
            io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => e,
            io::ErrorKind::UnexpectedEof => damaged("gzip", "it ends too early"),
            _ => damaged("gzip", e),
        })
    }
}

/// Zstd frames, one after the other.
struct Zstd<R> {
    decoder: FrameDecoder,
    source: R,
    in_frame: bool,
}

impl<R: BufRead> Zstd<R> {
    /// Starts the next frame with content; false at the end of the data.
    fn start_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    let length = u64::from(length);
                    if io::copy(&mut self.source.by_ref().take(length), &mut io::sink())? < length {
                        return Err(damaged("zstd", "it ends too early"));
                    }
                }
                Err(e) => return Err(damaged("zstd", e)),
            }
        }
        Ok(false)
    }

    /// The decoder notes the frame's checksum but leaves the comparison to us.
    fn end_frame(&self) -> io::Result<()> {
        match self.decoder.get_checksum_from_data() {
            Some(sum) if self.decoder.get_calculated_checksum() != Some(sum) => {
                Err(damaged("zstd", "its checksum does not match"))
            }
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_frame {
                self.in_frame = self.start_frame()?;
                if !self.in_frame {
                    return Ok(0);
                }
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(|e| damaged("zstd", e))?;
            }
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(buffer);
            }
            self.end_frame()?;
            self.in_frame = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const TEXT: &[u8] = b"+1 1:0.5 7:2\n-1 2:1.25\n+1 1:1 2:1 3:1 4:1\n";

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        out.write_all(text).unwrap();
        out.finish().unwrap()
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
    }

    fn unpack(name: &str, bytes: &[u8]) -> Result<Vec<u8>> {
        let mut input = Input::new(name, bytes)?;
        let mut text = Vec::new();
        input.read_to_end(&mut text).map_err(|e| input.failed(e))?;
        Ok(text)
    }

    #[test]
    fn plain_and_packed_give_the_same_bytes_whatever_the_name() {
        let long = TEXT.repeat(20_000);
        for text in [b"".as_slice(), b"1", TEXT, &long] {
            for name in ["data", "data.gz", "data.zst"] {
                assert_eq!(unpack(name, &gzip(text)).unwrap(), text);
                assert_eq!(unpack(name, &zstd(text)).unwrap(), text);
                if !text.is_empty() {
                    assert_eq!(unpack(name, text).unwrap(), text);
                }
            }
        }
    }

    #[test]
    fn members_and_frames_are_joined() {
        let twice = TEXT.repeat(2);
        assert_eq!(unpack("a", &gzip(TEXT).repeat(2)).unwrap(), twice);
        assert_eq!(unpack("a", &zstd(TEXT).repeat(2)).unwrap(), twice);
        let skippable = b"\x53\x2a\x4d\x18\x03\0\0\0abc".as_slice();
        let mixed = [skippable, &zstd(TEXT), &zstd(b""), skippable, &zstd(TEXT), skippable].concat();
        assert_eq!(unpack("a", &mixed).unwrap(), twice);
    }

    #[test]
    fn a_packed_file_cut_anywhere_is_an_error_that_names_it() {
        for (name, packed) in [("a.gz", gzip(TEXT)), ("a.zst", zstd(TEXT))] {
            for end in 0..packed.len() {
                let message = unpack(name, &packed[..end]).expect_err("cut").to_string();
                assert!(message.starts_with(&format!("{name}: truncated or damaged ")), "{end}: {message}");
            }
        }
    }

    #[test]
    fn a_flipped_bit_never_changes_the_text_in_silence() {
        for (name, packed, header) in [("a.gz", gzip(TEXT), 10), ("a.zst", zstd(TEXT), 6)] {
            for at in header..packed.len() {
                let mut bytes = packed.clone();
                bytes[at] ^= 0x10;
                if let Ok(text) = unpack(name, &bytes) {
                    assert_eq!(text, TEXT, "{name}: byte {at}");
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (bytes, word) in [
            (b"BZh91AY&SY".as_slice(), "bzip2"),
            (b"\xfd7zXZ\0\0", "xz"),
            (b"PK\x03\x04...", "zip"),
            (b"\xff\xfe1\0 \0", "UTF-16"),
        ] {
            let message = unpack("a", bytes).expect_err("foreign").to_string();
            assert!(message.starts_with("a: ") && message.contains(word), "{message}");
        }
        assert!(unpack("a", b"BZhang 1:1\n").is_ok());
        assert!(Input::open("/no/such/file").expect_err("missing").to_string().starts_with("/no/such/file: "));
    }
}
