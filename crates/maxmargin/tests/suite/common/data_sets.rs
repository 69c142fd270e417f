//! Data sets that are used in place.

use std::path::{Path, PathBuf};

use maxmargin::data::input::Input;

/// A file of the data sets; None, with a word, where they are not there.
pub(crate) fn data_set(name: &str) -> Option<Input<'static>> {
    let folder = std::env::var_os("MAXMARGIN_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let path = folder.join(name);
    if !path.exists() {
        println!("skipped: {} is not there (MAXMARGIN_DATA names the folder of data sets)", path.display());
        return None;
    }
    Some(Input::open(path).unwrap())
}
