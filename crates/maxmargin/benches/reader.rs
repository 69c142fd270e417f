//! How fast SVM-light text is read. Prints one JSON line.
//!
//! `MAXMARGIN_READER_FILE` names a file (plain, .gz, .zst) to read instead of 60 MB of synthetic text.

use std::time::Instant;

use maxmargin::data::input::Input;
use maxmargin::data::svmlight::{LabelRule, read};
use maxmargin::data::synthetic::{Sizes, multiclass};
use maxmargin::parallel::{Pool, available};

const ROUNDS: usize = 5;

fn main() {
    // `cargo bench` says --bench; `cargo test --all-targets` runs this too and wants no measurement.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let path = std::env::var("MAXMARGIN_READER_FILE").ok();
    let text = path.is_none().then(synthetic);
    let open = || match (&path, &text) {
        (Some(path), _) => Input::open(path).expect("the file opens"),
        (None, text) => Input::new("synthetic", text.as_deref().expect("text")).expect("memory"),
    };
    let bytes = std::io::copy(&mut open(), &mut std::io::sink()).expect("the file is read");
    let speed = |threads: usize| {
        let pool = Pool::new(threads).expect("threads start");
        let mut best = f64::INFINITY;
        let mut nonzeros = 0;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            nonzeros = read(open(), LabelRule::Required, &pool).expect("the text is valid").matrix.nonzeros();
            best = best.min(start.elapsed().as_secs_f64());
        }
        (bytes as f64 / 1e6 / best, nonzeros)
    };
    let (one, nonzeros) = speed(1);
    let (all, _) = speed(available());
    println!(
        "{{\"bench\": \"reader\", \"input\": \"{}\", \"mb\": {:.1}, \"nonzeros\": {nonzeros}, \"mb_per_second_1_thread\": {one:.0}, \
         \"threads\": {}, \"mb_per_second_all_threads\": {all:.0}}}",
        path.as_deref().unwrap_or("synthetic").escape_default(),
        bytes as f64 / 1e6,
        available(),
    );
}

/// 80 of 50,000 features in each example.
fn synthetic() -> Vec<u8> {
    let sizes = Sizes { examples: 57_000, features: 50_000, classes: 10, nonzeros: 80, noise: 0.1 };
    let mut text = Vec::new();
    multiclass(&sizes, 1, &mut text, "memory").expect("the sizes are valid");
    text
}
