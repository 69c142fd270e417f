//! `cargo +nightly fuzz run substitutions`: no text makes the reader of tables of substitutions panic, and each pair of letters of
//! a table that it takes has a finite score.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maxmargin::data::alignments::Substitutions;
use maxmargin::data::input::Input;

fuzz_target!(|data: &[u8]| {
    let Ok(input) = Input::new("fuzz", data) else { return };
    let Ok(table) = Substitutions::read(input) else { return };
    for x in String::from_utf8_lossy(data).chars().take(50) {
        for z in String::from_utf8_lossy(data).chars().take(50) {
            assert!(table.score(x, z).is_none_or(f64::is_finite));
        }
    }
});
