//! Tags that may not follow each other, begin a sentence or end it.

use std::ops::Range;

use crate::inference::chain::Chain;

/// How tags mark the beginning, the inside and the end of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Scheme {
    /// `B-X` begins a chunk of type X, `I-X` goes on with it, `O` is outside.
    #[serde(rename = "BIO")]
    Bio,
    /// The same with `E-X` for the last token of a chunk and `S-X` for a chunk of one token.
    #[serde(rename = "BIOES")]
    Bioes,
}

/// What may not stand next to what, for K tags.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Constraints {
    /// The tags, for messages.
    names: Vec<String>,
    /// Row = the tag before, column = the tag after.
    pairs: Vec<bool>,
    first: Vec<bool>,
    last: Vec<bool>,
}

impl Constraints {
    /// Everything is allowed.
    pub fn none(tags: &[String]) -> Self {
        let k = tags.len();
        Self { names: tags.to_vec(), pairs: vec![false; k * k], first: vec![false; k], last: vec![false; k] }
    }

    /// Forbids tag `b` right after tag `a`. Both must be tags: what is not one is returned.
    pub fn forbid<'n>(&mut self, a: &'n str, b: &'n str) -> Result<(), &'n str> {
        let find = |name: &'n str| self.names.iter().position(|tag| tag == name).ok_or(name);
        let (a, b) = (find(a)?, find(b)?);
        self.pairs[a * self.names.len() + b] = true;
        Ok(())
    }

    /// Forbids what breaks a scheme. A tag that does not belong to the scheme is returned.
    pub fn apply_scheme(&mut self, scheme: Scheme) -> Result<(), String> {
        let parsed = self.names.iter().map(|tag| Place::of(tag, scheme).ok_or_else(|| tag.clone()));
        let places: Vec<Place<'_>> = parsed.collect::<Result<_, _>>()?;
        let k = places.len();
        for (a, before) in places.iter().enumerate() {
            self.first[a] |= before.goes_on;
            self.last[a] |= before.must_go_on;
            for (b, after) in places.iter().enumerate() {
                let is_same_chunk = after.goes_on && before.may_go_on && before.kind == after.kind;
                let is_new_chunk = !after.goes_on && !before.must_go_on;
                self.pairs[a * k + b] |= !(is_same_chunk || is_new_chunk);
            }
        }
        Ok(())
    }

    /// Is nothing forbidden?
    pub fn is_empty(&self) -> bool {
        !self.pairs.iter().chain(&self.first).chain(&self.last).any(|&forbidden| forbidden)
    }

    /// Do the parts fit together? Asked of what comes from a file.
    pub(crate) fn fits(&self, tags: &[String]) -> bool {
        let k = tags.len();
        self.names == tags && self.pairs.len() == k * k && self.first.len() == k && self.last.len() == k
    }

    /// Puts minus infinity where something is forbidden; `steps`: those that have pair scores of their own.
    pub(super) fn apply(&self, chain: &mut Chain, steps: Range<usize>) {
        let k = self.names.len();
        let forbid = |scores: &mut [f64], forbidden: &[bool]| {
            for (score, _) in scores.iter_mut().zip(forbidden).filter(|(_, forbidden)| **forbidden) {
                *score = f64::NEG_INFINITY;
            }
        };
        forbid(chain.unary_mut(0), &self.first);
        forbid(chain.unary_mut(chain.len() - 1), &self.last);
        for t in steps {
            for a in 0..k {
                forbid(chain.pair_mut(t, a), &self.pairs[a * k..][..k]);
            }
        }
    }

    /// Is this sequence of tags allowed? If not, what is wrong with it.
    pub fn check(&self, y: &[u32]) -> Result<(), String> {
        let name = |tag: u32| self.names[tag as usize].as_str();
        let way_out = "correct the data, or leave out --scheme or --forbid";
        let (k, Some((&first, &last))) = (self.names.len(), y.first().zip(y.last())) else { return Ok(()) };
        if self.first[first as usize] {
            return Err(format!("the first tag is {}, which is forbidden there ({way_out})", name(first)));
        }
        if self.last[last as usize] {
            return Err(format!("the last tag is {}, which is forbidden there ({way_out})", name(last)));
        }
        match y.windows(2).position(|pair| self.pairs[pair[0] as usize * k + pair[1] as usize]) {
            Some(t) => {
                let (a, b, place) = (name(y[t]), name(y[t + 1]), t + 2);
                Err(format!("token {place} of the sentence has {b} after {a}, which is forbidden ({way_out})"))
            }
            None => Ok(()),
        }
    }
}

/// What a tag says about its chunk.
struct Place<'t> {
    kind: &'t str,
    /// Is it a part of the chunk before it?
    goes_on: bool,
    /// Can the chunk go on after it? Must it?
    may_go_on: bool,
    must_go_on: bool,
}

impl<'t> Place<'t> {
    fn of(tag: &'t str, scheme: Scheme) -> Option<Self> {
        let (mark, kind) = tag.split_once('-').unwrap_or((tag, ""));
        let bioes = scheme == Scheme::Bioes;
        let (goes_on, may_go_on, must_go_on) = match mark {
            "O" if kind.is_empty() => (false, false, false),
            "B" => (false, true, bioes),
            "I" => (true, true, bioes),
            "E" if bioes => (true, false, false),
            "S" if bioes => (false, false, false),
            _ => return None,
        };
        Some(Self { kind, goes_on, may_go_on, must_go_on })
    }
}
