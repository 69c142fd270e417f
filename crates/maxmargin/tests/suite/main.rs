//! All tests of the library but those that count allocations, as one program: what many of them train, solver by solver and task
//! by task, is compiled once. `cargo test -p maxmargin --test suite qp::` runs those of one file.

#![allow(clippy::disallowed_methods, reason = "tests may compare with the C library")]

mod common;

mod align;
mod aligner_file;
mod alignment;
mod alignment_prior;
mod alignment_readers;
mod chain;
mod cky;
mod dual_coordinate;
mod factor_graph;
mod gdmm;
mod golden;
mod grammar;
mod graph_readers;
mod kernel;
mod kernel_file;
mod kernel_resume;
mod kernel_solvers;
mod label_sets;
mod labeller_file;
mod laws;
mod layers;
mod low_rank;
mod map;
mod matrix;
mod model_file;
mod multilabel;
mod optimum;
mod parser_file;
mod parsing;
mod partitioned;
mod properties;
mod qp;
mod readers;
mod resume;
mod tagger_file;
mod tagging;
mod tagging_readers;
mod taxonomy;
mod taxonomy_file;
mod theorems;
mod trees;
