//! The head of a phrase: the child that it is a phrase of.

use super::binarise::Side::{self, Left, Right};

/// Of each label of the Penn Treebank the side from which children are looked at, and the labels of heads, the better ones
/// first (Collins 1999, appendix A; `NML`, younger
/// than the table, is like `NP`). His exceptions for coordinations are left out: a child that is no head can be taken away
/// without making another one the head.
const HEADS: [(&str, Side, &str); 24] = [
    ("ADJP", Left, "NNS QP NN $ ADVP JJ VBN VBG ADJP JJR NP JJS DT FW RBR RBS SBAR RB"),
    ("ADVP", Right, "RB RBR RBS FW ADVP TO CD JJR JJ IN NP JJS NN"),
    ("CONJP", Right, "CC RB IN"),
    ("FRAG", Right, ""),
    ("INTJ", Left, ""),
    ("LST", Right, "LS :"),
    ("NAC", Left, "NN NNS NNP NNPS NP NAC EX $ CD QP PRP VBG JJ JJS JJR ADJP FW"),
    ("PP", Right, "IN TO VBG VBN RP FW"),
    ("PRN", Left, ""),
    ("PRT", Right, "RP"),
    ("QP", Left, "$ IN NNS NN JJ RB DT CD NCD QP JJR JJS"),
    ("RRC", Right, "VP NP ADVP ADJP PP"),
    ("S", Left, "TO IN VP S SBAR ADJP UCP NP"),
    ("SBAR", Left, "WHNP WHPP WHADVP WHADJP IN DT S SQ SINV SBAR FRAG"),
    ("SBARQ", Left, "SQ S SINV SBARQ FRAG"),
    ("SINV", Left, "VBZ VBD VBP VB MD VP S SINV ADJP NP"),
    ("SQ", Left, "VBZ VBD VBP VB MD VP SQ"),
    ("UCP", Right, ""),
    ("VP", Left, "TO VBD VBN MD VBZ VB VBG VBP VP ADJP NN NNS NP"),
    ("WHADJP", Left, "CC WRB JJ ADJP"),
    ("WHADVP", Right, "CC WRB"),
    ("WHNP", Left, "WDT WP WP$ WHADJP WHPP WHNP"),
    ("WHPP", Right, "IN TO FW"),
    ("X", Right, ""),
];

/// Labels whose heads are those of `NP`: the first child that is one of a set, for one set after the other.
const NOUN_PHRASES: [&str; 3] = ["NP", "NML", "NX"];
const NOUNS: [(Side, &str); 5] = [
    (Right, "NN NNP NNPS NNS NX NML POS JJR"),
    (Left, "NP"),
    (Right, "$ ADJP PRN"),
    (Right, "CD"),
    (Right, "JJ JJS RB QP"),
];

/// Tags that are a head only where there is nothing else.
const PUNCTUATION: [&str; 7] = [",", ":", ".", "``", "''", "-LRB-", "-RRB-"];

fn find(children: &[&[u8]], from: Side, mut is_it: impl FnMut(&[u8]) -> bool) -> Option<usize> {
    match from {
        Left => children.iter().position(|child| is_it(child)),
        Right => children.iter().rposition(|child| is_it(child)),
    }
}

/// The place of the head among the children of a phrase, of which there is at least one; labels are without functions. For
/// a label that the table lacks it is the last child that is no punctuation.
pub(super) fn head(phrase: &[u8], children: &[&[u8]]) -> usize {
    let is_any = |labels: &str, child: &[u8]| labels.split(' ').any(|label| label.as_bytes() == child);
    let (found, from) = if NOUN_PHRASES.iter().any(|label| label.as_bytes() == phrase) {
        let mut sets = NOUNS.iter();
        (sets.find_map(|&(from, set)| find(children, from, |child| is_any(set, child))), Right)
    } else if let Some((_, from, labels)) = HEADS.iter().find(|(label, ..)| label.as_bytes() == phrase) {
        let mut labels = labels.split(' ');
        (labels.find_map(|label| find(children, *from, |child| child == label.as_bytes())), *from)
    } else {
        (None, Right)
    };
    let is_word = |child: &[u8]| !PUNCTUATION.iter().any(|tag| tag.as_bytes() == child);
    found.or_else(|| find(children, from, is_word)).unwrap_or(match from {
        Left => 0,
        Right => children.len() - 1,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(phrase: &str, children: &str) -> usize {
        let children: Vec<&[u8]> = children.split(' ').map(str::as_bytes).collect();
        head(phrase.as_bytes(), &children)
    }

    #[test]
    fn heads_are_those_of_the_table() {
        for (phrase, children, expected) in [
            ("S", "NP VP .", 1),
            ("S", "S , CC S .", 0),
            ("VP", "VBD NP PP", 0),
            ("VP", "RB MD VP", 1),
            ("VP", "ADVP NP NP", 1),
            ("NP", "DT JJ NN NNS", 3),
            ("NP", "NP PP", 0),
            ("NP", "DT NNP POS", 2),
            ("NP", "DT CD", 1),
            ("NP", "DT PRP", 1),
            ("NML", "NN NN HYPH", 1),
            ("PP", "RB IN NP", 1),
            ("SBAR", "IN S", 0),
            ("FRAG", "NP PP .", 1),
            ("PRN", "-LRB- NP -RRB-", 1),
            // Labels that it lacks.
            ("TITLE", "NP NP .", 1),
            ("TITLE", ". ,", 1),
            ("INTJ", ", .", 0),
        ] {
            assert_eq!(of(phrase, children), expected, "{phrase} -> {children}");
        }
    }

    proptest! {
        #[test]
        fn a_head_stays_when_others_go(phrase in 0..28_usize, children in proptest::collection::vec(0..30_usize, 1..8), go in 0..8_usize) {
            const CHILDREN: &str = "NN NNS POS NP CD JJ , . CC DT VP VBD MD TO IN PP S SBAR ADVP RB RP : LS QP $ PRN NX JJR WDT X1";
            let labels: Vec<&[u8]> = CHILDREN.split(' ').map(str::as_bytes).collect();
            let phrases: Vec<&str> = HEADS.iter().map(|h| h.0).chain(NOUN_PHRASES).chain(["ROOT"]).collect();
            let mut children: Vec<&[u8]> = children.into_iter().map(|child| labels[child]).collect();
            let found = head(phrases[phrase].as_bytes(), &children);
            if go < children.len() && go != found {
                children.remove(go);
                prop_assert_eq!(head(phrases[phrase].as_bytes(), &children), found - usize::from(go < found));
            }
        }
    }
}
