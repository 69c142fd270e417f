//! Structural SVMs, trained to a certified optimum.

pub mod cache;
pub mod data;
pub mod error;
pub mod features;
pub mod metrics;
pub mod model;
pub mod parallel;
pub mod problem;
pub mod qp;
pub mod solver;
pub mod sparse;
pub mod task;
pub mod tasks;
pub mod testing;
pub mod weights;

pub use error::{Error, Result};
