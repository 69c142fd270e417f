//! What solvers see of a task and its data: examples by number.
//!
//! [`Examples`] is object-safe, so that solvers are compiled once and not once per task. Inputs stay behind it. Outputs
//! and the buffers of decoders pass through solvers as [`Output`] and [`Scratch`], whose types only the task knows. The
//! inner loops, from features into a [`Target`], are compiled for each task in `problem/data.rs`.

use std::any::Any;
use std::fmt::{self, Debug};

use serde::de::{DeserializeOwned, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::Result;
use crate::features::{Block, Sink, Target};
use crate::sparse::SparseView;
use crate::task::{Losses, Part, Places, Sets};
use crate::weights::Weights;

/// An output type of a task.
trait AnyOutput: Any + Debug + Send + Sync {
    fn boxed(&self) -> Box<dyn AnyOutput>;
    /// Copies the other output, whose buffers are reused. Returns false where it is of another type.
    fn copy_from(&mut self, other: &dyn AnyOutput) -> bool;
    fn equals(&self, other: &dyn AnyOutput) -> bool;
    fn to_bytes(&self) -> postcard::Result<Vec<u8>>;
}

impl<Y: Clone + Debug + PartialEq + Send + Sync + Serialize + 'static> AnyOutput for Y {
    fn boxed(&self) -> Box<dyn AnyOutput> {
        Box::new(self.clone())
    }

    fn copy_from(&mut self, other: &dyn AnyOutput) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref::<Y>().is_some_and(|other| {
            self.clone_from(other);
            true
        })
    }

    fn equals(&self, other: &dyn AnyOutput) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref::<Y>().is_some_and(|other| self == other)
    }

    fn to_bytes(&self) -> postcard::Result<Vec<u8>> {
        postcard::to_stdvec(self)
    }
}

/// One output of a task, whose type only the task knows.
///
/// An output that was read from a saved state consists of bytes until [`Examples::restore`] gives it its type.
#[derive(Default)]
pub struct Output(Inner);

#[derive(Default)]
enum Inner {
    /// No output yet.
    #[default]
    Empty,
    Typed(Box<dyn AnyOutput>),
    Saved(Vec<u8>),
}

impl Output {
    /// An output of a task.
    pub fn new<Y: Clone + Debug + PartialEq + Send + Sync + Serialize + 'static>(y: Y) -> Self {
        Self(Inner::Typed(Box::new(y)))
    }

    /// The output; None where it is of another type.
    pub fn get<Y: 'static>(&self) -> Option<&Y> {
        match &self.0 {
            Inner::Typed(y) => {
                let y: &dyn Any = &**y;
                y.downcast_ref()
            }
            Inner::Empty | Inner::Saved(_) => None,
        }
    }

    /// A buffer for an output of this type: this output, or the default where it is of another type.
    pub(crate) fn buffer<Y>(&mut self) -> &mut Y
    where
        Y: Clone + Debug + Default + PartialEq + Send + Sync + Serialize + 'static,
    {
        if self.get::<Y>().is_none() {
            *self = Self::new(Y::default());
        }
        let Inner::Typed(y) = &mut self.0 else { unreachable!("an output that was just checked") };
        let y: &mut dyn Any = &mut **y;
        y.downcast_mut().expect("an output that was just checked")
    }

    /// Gives an output that was read its type. Fails where the bytes are none of this type.
    pub(crate) fn restore<Y>(&mut self) -> std::result::Result<(), String>
    where
        Y: Clone + Debug + PartialEq + Send + Sync + Serialize + DeserializeOwned + 'static,
    {
        if let Inner::Saved(bytes) = &self.0 {
            let (y, rest) = postcard::take_from_bytes::<Y>(bytes).map_err(|e| e.to_string())?;
            if !rest.is_empty() {
                return Err("an output is too long".to_owned());
            }
            *self = Self::new(y);
        }
        Ok(())
    }
}

impl Clone for Output {
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Inner::Empty => Inner::Empty,
            Inner::Typed(y) => Inner::Typed(y.boxed()),
            Inner::Saved(bytes) => Inner::Saved(bytes.clone()),
        })
    }

    fn clone_from(&mut self, other: &Self) {
        if let (Inner::Typed(own), Inner::Typed(other)) = (&mut self.0, &other.0)
            && own.copy_from(&**other)
        {
            return;
        }
        *self = other.clone();
    }
}

/// Outputs are equal if they have the same type and value.
impl PartialEq for Output {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Inner::Typed(a), Inner::Typed(b)) => a.equals(&**b),
            (Inner::Empty, Inner::Empty) => true,
            (Inner::Saved(a), Inner::Saved(b)) => a == b,
            _ => false,
        }
    }
}

impl Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Inner::Empty => f.write_str("no output"),
            Inner::Typed(y) => y.fmt(f),
            Inner::Saved(bytes) => write!(f, "a saved output of {} bytes", bytes.len()),
        }
    }
}

/// As the bytes of its type.
impl Serialize for Output {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match &self.0 {
            Inner::Empty => serializer.serialize_bytes(&[]),
            Inner::Typed(y) => serializer.serialize_bytes(&y.to_bytes().map_err(serde::ser::Error::custom)?),
            Inner::Saved(bytes) => serializer.serialize_bytes(bytes),
        }
    }
}

impl<'de> Deserialize<'de> for Output {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Bytes;

        impl Visitor<'_> for Bytes {
            type Value = Vec<u8>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the bytes of an output")
            }

            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> std::result::Result<Self::Value, E> {
                Ok(bytes.to_vec())
            }
        }

        // Without a byte, too: an output that has no content, such as (), is written as nothing.
        deserializer.deserialize_bytes(Bytes).map(|bytes| Self(Inner::Saved(bytes)))
    }
}

/// The buffers of a task's decoder, whose type only the task knows. They are made at the first use.
#[derive(Default)]
pub struct Scratch(Option<Box<dyn Any + Send + Sync>>);

impl Scratch {
    /// The buffers of this type.
    pub(crate) fn of<S: Default + Send + Sync + 'static>(&mut self) -> &mut S {
        if !self.0.as_ref().is_some_and(|own| own.is::<S>()) {
            self.0 = Some(Box::<S>::default());
        }
        self.0.as_mut().and_then(|own| own.downcast_mut()).expect("buffers that were just checked")
    }

    /// The buffers of this type, where they have been made.
    pub(crate) fn made<S: 'static>(&self) -> Option<&S> {
        self.0.as_ref().and_then(|own| own.downcast_ref())
    }
}

impl Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scratch")
    }
}

/// The examples of a problem, by number: a task, its inputs and its true outputs.
///
/// Outputs that are handed in must be outputs of the same examples.
pub trait Examples: Send + Sync {
    /// Number of examples.
    fn len(&self) -> usize;

    /// No example? A problem has at least one.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Does example i fit the task? If not, what is wrong and what to do.
    fn check(&self, i: usize) -> std::result::Result<(), String>;

    /// The layout of w.
    fn blocks(&self) -> &[Block];

    /// Number of coordinates of w.
    fn dimension(&self) -> usize;

    /// `c_i`, the weight of example i.
    fn weight(&self, i: usize) -> f64;

    /// The largest loss that any output of example i has.
    fn max_loss(&self, i: usize) -> f64;

    /// Estimated cost of one decoding of example i, where the score of one output costs 1.
    fn decode_cost(&self, i: usize) -> f64;

    /// Does [`argmax`](Self::argmax) with a loss find the maximum for example i?
    fn argmax_is_exact(&self, i: usize) -> bool;

    /// Gives an output of example i that was read from a saved state its type, and checks that it is one.
    fn restore(&self, i: usize, y: &mut Output) -> std::result::Result<(), String>;

    /// Is y the true output of example i?
    fn is_truth(&self, i: usize, y: &Output) -> bool;

    /// Copies the true output of example i to y.
    fn copy_truth(&self, i: usize, y: &mut Output);

    /// `D(y_i, y)`, the loss of the output y of example i, not scaled.
    fn loss(&self, i: usize, y: &Output) -> f64;

    /// Emits `psi(x_i, y_i)`, the features of the true output.
    fn add_truth(&self, i: usize, sink: &mut dyn Sink) -> Result<()>;

    /// Emits `factor * dpsi_i(y)`.
    fn add_difference(&self, i: usize, y: &Output, factor: f64, to: Target<'_>) -> Result<()>;

    /// `<w, psi(x_i, y_i)>`, the score of the true output.
    fn truth_score(&self, i: usize, w: &Weights) -> Result<f64>;

    /// `<w, psi(x_i, y)>`, the score of the output y.
    fn score(&self, i: usize, w: &Weights, y: &Output) -> Result<f64>;

    /// `<w, dpsi_i(y)>`, the margin of the true output over y.
    fn margin(&self, i: usize, w: &Weights, y: &Output) -> Result<f64>;

    /// Leaves `argmax_y <w, psi(x_i, y)> + lambda D(y_i, y)` in y; without a lambda, the prediction.
    fn argmax(&self, i: usize, w: &Weights, lambda: Option<f64>, scratch: &mut Scratch, y: &mut Output) -> Result<()>;

    /// Upper bound on the maximum of the last [`argmax`](Self::argmax) with these buffers, where decoding is inexact.
    fn upper_bound(&self, scratch: &Scratch) -> Option<f64>;

    /// The weights of a generative model of these examples, each with a weight; None where the task has none.
    fn generative(&self, examples: &mut dyn Iterator<Item = (usize, f64)>) -> Option<Weights>;

    /// The outputs as a short list, where they are one.
    fn enumerable(&self) -> Option<&dyn Enumerable>;

    /// An argmax for losses that are no sum over the pieces of an output, where there is one.
    fn loss_counting(&self) -> Option<&dyn LossCounting>;

    /// The outputs as labels of variables and factors, where they are.
    fn factors(&self) -> Option<&dyn Factors>;
}

/// Examples whose outputs are a short list, the same for every input.
pub trait Enumerable: Sync {
    /// Number of outputs.
    fn count(&self) -> usize;

    /// Copies the k-th output to y.
    fn copy_output(&self, k: usize, y: &mut Output);

    /// The place of an output in the list.
    fn index(&self, y: &Output) -> usize;

    /// The place of the true output of example i.
    fn truth_index(&self, i: usize) -> usize;

    /// The scores of all outputs of example i.
    fn scores(&self, i: usize, w: &Weights, scratch: &mut Scratch, scores: &mut [f64]);

    /// The losses of all outputs of example i, from a table or computed in the buffers.
    fn losses<'s>(&'s self, i: usize, scratch: &'s mut Scratch) -> &'s [f64];

    /// The examples as plain data, where all outputs place one input vector in slots of a block.
    fn rows(&self) -> Option<ClassRows<'_>>;
}

/// The input vectors of examples, and how the outputs of a list place them.
#[derive(Debug, Clone, Copy)]
pub struct ClassRows<'s> {
    /// The input vector of each example.
    pub phis: &'s [SparseView<'s>],
    /// Where the outputs place it.
    pub places: Places<'s>,
    /// The losses between outputs.
    pub losses: Losses<'s>,
    /// The weight of each example, 1 where None.
    pub weights: Option<&'s [f64]>,
}

/// Examples with an argmax that knows the loss of each output, exact for every rescaling and penalty.
pub trait LossCounting: Sync {
    /// Does it find the maximum for example i?
    fn is_exact(&self, i: usize) -> bool;

    /// Can it tell the outputs of example i apart by their loss?
    fn applies(&self, i: usize) -> bool;

    /// Can it decode example i? If not, why, and what to do.
    fn check(&self, i: usize) -> std::result::Result<(), String>;

    /// Leaves `argmax_y value(D(y_i, y), <w, psi(x_i, y)>)` in y, where `value` is linear in the score and rises with it.
    /// Returns false, without an output, where this does not [apply](Self::applies).
    fn argmax_of(
        &self,
        i: usize,
        w: &Weights,
        value: &dyn Fn(f64, f64) -> f64,
        scratch: &mut Scratch,
        y: &mut Output,
    ) -> Result<bool>;
}

/// Examples as factor graphs. [`Factored`](crate::task::Factored) says what each method returns.
pub trait Factors: Sync {
    /// Number of variables of example i.
    fn variables(&self, i: usize) -> usize;

    /// Number of labels of variable v of example i.
    fn domain(&self, i: usize, v: usize) -> u32;

    /// Visits the parts of variable v alone.
    fn unary<'s>(&'s self, i: usize, v: usize, visit: &mut dyn FnMut(Part<'s>));

    /// Number of factors of several variables.
    fn factors(&self, i: usize) -> usize;

    /// Factor f: leaves its variables in `scope`, and visits its part.
    fn factor<'s>(&'s self, i: usize, f: usize, scope: &mut Vec<u32>, visit: &mut dyn FnMut(Part<'s>));

    /// The labels of an output of example i.
    fn labels(&self, i: usize, y: &Output, labels: &mut Vec<u32>);

    /// The labels of the true output of example i.
    fn truth_labels(&self, i: usize, labels: &mut Vec<u32>);

    /// The cost of a wrong label of a variable whose label should be `truth`.
    fn cost(&self, truth: u32) -> f64;

    /// The last block of w, where the task can score with its weights in short rows.
    fn short_rows(&self) -> Option<Block>;

    /// The structure of label sets, where outputs are sets.
    fn sets(&self) -> Option<&dyn Sets>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_keeps_its_type_and_its_value() {
        let (a, mut b) = (Output::new(vec![1_u32, 2]), Output::default());
        assert_ne!(a, b);
        b.clone_from(&a);
        assert_eq!(a, b);
        assert_eq!(b.get::<Vec<u32>>(), Some(&vec![1, 2]));
        assert_eq!(b.get::<u32>(), None);
        b.buffer::<Vec<u32>>().push(3);
        assert_ne!(a, b);
        *b.buffer::<u32>() = 7;
        assert_eq!(b, Output::new(7_u32));
        assert_eq!(format!("{b:?}"), "7");
    }

    #[test]
    fn an_output_without_content_is_read_again() {
        let bytes = postcard::to_stdvec(&Output::new(())).unwrap();
        let mut read: Output = postcard::from_bytes(&bytes).unwrap();
        read.restore::<()>().unwrap();
        assert_eq!(read, Output::new(()));
    }

    #[test]
    fn a_saved_output_is_bytes_until_it_has_its_type() {
        let y = Output::new(vec![5_u32, 300]);
        let bytes = postcard::to_stdvec(&y).unwrap();
        let mut read: Output = postcard::from_bytes(&bytes).unwrap();
        assert_ne!(read, y);
        assert!(read.clone().restore::<(u32, u32, u32, u32)>().is_err());
        read.restore::<Vec<u32>>().unwrap();
        assert_eq!(read, y);
    }
}
