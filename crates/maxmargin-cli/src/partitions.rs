//! Training on partitions of the data, wherever these are.
//!
//! Each partition is [surveyed](survey): what dictionaries are to know of it. Surveys of all partitions become a blank model, which
//! has the names of labels and features and no weights. With it each partition is read again, and [serves](serve) its cuts, a
//! pure function of w, to a [master](master), which trains as on one machine and fills the blank model.

pub(crate) mod master;
pub(crate) mod serve;
pub(crate) mod survey;
