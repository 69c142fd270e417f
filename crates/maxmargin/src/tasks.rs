//! The tasks: one file each.

pub mod alignment;
pub mod binary;
pub mod factor_graph;
pub mod multiclass;
pub mod multilabel;
pub mod parsing;
pub mod partitioned;
pub mod tagging;
pub mod taxonomy;
