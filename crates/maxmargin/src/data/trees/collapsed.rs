//! The nodes of a tree that count.

use std::collections::HashMap;

use super::Tree;
use crate::data::dictionary::Dictionary;

/// A tree in which no phrase stands over itself with nothing else between or beside: of such a row the inner one alone counts.
#[derive(Debug, Default)]
pub(super) struct Collapsed {
    /// In the order of their opening brackets.
    pub(super) nodes: Vec<Kept>,
}

/// A node that counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    /// Its place in the tree.
    pub(super) node: usize,
    /// Its label.
    pub(super) label: u32,
    /// The label above it in the tree, where phrases are told apart by it; [`Dictionary::NONE`] at the root and for tags.
    pub(super) above: u32,
    /// The place, among the nodes that count, after its last descendant.
    end: usize,
}

impl Collapsed {
    pub(super) fn of(tree: &Tree, parent_annotation: bool) -> Self {
        let nodes = tree.nodes();
        let mut kept: Vec<Kept> = Vec::with_capacity(nodes.len());
        // Nodes with several children that are not at their end.
        let mut open: Vec<usize> = Vec::new();
        let mut last = HashMap::new();
        let mut row: Vec<Kept> = Vec::new();
        let mut at = 0;
        while at < nodes.len() {
            while open.pop_if(|node| nodes[*node].end as usize <= at).is_some() {}
            let mut above = open.last().map_or(Dictionary::NONE, |&node| nodes[node].label);
            // Only children follow right upon their parents.
            row.clear();
            loop {
                let (label, is_tag) = (nodes[at].label, tree.is_tag(at));
                let told_by = if parent_annotation && !is_tag { above } else { Dictionary::NONE };
                row.push(Kept { node: at, label, above: told_by, end: 0 });
                above = label;
                at += 1;
                if is_tag {
                    break;
                }
                if nodes[at].end != nodes[at - 1].end {
                    open.push(at - 1);
                    break;
                }
            }
            let phrases = row.len() - usize::from(tree.is_tag(at - 1));
            if phrases < 2 {
                kept.append(&mut row);
                continue;
            }
            last.clear();
            last.extend(row[..phrases].iter().enumerate().map(|(i, phrase)| ((phrase.label, phrase.above), i)));
            let mut i = 0;
            while i < phrases {
                i = last[&(row[i].label, row[i].above)];
                kept.push(row[i]);
                i += 1;
            }
            kept.extend_from_slice(&row[phrases..]);
        }
        for at in 0..kept.len() {
            let end = nodes[kept[at].node].end as usize;
            kept[at].end = at + kept[at..].partition_point(|below| below.node < end);
        }
        Self { nodes: kept }
    }

    /// The nodes right below one, from left to right.
    pub(super) fn children(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let end = self.nodes[node].end;
        let next = move |at: usize| (at < end).then_some(at);
        std::iter::successors(next(node + 1), move |&child| next(self.nodes[child].end))
    }

    /// Is this node the tag of a word?
    pub(super) fn is_tag(&self, node: usize) -> bool {
        self.nodes[node].end == node + 1
    }
}
