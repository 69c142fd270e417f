//! Readers and writers, one format a file, and generators of synthetic data.
//!
//! Readers take an [`Input`](input::Input): a named stream of bytes, unpacked on the way. Errors name the input
//! and the line.

pub mod alignments;
pub(crate) mod blocks;
pub mod costs;
pub mod dictionary;
pub mod graphs;
pub mod input;
pub(crate) mod json_lines;
pub mod label_sets;
pub mod labels;
pub(crate) mod number;
pub mod output;
pub mod svmlight;
pub mod synthetic;
pub mod tagging;
pub mod taxonomy;
pub mod trees;
