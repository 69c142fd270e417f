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

/// Refuses to write `output` onto one of the files that are named.
pub(crate) fn refuse_overwriting(flag: &str, output: &Path, others: &[(&str, Option<&Path>)]) -> Result<()> {
    let Some(target) = place(output) else { return Ok(()) };
    for (what, other) in others {
        if other.and_then(place).is_some_and(|other| other == target) {
            let output = output.display();
            return Err(Failure::Usage(format!("{flag}: {output} is {what}; writing there would destroy it")));
        }
    }
    Ok(())
}
