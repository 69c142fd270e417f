//! `cargo +nightly fuzz run tagging`: no input makes the readers of tagged sentences panic, and what they say does not
//! depend on how the text was cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maxmargin::data::input::Input;
use maxmargin::data::tagging::{Features, Format, Sequences, Stream, Template, Vocabulary, read_in_pieces, read_with};
use maxmargin::parallel::Pool;

fn whole(data: &[u8], format: &Format, block: usize) -> Result<(Sequences, Vocabulary), String> {
    let pool = Pool::new(1).expect("one thread");
    let input = Input::new("fuzz", data).map_err(|e| e.to_string())?;
    read_in_pieces(input, format, 1, &pool, (block, block)).map_err(|e| e.to_string())
}

fn streamed(data: &[u8], format: &Format, vocabulary: &Vocabulary) -> Vec<u32> {
    let mut stream = Stream::in_pieces(Input::new("fuzz", data).expect("as before"), format, vocabulary, (64, 16));
    let pool = Pool::new(1).expect("one thread");
    let mut tags = Vec::new();
    while let Some(batch) = stream.next_batch(&pool).expect("as before") {
        assert!(batch.lines().count() >= batch.sequences.tags.len() || !matches!(format, Format::Columns(_)));
        tags.extend(batch.sequences.tags);
    }
    tags
}

fuzz_target!(|data: &[u8]| {
    let is_text = !data.starts_with(&[0x1f, 0x8b]) && !data.starts_with(&[0x28, 0xb5]) && data.get(1) != Some(&0x2a);
    let _ = Template::parse("fuzz", data);
    let template = Template::parse("template", b"U%x[0,0]\nU%x[-1,0]/%x[2,0]\nB%x[0,0]").expect("it is valid");
    let columns = [Features::BuiltIn, Features::Template(template)].map(Format::Columns);
    for format in columns.iter().chain(&[Format::SvmHmm, Format::CrfSuite]) {
        let (large, small) = (whole(data, format, 4096), whole(data, format, 16));
        // Damaged packed data may fail before or after a bad line, as the pieces fall.
        assert!(large == small || !is_text && large.is_err() && small.is_err(), "{large:?}\n{small:?}");
        let Ok((sequences, vocabulary)) = large else { continue };
        let input = Input::new("fuzz", data).expect("as before");
        let again = read_with(input, format, &vocabulary, &Pool::new(1).expect("one thread")).expect("as before");
        assert_eq!(again, sequences);
        assert_eq!(streamed(data, format, &vocabulary), sequences.tags);
    }
});
