//! Factor graphs: variables with labels, and factors that score the labels of some variables together.

mod graph;

pub use graph::*;
