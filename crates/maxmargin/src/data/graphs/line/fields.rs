//! The fields of a line, each straight into the form in which it is kept.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, de};

use crate::data::blocks::shown;
use crate::sparse::SparseMatrix;

/// The largest number of a feature: the number of columns can still be counted in u32.
const LARGEST_FEATURE: u32 = u32::MAX - 1;

/// A line, not yet checked beyond the types. What is null counts as absent.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) domain: Option<Domain>,
    pub(super) labels: Option<Vec<u32>>,
    pub(super) x: Option<SparseMatrix>,
    pub(super) factors: Vec<(String, Scopes)>,
    pub(super) factor_x: Vec<(String, SparseMatrix)>,
}

/// Numbers of labels.
#[derive(Debug)]
pub(super) enum Domain {
    /// Of all variables.
    Same(u32),
    /// Of each variable.
    Each(Vec<u32>),
}

/// The factors of a template.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    /// `arity` of them for each factor.
    pub(super) variables: Vec<u32>,
    pub(super) arity: usize,
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Whole;
        impl<'de> Visitor<'de> for Whole {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a graph, {\"domain\": ..., \"x\": ..., ...}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                const NAMES: [&str; 5] = ["domain", "labels", "x", "factors", "factor_x"];
                let mut fields = Fields::default();
                let mut seen = [false; NAMES.len()];
                while let Some(name) = map.next_key::<String>()? {
                    let Some(at) = NAMES.iter().position(|known| *known == name) else {
                        let (name, names) = (shown(name.as_bytes()), NAMES.join(", "));
                        return Err(A::Error::custom(format!("field {name} is unknown (the fields are {names})")));
                    };
                    if std::mem::replace(&mut seen[at], true) {
                        return Err(A::Error::custom(format!("field '{name}' appears twice")));
                    }
                    match at {
                        0 => fields.domain = map.next_value()?,
                        1 => fields.labels = map.next_value::<Option<Labels>>()?.map(|labels| labels.0),
                        2 => fields.x = map.next_value::<Option<Rows>>()?.map(|rows| rows.0),
                        3 => fields.factors = map.next_value::<Option<Named<Scopes>>>()?.map_or(Vec::new(), |n| n.0),
                        _ => {
                            let named = map.next_value::<Option<Named<Rows>>>()?.map_or(Vec::new(), |named| named.0);
                            fields.factor_x = named.into_iter().map(|(name, rows)| (name, rows.0)).collect();
                        }
                    }
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Whole)
    }
}

/// A whole number; the text says of what.
#[derive(Clone, Copy)]
struct Number(&'static str);

impl<'de> DeserializeSeed<'de> for Number {
    type Value = u32;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u32, D::Error> {
        deserializer.deserialize_u32(self)
    }
}

impl Visitor<'_> for Number {
    type Value = u32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, a whole number from 0 to {}", self.0, u32::MAX)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<u32, E> {
        u32::try_from(number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }
}

/// A list of whole numbers, which are added; returns how many.
struct Numbers<'v> {
    list: &'static str,
    number: Number,
    found: &'v mut Vec<u32>,
}

impl<'de> DeserializeSeed<'de> for Numbers<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Numbers<'_> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.list)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<usize, A::Error> {
        let before = self.found.len();
        while let Some(number) = list.next_element_seed(self.number)? {
            self.found.push(number);
        }
        Ok(self.found.len() - before)
    }
}

struct Labels(Vec<u32>);

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut found = Vec::new();
        let number = Number("a label");
        Numbers { list: "labels: a list of a label for each variable", number, found: &mut found }
            .deserialize(deserializer)?;
        Ok(Self(found))
    }
}

impl<'de> Deserialize<'de> for Domain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        const NUMBER: Number = Number("the number of a variable's labels");
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Domain;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("domain: the number of labels of all variables, or a list of one for each")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Domain, E> {
                NUMBER.visit_u64(number).map(Domain::Same)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Domain, A::Error> {
                let mut found = Vec::new();
                Numbers { list: "", number: NUMBER, found: &mut found }.visit_seq(list)?;
                Ok(Domain::Each(found))
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}

impl<'de> Deserialize<'de> for Scopes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Scopes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the factors of a template: a list of lists of variables")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Scopes, A::Error> {
                const LIST: &str = "a factor: the list of its variables";
                let mut scopes = Scopes::default();
                let number = Number("the number of a variable");
                let mut is_first = true;
                while let Some(arity) =
                    list.next_element_seed(Numbers { list: LIST, number, found: &mut scopes.variables })?
                {
                    if arity == 0 {
                        return Err(A::Error::custom("a factor without variables (it needs at least one)"));
                    }
                    if !std::mem::take(&mut is_first) && arity != scopes.arity {
                        let before = scopes.arity;
                        return Err(A::Error::custom(format!(
                            "a factor of {arity} variables after one of {before} (give kinds of factors different names)"
                        )));
                    }
                    scopes.arity = arity;
                }
                Ok(scopes)
            }
        }
        deserializer.deserialize_seq(List)
    }
}

/// A map from names, in the order of the text.
struct Named<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map<T>(Vec<(String, T)>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Map<T> {
            type Value = Vec<(String, T)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map by template, {\"TEMPLATE\": [...], ...}")
            }

            fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self::Value, A::Error> {
                while let Some(name) = map.next_key()? {
                    self.0.push((name, map.next_value()?));
                }
                Ok(self.0)
            }
        }
        deserializer.deserialize_map(Map(Vec::new())).map(Self)
    }
}

/// Rows of features.
struct Rows(SparseMatrix);

impl<'de> Deserialize<'de> for Rows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Rows;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of rows of features")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Rows, A::Error> {
                let (mut matrix, mut entries) = (SparseMatrix::new(), Vec::new());
                while list.next_element_seed(Row { matrix: &mut matrix, entries: &mut entries })?.is_some() {
                    matrix.end_row();
                }
                matrix.shrink();
                Ok(Rows(matrix))
            }
        }
        deserializer.deserialize_seq(List)
    }
}

/// A row, which is added without being closed.
struct Row<'m> {
    matrix: &'m mut SparseMatrix,
    /// Room to sort in.
    entries: &'m mut Vec<(u32, f32)>,
}

impl Row<'_> {
    fn push(&mut self, column: u32, value: f32) {
        if value != 0.0 {
            self.matrix.push(column, value);
        } else if column >= self.matrix.columns() {
            // An explicit zero takes no room, but the feature exists.
            self.matrix.set_columns(column + 1);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row of features, [0.5, 0, 1] or {\"0\": 0.5, \"2\": 1}")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut row: A) -> Result<(), A::Error> {
        let mut column = 0;
        while let Some(Value(value)) = row.next_element()? {
            if column > LARGEST_FEATURE {
                return Err(A::Error::custom("too many features in a row"));
            }
            self.push(column, value);
            column += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut row: A) -> Result<(), A::Error> {
        self.entries.clear();
        while let Some(Feature(column)) = row.next_key()? {
            let Value(value) = row.next_value()?;
            self.entries.push((column, value));
        }
        self.entries.sort_unstable_by_key(|entry| entry.0);
        if let Some(pair) = self.entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(A::Error::custom(format!("feature {} appears twice in a row", pair[0].0)));
        }
        let entries = std::mem::take(self.entries);
        for &(column, value) in &entries {
            self.push(column, value);
        }
        *self.entries = entries;
        Ok(())
    }
}

/// A finite value.
struct Value(f32);

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Finite;
        impl Visitor<'_> for Finite {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the value of a feature, a number")
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
                Ok(Value(value as f32))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
                Ok(Value(value as f32))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
                let nearest = value as f32;
                if nearest.is_finite() {
                    return Ok(Value(nearest));
                }
                Err(E::custom("a number is too large (the largest is 3.4e38)"))
            }
        }
        // Asked for f32, the parser rounds once.
        deserializer.deserialize_f32(Finite)
    }
}

/// The number of a feature, as JSON has it in a map.
struct Feature(u32);

impl<'de> Deserialize<'de> for Feature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Digits;
        impl Visitor<'_> for Digits {
            type Value = Feature;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the number of a feature, from 0")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Feature, E> {
                let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
                match text.parse() {
                    Ok(number) if is_number && number <= LARGEST_FEATURE => Ok(Feature(number)),
                    _ => Err(E::custom(format!(
                        "{} is not the number of a feature, from 0 to {LARGEST_FEATURE}",
                        shown(text.as_bytes())
                    ))),
                }
            }
        }
        deserializer.deserialize_str(Digits)
    }
}
