//! Where bytes go: files that are there whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// Bytes handed to the operating system at a time.
const BUFFER: usize = 128 << 10;

/// A file in the making. The bytes go to a temporary file in the same folder, which takes the name of the target in
/// [`finish`](Self::finish); dropped before that, it vanishes and whatever stood at the target stays as it was.
/// Devices, pipes and the like (`/dev/stdout`) are written directly.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    writer: BufWriter<Sink>,
}

#[derive(Debug)]
enum Sink {
    Beside { file: NamedTempFile, target: PathBuf },
    Direct(File),
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Beside { file, .. } => file.as_file_mut().write(bytes),
            Self::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Beside { file, .. } => file.as_file_mut().flush(),
            Self::Direct(file) => file.flush(),
        }
    }
}

impl Output {
    /// Begins the file that will stand at `path`, replacing what stands there.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let sink = open(path).map_err(|source| Error::io(path, source))?;
        Ok(Self { path: path.to_owned(), writer: BufWriter::with_capacity(BUFFER, sink) })
    }

    /// Puts the file in its place, once the disk has it.
    pub fn finish(self) -> Result<()> {
        let Self { path, writer } = self;
        let finish = || match writer.into_inner().map_err(io::IntoInnerError::into_error)? {
            Sink::Beside { file, target } => {
                file.as_file().sync_all()?;
                file.persist(target).map(drop).map_err(|e| e.error)
            }
            Sink::Direct(_) => Ok(()),
        };
        finish().map_err(|source| Error::io(path, source))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Writes the file at `path` by `write`, wholly or not at all: see [`Output`].
pub fn replace_file(path: impl AsRef<Path>, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let path = path.as_ref();
    let mut output = Output::create(path)?;
    write(&mut output).map_err(|source| Error::io(path, source))?;
    output.finish()
}

/// Removes what writers of the file at `path` that were killed in the middle have left beside it.
pub fn remove_leftovers(path: impl AsRef<Path>) {
    let path = path.as_ref();
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let prefix = prefix(&target);
    if prefix == NAMELESS {
        // Perhaps another's, who is at work.
        return;
    }
    for entry in fs::read_dir(folder_of(&target)).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(prefix.as_encoded_bytes()) {
            // Who cannot be removed lies there as before.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// How the names of temporary files begin whose target has too long a name to be part of theirs.
const NAMELESS: &str = ".maxmargin-";

/// How the names of temporary files for the target begin.
fn prefix(target: &Path) -> OsString {
    /// Names may have 255 bytes.
    const LONG: usize = 200;
    let Some(name) = target.file_name().filter(|name| name.len() <= LONG) else { return NAMELESS.into() };
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(NAMELESS);
    prefix
}

fn open(path: &Path) -> io::Result<Sink> {
    let old = match fs::metadata(path) {
        Ok(old) => Some(old),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(e),
    };
    let target = match &old {
        Some(old) if old.is_dir() => {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a folder; a file name is needed"));
        }
        // `/dev/stdout` may be a regular file: the shell's, who may have something in it already. Hence append.
        Some(old) if !old.is_file() || path.starts_with("/dev") || path.starts_with("/proc") => {
            return OpenOptions::new().append(true).open(path).map(Sink::Direct);
        }
        // Replaces what a link points to, not the link; and respects write protection, which renaming does not.
        Some(_) => {
            OpenOptions::new().write(true).open(path)?;
            fs::canonicalize(path)?
        }
        None => path.to_owned(),
    };
    let folder = folder_of(&target);
    let (mut builder, prefix) = (tempfile::Builder::new(), prefix(&target));
    builder.prefix(&prefix);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The umask takes from it what it takes from every new file.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    // What tempfile says names the temporary file, of which the user knows nothing.
    let file = builder.tempfile_in(folder).map_err(|e| {
        io::Error::new(e.kind(), format!("cannot make a file in the folder {} ({})", folder.display(), e.kind()))
    })?;
    if let Some(old) = old {
        file.as_file().set_permissions(old.permissions())?;
    }
    Ok(Sink::Beside { file, target })
}
