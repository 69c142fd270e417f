//! Kernels in words: `rbf:gamma=0.5`, `poly:degree=2,gamma=scale,coef0=1`.

use std::fmt;
use std::str::FromStr;

use super::{Shape, Standard};
use crate::error::{Error, Result};
use crate::numeric::square;
use crate::sparse::SparseMatrix;

/// gamma, or how it follows from the data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Gamma {
    /// A number.
    Value(f64),
    /// 1 / (number of features times the variance of all entries of the data, zeros included), as in scikit-learn.
    Scale,
    /// 1 / number of features.
    Auto,
}

/// A kernel whose gamma may follow from the data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Specification {
    /// `<a, b>`
    Linear,
    /// `exp(-gamma |a - b|^2)`
    Rbf(Gamma),
    /// `(gamma <a, b> + coef0)^degree`
    Poly(u32, Gamma, f64),
    /// `tanh(gamma <a, b> + coef0)`
    Sigmoid(Gamma, f64),
}

/// The largest degree: beyond it f64 overflows on tame data.
const MAX_DEGREE: u32 = 100;

fn wrong(rule: impl Into<String>) -> Error {
    Error::setting("kernel", rule)
}

impl Specification {
    /// The kernel on these data. `constant`: what the bias adds to it.
    pub fn on(&self, rows: &SparseMatrix, constant: f64) -> Result<Standard> {
        let shape = match *self {
            Self::Linear => Shape::Linear,
            Self::Rbf(gamma) => Shape::Rbf { gamma: gamma.on(rows)? },
            Self::Poly(degree, gamma, coef0) => Shape::Poly { degree, gamma: gamma.on(rows)?, coef0 },
            Self::Sigmoid(gamma, coef0) => Shape::Sigmoid { gamma: gamma.on(rows)?, coef0 },
        };
        Ok(Standard { shape, constant })
    }

    /// Is the kernel an inner product, whatever the data?
    pub fn is_definite(&self) -> bool {
        match self {
            Self::Linear | Self::Rbf(_) => true,
            Self::Poly(_, _, coef0) => *coef0 >= 0.0,
            Self::Sigmoid(..) => false,
        }
    }
}

impl Gamma {
    fn on(self, rows: &SparseMatrix) -> Result<f64> {
        let features = f64::from(rows.columns());
        let gamma = match self {
            Self::Value(gamma) => gamma,
            Self::Auto => 1.0 / features,
            Self::Scale => {
                let (mut sum, mut squares) = (0.0, 0.0);
                for i in 0..rows.rows() {
                    let values = rows.row(i).values();
                    sum += values.iter().map(|&v| f64::from(v)).sum::<f64>();
                    squares += rows.row(i).norm2();
                }
                let entries = features * rows.rows() as f64;
                let variance = squares / entries - square(sum / entries);
                // As scikit-learn does where all entries are equal.
                if variance > 0.0 { 1.0 / (features * variance) } else { 1.0 }
            }
        };
        if gamma.is_finite() { Ok(gamma) } else { Err(wrong("these data have no features to take gamma from")) }
    }
}

impl FromStr for Gamma {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        match word {
            "scale" => Ok(Self::Scale),
            "auto" => Ok(Self::Auto),
            _ => number("gamma", word).map(Self::Value),
        }
    }
}

fn number(name: &str, word: &str) -> Result<f64> {
    word.parse().ok().filter(|x: &f64| x.is_finite()).ok_or_else(|| wrong(format!("{name}={word} is not a number")))
}

impl FromStr for Specification {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let known: &[&str] = match name {
            "linear" => &[],
            "rbf" => &["gamma"],
            "poly" => &["degree", "gamma", "coef0"],
            "sigmoid" => &["gamma", "coef0"],
            _ => {
                return Err(wrong(format!("'{name}' is none; there are linear, rbf, poly and sigmoid")));
            }
        };
        // As scikit-learn has them.
        let (mut gamma, mut degree, mut coef0) = (Gamma::Scale, 3, 0.0);
        let mut seen: Vec<&str> = Vec::new();
        for pair in rest.split(',').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').ok_or_else(|| wrong(format!("'{pair}' is not NAME=VALUE")))?;
            if !known.contains(&key) {
                let have = if known.is_empty() { "no parameters".to_owned() } else { known.join(", ") };
                return Err(wrong(format!("{name} has no '{key}'; it has {have}")));
            }
            if seen.contains(&key) {
                return Err(wrong(format!("{key} is there twice")));
            }
            seen.push(key);
            match key {
                "gamma" => gamma = value.parse()?,
                "coef0" => coef0 = number("coef0", value)?,
                _ => {
                    let is_fit = |degree: &u32| (1..=MAX_DEGREE).contains(degree);
                    let rule = || wrong(format!("degree={value} is not a whole number from 1 to {MAX_DEGREE}"));
                    degree = value.parse().ok().filter(is_fit).ok_or_else(rule)?;
                }
            }
        }
        match gamma {
            Gamma::Value(0.0) => return Err(wrong("gamma=0 makes all vectors alike; take a positive one")),
            Gamma::Value(g) if g < 0.0 && name != "sigmoid" => {
                return Err(wrong(format!("gamma={g} is negative; take a positive one")));
            }
            _ => {}
        }
        Ok(match name {
            "linear" => Self::Linear,
            "rbf" => Self::Rbf(gamma),
            "poly" => Self::Poly(degree, gamma, coef0),
            _ => Self::Sigmoid(gamma, coef0),
        })
    }
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shape {
            Shape::Linear => write!(f, "linear"),
            Shape::Rbf { gamma } => write!(f, "rbf:gamma={gamma}"),
            Shape::Poly { degree, gamma, coef0 } => write!(f, "poly:degree={degree},gamma={gamma},coef0={coef0}"),
            Shape::Sigmoid { gamma, coef0 } => write!(f, "sigmoid:gamma={gamma},coef0={coef0}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_kernels() {
        let mut rows = SparseMatrix::new();
        rows.push_row([(0, 1.0), (3, 3.0)]);
        rows.push_row([(1, 2.0)]);
        let on = |text: &str| text.parse::<Specification>().unwrap().on(&rows, 0.0).unwrap();
        assert_eq!(on("linear").shape, Shape::Linear);
        assert_eq!(on("rbf:gamma=0.5").shape, Shape::Rbf { gamma: 0.5 });
        assert_eq!(on("rbf:gamma=auto").shape, Shape::Rbf { gamma: 0.25 });
        // Entries 1, 0, 0, 3, 0, 2, 0, 0: mean 3/4, variance 14/8 - 9/16.
        assert_eq!(on("rbf").shape, Shape::Rbf { gamma: 1.0 / (4.0 * (1.75 - 0.5625)) });
        assert_eq!(on("poly:degree=2,coef0=1,gamma=1").shape, Shape::Poly { degree: 2, gamma: 1.0, coef0: 1.0 });
        assert_eq!(on("sigmoid:gamma=-1").shape, Shape::Sigmoid { gamma: -1.0, coef0: 0.0 });
        for kernel in ["rbf:gamma=0.5", "poly:degree=2,gamma=1,coef0=1", "linear"] {
            assert_eq!(on(kernel).to_string(), kernel);
        }
    }

    #[test]
    fn wrong_words_are_told() {
        for (text, what) in [
            ("rfb", "linear, rbf, poly and sigmoid"),
            ("rbf:gama=1", "no 'gama'"),
            ("rbf:gamma", "NAME=VALUE"),
            ("rbf:gamma=0", "gamma=0"),
            ("rbf:gamma=-1", "negative"),
            ("rbf:gamma=nan", "not a number"),
            ("rbf:gamma=1,gamma=2", "twice"),
            ("poly:degree=2.5", "degree=2.5"),
            ("poly:degree=0", "degree=0"),
            ("linear:gamma=1", "no parameters"),
        ] {
            let error = text.parse::<Specification>().unwrap_err().to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
