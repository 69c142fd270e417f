//! Decoders over tables of scores. No task inside: a task fills the tables and asks.

pub mod align;
pub mod chain;
pub mod cky;
pub mod map;
