//! Parse trees: the derivations of a sentence by a grammar that was read off trees.

mod grammar;

pub use grammar::{Derivation, Grammar, Parts, Rule};
