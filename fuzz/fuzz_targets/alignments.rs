//! `cargo +nightly fuzz run alignments`: no input makes the reader of sequences panic, what it says does not depend on how the text
//! was cut, and what it reads comes back from its text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maxmargin::data::alignments::{Alphabets, Records, Stream, read_in_pieces, write};
use maxmargin::data::input::Input;
use maxmargin::data::svmlight::LabelRule;
use maxmargin::parallel::Pool;

fn whole(data: &[u8], block: usize) -> Result<Records, String> {
    let pool = Pool::new(1).expect("one thread");
    let input = Input::new("fuzz", data).map_err(|e| e.to_string())?;
    read_in_pieces(input, LabelRule::Optional, &pool, (block, block)).map_err(|e| e.to_string())
}

fn streamed(data: &[u8]) -> Result<Records, String> {
    let input = Input::new("fuzz", data).map_err(|e| e.to_string())?;
    let mut stream = Stream::in_pieces(input, LabelRule::Optional, 64);
    let mut all = Records::default();
    while let Some(batch) = stream.next_batch(3).map_err(|e| e.to_string())? {
        all.records.extend(batch.records);
    }
    Ok(all)
}

fuzz_target!(|data: &[u8]| {
    let is_text = !data.starts_with(&[0x1f, 0x8b]) && !data.starts_with(&[0x28, 0xb5]) && data.get(1) != Some(&0x2a);
    let (large, small) = (whole(data, 4096), whole(data, 16));
    // Damaged packed data may fail before or after a bad line, as the pieces fall.
    assert!(large == small || !is_text && large.is_err() && small.is_err(), "{large:?}\n{small:?}");
    let Ok(records) = large else { return };
    assert_eq!(streamed(data).expect("it was read before").records, records.records);
    if let Ok(alphabets) = Alphabets::learn(&records.records, None) {
        for record in &records.records {
            let (query, strangers) = alphabets.query(record);
            assert_eq!((query.candidates.len(), strangers.unknown), (record.candidates.len(), 0));
        }
    }
    let mut text = Vec::new();
    records.records.iter().for_each(|record| write(&mut text, record).expect("memory"));
    assert_eq!(whole(&text, 16).expect("what is written can be read").records, records.records);
});
