//! From trees to text.

use std::io::{self, Write};

use super::Tree;
use crate::data::dictionary::Dictionary;

/// Writes a tree on one line, without its end.
pub fn write(tree: &Tree, labels: &Dictionary, words: &Dictionary, out: &mut impl Write) -> io::Result<()> {
    // The ends of the brackets that are open.
    let mut open: Vec<u32> = Vec::new();
    for (at, node) in tree.nodes().iter().enumerate() {
        while open.pop_if(|end| *end as usize == at).is_some() {
            out.write_all(b")")?;
        }
        if at > 0 {
            out.write_all(b" ")?;
        }
        out.write_all(b"(")?;
        out.write_all(labels.name(node.label))?;
        if tree.is_tag(at) {
            out.write_all(b" ")?;
            out.write_all(words.name(tree.words()[node.from as usize]))?;
        }
        open.push(node.end);
    }
    open.iter().try_for_each(|_| out.write_all(b")"))
}
