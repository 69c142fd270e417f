//! How much memory there is, and how much we took.

use std::fs;

/// The number of kB behind `key` in a file of /proc, in bytes.
fn kilobytes(file: &str, key: &str) -> Option<f64> {
    let text = fs::read_to_string(file).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.trim().trim_end_matches("kB").trim().parse::<f64>().ok().map(|kb| kb * 1024.0)
}

/// The largest amount of memory that this process held so far, in MB; None where the system does not tell.
pub(crate) fn peak_mb() -> Option<f64> {
    kilobytes("/proc/self/status", "VmHWM:").map(|bytes| bytes / 1e6)
}

/// What training takes for so many weights: w, its mean, the best so far, what a step is worked out in, and what is saved.
pub(crate) fn of_training(weights: f64) -> f64 {
    const COPIES: f64 = 8.0;
    8.0 * COPIES * weights
}

/// What it takes where weights are kept only if they are in use: for so many features of all tokens.
pub(crate) fn of_short_rows(features: f64) -> f64 {
    // The Slovak treebank, 13 million features of tokens, took 100 bytes of each in 3 passes: w, its mean, the best, the model.
    const BYTES: f64 = 150.0;
    BYTES * features
}

/// The bytes that are free, where so many are too much of them.
pub(crate) fn lacking(need: f64) -> Option<f64> {
    available().filter(|free| need >= 0.75 * free)
}

/// Bytes that can be had without swapping; None where the system does not tell.
pub(crate) fn available() -> Option<f64> {
    kilobytes("/proc/meminfo", "MemAvailable:")
}
