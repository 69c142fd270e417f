//! The tasks: one file each.

pub mod binary;
pub mod multiclass;
pub mod parsing;
pub mod tagging;
