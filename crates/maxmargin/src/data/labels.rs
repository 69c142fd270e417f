//! From the label words of a file to classes, and the weights of classes.
//!
//! Where every label is a number, labels are numbers: classes ascend by value, and `1`, `+1` and `1.0` are the same
//! class. Otherwise they are words in the order of their bytes.

use std::collections::HashMap;

use crate::data::svmlight::{Labelled, Labels};
use crate::error::{Error, Result};

/// The classes of a data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classes {
    /// The word of each class; binary: the negative one first.
    pub words: Vec<String>,
    /// The class of each example.
    pub outputs: Vec<u32>,
}

/// The finite number that a word stands for.
pub fn value(word: &str) -> Option<f64> {
    // Rust reads `nan` and `infinity` too; as labels these are words.
    // Integers beyond 2^53, identifiers as a rule, would be taken for their neighbours.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    word.parse().ok().filter(|v: &f64| v.abs() < EXACT)
}

/// The numbers that the labels stand for, if all of them are numbers.
pub fn values<S: AsRef<str>>(words: &[S]) -> Option<Vec<f64>> {
    words.iter().map(|word| value(word.as_ref())).collect()
}

impl Classes {
    /// Any number of classes from two. `name`: the file, for errors.
    pub fn multiclass(examples: &Labelled, name: &str) -> Result<Self> {
        let names = &examples.labels.names;
        let mut order: Vec<usize> = (0..names.len()).collect();
        let numbers = values(names);
        match &numbers {
            // Equal numbers stay in the order of their first appearance: that word names the class.
            Some(numbers) => order.sort_by(|&a, &b| (numbers[a] + 0.0).total_cmp(&(numbers[b] + 0.0))),
            None => order.sort_by(|&a, &b| names[a].cmp(&names[b])),
        }
        let mut class_of_id = vec![0; names.len()];
        let mut words: Vec<String> = Vec::new();
        let mut last = None;
        for id in order {
            let number = numbers.as_ref().map(|n| n[id]);
            if number.is_none() || number != last {
                words.push(names[id].clone());
            }
            last = number;
            class_of_id[id] = words.len() as u32 - 1;
        }
        if let [only] = words.as_slice() {
            let what =
                format!("all {} examples have the label '{only}'; at least two classes are needed", examples.len());
            return Err(parse(name, examples, 0, what));
        }
        Ok(Self { words, outputs: examples.labels.ids.iter().map(|&id| class_of_id[id as usize]).collect() })
    }

    /// Two classes: +1 against -1 (or 1 against 0), or the label `positive` against the rest. `name`: the file, for
    /// errors.
    pub fn binary(examples: &Labelled, positive: Option<&str>, name: &str) -> Result<Self> {
        let names = &examples.labels.names;
        let class_of_id = match positive {
            Some(positive) => one_against_the_rest(names, positive)?,
            None => by_sign(examples, name)?,
        };
        let outputs: Vec<u32> = examples.labels.ids.iter().map(|&id| class_of_id[id as usize]).collect();
        if let Some(&only) = class_of_id.first().filter(|first| class_of_id.iter().all(|class| class == *first)) {
            let side = ["negative", "positive"][only as usize];
            let what =
                format!("all {} examples are {side} (label '{}'); both classes are needed", outputs.len(), names[0]);
            return Err(parse(name, examples, 0, what));
        }
        let of_class = |class| names.iter().zip(&class_of_id).filter(move |id| *id.1 == class).map(|id| id.0);
        let word = |class| of_class(class).next().expect("both classes appear").clone();
        let negative = match (positive, word(0)) {
            (Some(positive), first) if !of_class(0).all(|name| is_same(name, &first)) => rest_of(positive),
            (_, first) => first,
        };
        Ok(Self { words: vec![negative, word(1)], outputs })
    }

    /// Weights of examples: their own costs times those of their classes; None where all are 1.
    pub fn example_weights(&self, costs: Option<&[f64]>, of_classes: Option<&[f64]>) -> Option<Vec<f64>> {
        match (costs, of_classes) {
            (None, None) => None,
            (Some(costs), None) => Some(costs.to_vec()),
            (None, Some(weights)) => Some(self.outputs.iter().map(|&y| weights[y as usize]).collect()),
            (Some(costs), Some(weights)) => {
                Some(self.outputs.iter().zip(costs).map(|(&y, cost)| cost * weights[y as usize]).collect())
            }
        }
    }

    /// `n / (K n_k)` for each class k: every class weighs the same in the sum.
    pub fn balanced_weights(&self) -> Vec<f64> {
        let mut counts = vec![0_u64; self.words.len()];
        for &y in &self.outputs {
            counts[y as usize] += 1;
        }
        let share = self.outputs.len() as f64 / self.words.len() as f64;
        counts.into_iter().map(|count| share / count as f64).collect()
    }

    /// The weight of each class from those that the user gives; 1 for the others.
    pub fn given_weights(&self, given: &[(String, f64)]) -> Result<Vec<f64>> {
        let fail = |rule: String| Err(Error::setting("class-weight", rule));
        let lookup = Lookup::new(&self.words);
        let mut weights = vec![None; self.words.len()];
        for (word, weight) in given {
            if !(*weight > 0.0 && weight.is_finite()) {
                return fail(format!("the weight of '{word}' must be positive and finite, not {weight}"));
            }
            let Some(class) = lookup.exact(word) else {
                return fail(format!("the data have no label '{word}'; they have {}", listed(&self.words)));
            };
            if weights[class as usize].replace(*weight).is_some() {
                return fail(format!("label '{word}' has two weights"));
            }
        }
        Ok(weights.into_iter().map(|weight| weight.unwrap_or(1.0)).collect())
    }
}

/// The first few words of a list, for messages.
fn listed(words: &[String]) -> String {
    const MOST: usize = 8;
    let shown: Vec<String> = words.iter().take(MOST).map(|word| format!("'{word}'")).collect();
    let more = if words.len() > MOST { format!(" and {} more", words.len() - MOST) } else { String::new() };
    shown.join(", ") + &more
}

fn parse(name: &str, examples: &Labelled, example: usize, what: String) -> Error {
    Error::Parse { name: name.to_owned(), line: examples.line(example), what }
}

/// The word of the negative class where it is whatever is not `positive`.
fn rest_of(positive: &str) -> String {
    format!("not-{positive}")
}

fn one_against_the_rest(names: &[String], positive: &str) -> Result<Vec<u32>> {
    let Some(positive) = Lookup::new(names).exact(positive) else {
        let rule = format!("the data have no label '{positive}'; they have {}", listed(names));
        return Err(Error::setting("positive", rule));
    };
    Ok(names.iter().map(|name| u32::from(is_same(name, &names[positive as usize]))).collect())
}

/// Are these one label? A number may be written in several ways.
fn is_same(a: &str, b: &str) -> bool {
    a == b || value(a).is_some_and(|v| Some(v) == value(b))
}

/// Class of each label: 1 is positive, -1 or 0 negative.
fn by_sign(examples: &Labelled, name: &str) -> Result<Vec<u32>> {
    let Labels { names, ids } = &examples.labels;
    let first = |id: usize| ids.iter().position(|&i| i as usize == id).expect("labels in use");
    let way_out = "binary labels are +1 and -1, or 1 and 0; --positive LABEL sets one label against the rest, and the \
                   task multiclass takes any labels";
    let mut negative: Option<f64> = None;
    let mut class_of_id = Vec::with_capacity(names.len());
    for (id, word) in names.iter().enumerate() {
        class_of_id.push(match value(word) {
            Some(1.0) => 1,
            Some(v) if v == -1.0 || v == 0.0 => {
                if negative.replace(v).is_some_and(|before| before != v) {
                    let what = format!("label '{word}' in a file that has both -1 and 0 ({way_out})");
                    return Err(parse(name, examples, first(id), what));
                }
                0
            }
            _ => return Err(parse(name, examples, first(id), format!("label '{word}' ({way_out})"))),
        });
    }
    Ok(class_of_id)
}

/// Finds the class of a label word.
#[derive(Debug)]
pub struct Lookup<'w> {
    words: HashMap<&'w str, u32>,
    /// Classes by value, where all words are numbers; -0 is 0.
    numbers: Option<HashMap<u64, u32>>,
    /// Everything but the positive class is negative.
    has_rest: bool,
}

impl<'w> Lookup<'w> {
    /// Over the words of the classes.
    pub fn new(words: &'w [String]) -> Self {
        let numbered = (0..).zip(words);
        let numbers = values(words).map(|v| (0..).zip(v).map(|(k, v)| ((v + 0.0).to_bits(), k)).collect());
        let has_rest = matches!(words, [negative, positive] if *negative == rest_of(positive));
        Self { words: numbered.map(|(k, word)| (word.as_str(), k)).collect(), numbers, has_rest }
    }

    /// The class with this label; `None` where no class has it.
    pub fn class(&self, label: &str) -> Option<u32> {
        match self.exact(label) {
            // The positive class may be a number written in another way.
            None if self.has_rest => {
                let is_positive = |(word, class): (&&str, &u32)| *class == 1 && value(word) == value(label);
                Some(u32::from(value(label).is_some() && self.words.iter().any(is_positive)))
            }
            class => class,
        }
    }

    /// The class with exactly this label, or another spelling of its number.
    pub(crate) fn exact(&self, label: &str) -> Option<u32> {
        let by_value = || self.numbers.as_ref()?.get(&(value(label)? + 0.0).to_bits()).copied();
        self.words.get(label).copied().or_else(by_value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::input::Input;
    use crate::data::svmlight::{LabelRule, read};
    use crate::parallel::Pool;

    fn labelled(labels: &[&str]) -> Labelled {
        let text = labels.join(" 1:1\n") + " 1:1\n";
        read(Input::new("t", text.as_bytes()).unwrap(), LabelRule::Required, &Pool::new(1).unwrap()).unwrap()
    }

    fn multiclass(labels: &[&str]) -> Classes {
        Classes::multiclass(&labelled(labels), "t").unwrap()
    }

    fn binary(labels: &[&str], positive: Option<&str>) -> Result<Classes> {
        Classes::binary(&labelled(labels), positive, "t")
    }

    fn message<T: std::fmt::Debug>(result: Result<T>) -> String {
        result.expect_err("an error").to_string()
    }

    #[test]
    fn numbers_ascend_and_equal_ones_are_one_class() {
        let classes = multiclass(&["10", "9", "+9", "-0", "0", "1e1", "-3"]);
        assert_eq!(classes.words, ["-3", "-0", "9", "10"]);
        assert_eq!(classes.outputs, [3, 2, 2, 1, 1, 3, 0]);
    }

    #[test]
    fn words_are_in_the_order_of_their_bytes() {
        let classes = multiclass(&["b", "10", "nan", "9", "b"]);
        assert_eq!(classes.words, ["10", "9", "b", "nan"]);
        assert_eq!(classes.outputs, [2, 0, 3, 1, 2]);
    }

    #[test]
    fn binary_labels_are_signs() {
        for labels in [["+1", "-1"], ["1", "-1"], ["1", "0"], ["1.0", "-1.0"]] {
            let classes = binary(&labels, None).unwrap();
            assert_eq!(classes.words, [labels[1], labels[0]]);
            assert_eq!(classes.outputs, [1, 0]);
        }
        assert!(message(binary(&["+1", "-1", "2"], None)).starts_with("t:3: label '2' (binary labels are"));
        assert!(message(binary(&["0", "+1", "-1"], None)).starts_with("t:3: label '-1' in a file that has both"));
        assert!(message(binary(&["+1", "1"], None)).contains("all 2 examples are positive"));
        assert!(message(binary(&["0", "0"], None)).contains("all 2 examples are negative"));
    }

    #[test]
    fn one_label_stands_against_the_rest() {
        let classes = binary(&["a", "b", "c", "b"], Some("b")).unwrap();
        assert_eq!((classes.words, classes.outputs), (vec!["not-b".to_owned(), "b".to_owned()], vec![0, 1, 0, 1]));
        let classes = binary(&["ham", "spam"], Some("spam")).unwrap();
        assert_eq!(classes.words, ["ham", "spam"]);
        let classes = binary(&["2", "1.0", "1", "2.0", "+1"], Some("2")).unwrap();
        assert_eq!((classes.words, classes.outputs), (vec!["1.0".to_owned(), "2".to_owned()], vec![1, 0, 0, 1, 0]));
        assert!(message(binary(&["a", "b"], Some("c"))).contains("no label 'c'; they have 'a', 'b'"));
        assert!(message(binary(&["a", "a"], Some("a"))).contains("all 2 examples are positive"));
    }

    #[test]
    fn labels_are_found_again() {
        let find = |words: &[&str], label| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            Lookup::new(&words).class(label)
        };
        assert_eq!(find(&["-1", "+1"], "1"), Some(1));
        assert_eq!(find(&["-1", "+1"], "0"), None);
        assert_eq!(find(&["1", "x"], "1.0"), None);
        assert_eq!(find(&["not-3", "3"], "+3"), Some(1));
        assert_eq!(find(&["not-3", "3"], "3"), Some(1));
        assert_eq!(find(&["not-3", "3"], "whatever"), Some(0));
        assert_eq!(find(&["not-c", "c"], "d"), Some(0));
        assert_eq!(find(&["0", "1"], "-0"), Some(0));
    }

    #[test]
    fn weights_of_classes_and_examples_multiply() {
        let classes = multiclass(&["1", "2", "2", "2"]);
        let balanced = classes.balanced_weights();
        assert_eq!(balanced, [2.0, 4.0 / 6.0]);
        let given = classes.given_weights(&[("2.0".to_owned(), 5.0)]).unwrap();
        assert_eq!(given, [1.0, 5.0]);
        assert_eq!(classes.example_weights(None, None), None);
        assert_eq!(classes.example_weights(None, Some(&given)), Some(vec![1.0, 5.0, 5.0, 5.0]));
        let costs = [2.0, 1.0, 3.0, 1.0];
        assert_eq!(classes.example_weights(Some(&costs), Some(&given)), Some(vec![2.0, 5.0, 15.0, 5.0]));
        for (word, weight, what) in [("3", 1.0, "no label '3'"), ("1", 0.0, "positive and finite, not 0")] {
            assert!(message(classes.given_weights(&[(word.to_owned(), weight)])).contains(what));
        }
        let twice = [("1".to_owned(), 1.0), ("1".to_owned(), 2.0)];
        assert!(message(classes.given_weights(&twice)).contains("two weights"));
    }
}
