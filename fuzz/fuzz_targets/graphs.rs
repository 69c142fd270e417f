//! `cargo +nightly fuzz run graphs`: no input makes the reader of graphs panic, what it says does not depend on how the text was
//! cut, what it reads fits the shape that it learned, and comes back from its text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maxmargin::data::graphs::{Graphs, Stream, read_in_pieces, read_with_in_pieces, write};
use maxmargin::data::input::Input;
use maxmargin::data::svmlight::LabelRule;
use maxmargin::parallel::Pool;
use maxmargin::tasks::factor_graph::Shape;

fn whole(data: &[u8], block: usize) -> Result<(Graphs, Shape), String> {
    let pool = Pool::new(1).expect("one thread");
    let input = Input::new("fuzz", data).map_err(|e| e.to_string())?;
    read_in_pieces(input, &pool, (block, block)).map_err(|e| e.to_string())
}

fn streamed(data: &[u8], shape: &Shape) -> Result<Graphs, String> {
    let input = Input::new("fuzz", data).map_err(|e| e.to_string())?;
    let mut stream = Stream::in_pieces(input, shape, LabelRule::Optional, 64);
    let mut all = Graphs::default();
    while let Some(batch) = stream.next_batch(3).map_err(|e| e.to_string())? {
        all.graphs.extend(batch.graphs);
        all.labels.extend(batch.labels);
    }
    Ok(all)
}

fuzz_target!(|data: &[u8]| {
    let is_text = !data.starts_with(&[0x1f, 0x8b]) && !data.starts_with(&[0x28, 0xb5]) && data.get(1) != Some(&0x2a);
    let (large, small) = (whole(data, 4096), whole(data, 16));
    // Damaged packed data may fail before or after a bad line, as the pieces fall.
    assert!(large == small || !is_text && large.is_err() && small.is_err(), "{large:?}\n{small:?}");
    let _ = streamed(data, &Shape::default());
    let Ok((graphs, shape)) = large else { return };
    assert!(graphs.graphs.iter().all(|graph| shape.check(graph).is_ok()));
    let pool = Pool::new(1).expect("one thread");
    let input = Input::new("fuzz", data).expect("it was read before");
    assert_eq!(read_with_in_pieces(input, &shape, LabelRule::Required, &pool, (16, 16)).as_ref().ok(), Some(&graphs));
    let stream = streamed(data, &shape).expect("it was read before");
    assert_eq!((&stream.graphs, &stream.labels), (&graphs.graphs, &graphs.labels));
    let mut text = Vec::new();
    for (graph, labels) in graphs.graphs.iter().zip(&graphs.labels) {
        write(&mut text, &shape, graph, Some(labels)).expect("memory");
    }
    let (again, same) = whole(&text, 16).expect("what is written can be read");
    assert_eq!((again.graphs, again.labels, same), (graphs.graphs, graphs.labels, shape));
});
