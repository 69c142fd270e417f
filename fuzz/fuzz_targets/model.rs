//! `cargo +nightly fuzz run model`: no bytes make loading panic, and what loads can be saved, loaded again and used.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maxmargin::model::Model;
use maxmargin::sparse::SparseView;

fuzz_target!(|data: &[u8]| {
    let Ok(model) = Model::from_bytes(data) else { return };
    let bytes = model.to_bytes().expect("what loads can be saved");
    let again = Model::from_bytes(&bytes).expect("what is saved can be loaded");
    assert_eq!(again.to_bytes().expect("as before"), bytes);
    let y = model.predictor().predict(SparseView::new(&[0, 3, u32::MAX], &[1.0, -1.0, 2.0]), &mut Vec::new());
    assert!((y as usize) < model.labels.len());
});
