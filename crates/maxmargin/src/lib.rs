//! Structural SVMs, trained to a certified optimum.
//!
//! A large-margin predictor is `h(x) = argmax_y <w, psi(x, y)>`. This library finds the w that minimises
//! `1/2 |w|^2 + (C/n) sum_i H_i(w)`, where `H_i` is the margin violation of example i, and says how close it came: every
//! report holds the objective (`primal`), a proven lower bound of its minimum (`dual`) and their `gap`.
//!
//! ```
//! use maxmargin::problem::{Formulation, Problem};
//! use maxmargin::solver::cutting_plane::CuttingPlane;
//! use maxmargin::solver::{Certificate, Settings, Solver};
//! use maxmargin::sparse::{SparseMatrix, SparseView};
//! use maxmargin::task::Task;
//! use maxmargin::tasks::multiclass::{Costs, Multiclass};
//!
//! fn main() -> maxmargin::Result<()> {
//!     // Three classes in the plane: which way does a point lie?
//!     let mut points = SparseMatrix::new();
//!     for (x, y) in [(2.0, 0.1), (1.5, -0.2), (-1.0, 1.6), (-0.9, 1.8), (-1.2, -1.4), (-0.8, -2.0)] {
//!         points.push_row([(0, x), (1, y)]);
//!     }
//!     let classes = [0, 0, 1, 1, 2, 2];
//!
//!     let task = Multiclass::new(points.columns(), Costs::zero_one(3));
//!     let rows = points.views();
//!     let formulation = Formulation { c: 10.0, ..Formulation::default() };
//!     let problem = Problem::new(&task, &rows, &classes, None, formulation)?;
//!
//!     let solution = CuttingPlane::default().solve(&problem, &Settings::default(), &mut ())?;
//!     let report = &solution.report;
//!     assert_eq!(report.certificate, Certificate::Exact);
//!     assert!(report.gap <= report.target);
//!     println!("the objective, {}, is at most {} above its minimum", report.primal, report.gap);
//!
//!     let (mut scores, mut class) = (Vec::new(), 0);
//!     let x = SparseView::new(&[0, 1], &[-1.0, 1.0]);
//!     task.argmax(&solution.weights, x, None, &mut scores, &mut class)?;
//!     assert_eq!(class, 1);
//!     Ok(())
//! }
//! ```
//!
//! Most programs need what stands above: a task ([`Binary`](tasks::binary::Binary),
//! [`Multiclass`](tasks::multiclass::Multiclass) or [`Tagging`](tasks::tagging::Tagging)), a [`Problem`](problem::Problem) of it, and the solver
//! [`CuttingPlane`](solver::cutting_plane::CuttingPlane). Beyond it:
//!
//! - the formulations, with their optimisation problems: [`problem`];
//! - other solvers: [`n_slack`](solver::n_slack), [`frank_wolfe`](solver::frank_wolfe); settings, progress, status and
//!   report of all of them: [`solver`];
//! - training that is saved, resumed, or led along a path over C: [`State`](solver::State);
//! - kernels, built in or your own: [`kernel`];
//! - a task of your own: implement [`Task`](task::Task), and test it with [`check_task`](testing::check_task);
//!   `examples/own_task.rs` is one with an argmax by dynamic programming;
//! - files: [`svmlight`](data::svmlight) reads examples, [`labels`](data::labels) makes classes of their labels,
//!   [`Model`](model::Model) saves, loads and predicts, [`metrics`] counts; `examples/train_multiclass.rs` goes all the
//!   way from a file to a saved model;
//! - sentences: [`data::tagging`] reads them, [`Tagger`](model::Tagger) is their model, [`inference::chain`] the decoder;
//! - the inner parts, for those who build solvers: [`qp`], [`cache`], [`features`], [`parallel`].
//!
//! The library never prints. Not converging is a [`Status`](solver::Status), not an error. Results do not depend on the
//! number of threads or on the kind of CPU, to the last bit: see [`numeric`].

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may compare with the C library"))]

pub mod cache;
pub mod data;
pub mod error;
pub mod features;
pub mod inference;
pub mod kernel;
mod memory;
pub mod metrics;
pub mod model;
pub mod numeric;
pub mod parallel;
pub mod problem;
pub mod qp;
mod random;
pub mod solver;
pub mod sparse;
pub mod task;
pub mod tasks;
pub mod testing;
pub mod weights;

pub use error::{Error, Result};
