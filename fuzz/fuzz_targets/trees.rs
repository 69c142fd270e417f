//! `cargo +nightly fuzz run trees`: no input makes the readers of trees panic, what they say does not depend on how the text
//! was cut, and what is read comes back from its text and from the derivations of its grammar.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maxmargin::data::input::Input;
use maxmargin::data::trees::{
    Binarise, Reading, Shape, Stream, Strip, Terminals, Treebank, grammar, read_in_pieces, write,
};

fn whole(data: &[u8], strip: Strip, block: usize) -> Result<Treebank, String> {
    let input = Input::new("fuzz", data).map_err(|e| e.to_string())?;
    read_in_pieces(input, strip, block).map_err(|e| e.to_string())
}

fn text(bank: &Treebank) -> Vec<u8> {
    let mut text = Vec::new();
    for tree in &bank.trees {
        write(tree, &bank.labels, &bank.words, &mut text).expect("memory");
        text.push(b'\n');
    }
    text
}

fn streamed(data: &[u8], strip: Strip, has_words: bool) -> Result<Vec<u8>, String> {
    let mut stream = Stream::in_pieces(Input::new("fuzz", data).map_err(|e| e.to_string())?, strip, has_words, 64);
    let mut text = Vec::new();
    while let Some(batch) = stream.next_batch(3).map_err(|e| e.to_string())? {
        for tree in batch {
            write(&tree, &stream.labels, &stream.words, &mut text).expect("memory");
            text.push(b'\n');
        }
    }
    Ok(text)
}

fn check_grammars(bank: &mut Treebank) {
    for binarise in [Binarise::Right, Binarise::Head] {
        for markov in [None, Some(0), Some(2)] {
            for (parent_annotation, terminals) in [(false, Terminals::Words { rare_below: 2 }), (true, Terminals::Tags)]
            {
                let shape = Shape { parent_annotation, binarise, markov, min_count: 0, terminals };
                // Hundreds of phrases in a row, one over the other, are refused.
                let Ok(found) = grammar(bank, shape) else { continue };
                let reading = Reading::new(&found.grammar, found.lexicon.as_ref());
                for (tree, derivation) in bank.trees.iter().zip(found.derivations.iter().flatten()) {
                    let nodes = found.grammar.nodes(derivation).expect("a derivation");
                    let again = reading.tree(&nodes, tree, &mut bank.labels).expect("a tree");
                    assert_eq!(reading.brackets(&bank.labels, &again), reading.brackets(&bank.labels, tree));
                    assert_eq!(again.words(), tree.words());
                    assert!(again.tags().eq(tree.tags()));
                }
                let _ = grammar(bank, Shape { min_count: 2, ..shape });
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let is_text = !data.starts_with(&[0x1f, 0x8b]) && !data.starts_with(&[0x28, 0xb5]) && data.get(1) != Some(&0x2a);
    for strip in [Strip::default(), Strip::ALL] {
        let (large, small) = (whole(data, strip, 4096), whole(data, strip, 16));
        // Damaged packed data may fail before or after a bad line, as the pieces fall.
        assert!(large == small || !is_text && large.is_err() && small.is_err(), "{large:?}\n{small:?}");
        let streams = [false, true].map(|has_words| streamed(data, strip, has_words));
        let Ok(mut bank) = large else { continue };
        let text = text(&bank);
        assert!(streams.iter().all(|stream| stream.as_ref() == Ok(&text)));
        let again = whole(&text, Strip::default(), 16).expect("what is written can be read");
        assert_eq!(self::text(&again), text);
        check_grammars(&mut bank);
    }
});
