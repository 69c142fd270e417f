//! `cargo +nightly fuzz run svmlight`: no input makes the reader panic, and what it says does not depend on how the
//! text was cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maxmargin::data::input::Input;
use maxmargin::data::svmlight::{LabelRule, Labelled, Stream, read_in_pieces};
use maxmargin::parallel::Pool;

fn whole(data: &[u8], rule: LabelRule, block: usize) -> Result<Labelled, String> {
    let pool = Pool::new(1).expect("one thread");
    let input = Input::new("fuzz", data).map_err(|e| e.to_string())?;
    read_in_pieces(input, rule, &pool, block, block).map_err(|e| e.to_string())
}

fn streamed(data: &[u8], rule: LabelRule) -> Result<usize, String> {
    let mut stream = Stream::in_pieces(Input::new("fuzz", data).map_err(|e| e.to_string())?, rule, 64);
    let mut count = 0;
    while let Some(batch) = stream.next_batch(3).map_err(|e| e.to_string())? {
        count += batch.len();
    }
    Ok(count)
}

fuzz_target!(|data: &[u8]| {
    let is_text = !data.starts_with(&[0x1f, 0x8b]) && !data.starts_with(&[0x28, 0xb5]) && data.get(1) != Some(&0x2a);
    for rule in [LabelRule::Required, LabelRule::Optional, LabelRule::Set] {
        let (large, small) = (whole(data, rule, 4096), whole(data, rule, 16));
        // Damaged packed data may fail before or after a bad line, as the pieces fall.
        assert!(large == small || !is_text && large.is_err() && small.is_err(), "{large:?}\n{small:?}");
        if rule != LabelRule::Required {
            assert_eq!(large.map(|examples| examples.len()).ok(), streamed(data, rule).ok());
        }
    }
});
