//! `cargo +nightly fuzz run taxonomy`: no text makes the readers of taxonomies and of class features panic, and what is read
//! is read alike from the edges that it has.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maxmargin::data::input::Input;
use maxmargin::data::taxonomy::{read, read_class_features};
use maxmargin::tasks::taxonomy::Hierarchy;

fuzz_target!(|data: &[u8]| {
    let Ok(input) = Input::new("fuzz", data) else { return };
    if let Ok(hierarchy) = read(input) {
        let edges: Vec<(u32, u32)> = hierarchy.edges().collect();
        assert_eq!(Hierarchy::new(hierarchy.names(), &edges), Ok(hierarchy.clone()));
        let last = hierarchy.len() as u32 - 1;
        assert!(hierarchy.common_height(0, last) == hierarchy.height(0) && hierarchy.distance(last, last) == 0);
    }
    let names = ["a", "b", "r"].map(str::to_owned);
    let small = Hierarchy::new(&names, &[(0, 2), (1, 2)]).expect("a tree");
    if let Ok(input) = Input::new("fuzz", data) {
        drop(read_class_features(input, &small, &[1, 2]));
    }
});
