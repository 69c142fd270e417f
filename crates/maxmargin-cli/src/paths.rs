//! Files that would overwrite each other.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

/// Where a regular file is or would be; None for devices, pipes and standard input, which nothing overwrites.
fn place(path: &Path) -> Option<PathBuf> {
    if path.as_os_str() == "-" || path.metadata().is_ok_and(|m| !m.is_file()) {
        return None;
    }
    path.canonicalize().ok().or_else(|| {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(folder.canonicalize().ok()?.join(path.file_name()?))
    })
}

/// The same file under two names: a hard link, or standard input taken from it.
#[cfg(unix)]
fn is_same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &Path| {
        let path = if path.as_os_str() == "-" { Path::new("/dev/stdin") } else { path };
        path.metadata().ok().filter(std::fs::Metadata::is_file).map(|m| (m.dev(), m.ino()))
    };
    identity(a).is_some_and(|a| identity(b) == Some(a))
}

#[cfg(not(unix))]
fn is_same_file(_: &Path, _: &Path) -> bool {
    false
}

/// Refuses to write `output` onto one of the files that are named.
pub(crate) fn refuse_overwriting(flag: &str, output: &Path, others: &[(&str, Option<&Path>)]) -> Result<()> {
    let Some(target) = place(output) else { return Ok(()) };
    for (what, other) in others {
        let is_target = |other: &Path| place(other).is_some_and(|other| other == target) || is_same_file(other, output);
        if other.is_some_and(is_target) {
            let output = output.display();
            return Err(Failure::Usage(format!("{flag}: {output} is {what}; writing there would destroy it")));
        }
    }
    Ok(())
}
