//! What a factor graph is made of, and whether it fits the task.

use serde::{Deserialize, Serialize};

use crate::sparse::SparseMatrix;

/// A factor graph's structure and features: one input of the task.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Graph {
    /// By variable: number of labels.
    pub domains: Vec<u32>,
    /// A row for each variable.
    pub features: SparseMatrix,
    /// By template, in the order of the shape's templates.
    pub factors: Vec<Factors>,
}

/// The factors of one template.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Factors {
    /// The variables of each factor, one factor after the other: arity numbers each.
    pub scopes: Vec<u32>,
    /// A row for each factor; None: a factor is a table over its labels.
    pub features: Option<SparseMatrix>,
}

/// A kind of factors, which share weights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template {
    /// What files call it.
    pub name: String,
    /// The number of labels of each variable of its scopes (so its length is the arity).
    pub domains: Vec<u32>,
    /// Columns of its features; None: without features.
    pub features: Option<u32>,
}

/// What graphs of a task are made of.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Shape {
    /// Sizes of domains that occur, ascending. Variables of the same size share their weights.
    pub domains: Vec<u32>,
    /// Columns of the variables' features.
    pub features: u32,
    /// Kinds of factors, ascending by name.
    pub templates: Vec<Template>,
}

impl Shape {
    /// Makes it one of other graphs as well, or says why there is none: as a file with both would have it.
    pub fn join(&mut self, other: &Self) -> Result<(), String> {
        self.domains.extend(&other.domains);
        self.domains.sort_unstable();
        self.domains.dedup();
        self.features = self.features.max(other.features);
        for template in &other.templates {
            match self.templates.binary_search_by(|own| own.name.cmp(&template.name)) {
                Err(place) => self.templates.insert(place, template.clone()),
                Ok(place) => {
                    let own = &mut self.templates[place];
                    if own.domains != template.domains {
                        return Err(own.other_domains(&template.domains));
                    }
                    own.features = match (own.features, template.features) {
                        (Some(a), Some(b)) => Some(a.max(b)),
                        (None, None) => None,
                        _ => {
                            return Err(format!(
                                "template {} has factor_x here and none elsewhere (give a row to every factor of a template, \
                                 or to none)",
                                template.name
                            ));
                        }
                    };
                }
            }
        }
        Ok(())
    }

    /// Does this graph fit? If not: what is wrong, and what to do. Looks at everything: numbers of rows, scopes (variables
    /// that exist, each once, with as many labels as the template's), columns and values of features, sizes of domains.
    ///
    /// A template without factors in this graph may lack features.
    pub fn check(&self, graph: &Graph) -> Result<(), String> {
        let variables = graph.domains.len();
        if variables == 0 {
            return Err("a graph without variables (it needs at least one)".to_owned());
        }
        if variables > u32::MAX as usize {
            return Err(format!("{variables} variables (the most is {})", u32::MAX));
        }
        let mut known = 0;
        for (variable, &domain) in graph.domains.iter().enumerate() {
            // Neighbours are alike, as a rule.
            if domain != known && self.domains.binary_search(&domain).is_err() {
                return Err(format!(
                    "variable {variable} has {domain} labels, but variables of the task have {} (the training data need \
                     such a variable)",
                    listed(&self.domains, " or ")
                ));
            }
            known = domain;
        }
        check_rows(&graph.features, variables, self.features)
            .map_err(|what| format!("features of variables: {what}"))?;
        if graph.factors.len() != self.templates.len() {
            let (of_graph, of_task) = (graph.factors.len(), self.templates.len());
            return Err(format!("{of_graph} lists of factors for {of_task} templates (one for each, empty or not)"));
        }
        self.templates
            .iter()
            .zip(&graph.factors)
            .try_for_each(|(template, factors)| template.check(factors, &graph.domains))
    }

    /// The place of a template.
    pub fn template(&self, name: &str) -> Option<usize> {
        self.templates.binary_search_by(|template| template.name.as_str().cmp(name)).ok()
    }
}

impl Template {
    /// Are these factors over variables of these domains of this kind?
    pub(crate) fn check(&self, factors: &Factors, domains: &[u32]) -> Result<(), String> {
        let (name, arity) = (quoted(&self.name), self.domains.len());
        if arity == 0 {
            return Err(format!("template {name} joins no variables (a factor needs at least one)"));
        }
        if !factors.scopes.len().is_multiple_of(arity) {
            let numbers = factors.scopes.len();
            return Err(format!("the scopes of template {name} are {numbers} numbers (each factor needs {arity})"));
        }
        for (number, scope) in factors.scopes.chunks_exact(arity).enumerate() {
            if let Some(variable) = scope.iter().find(|v| **v as usize >= domains.len()) {
                return Err(format!(
                    "factor {number} of template {name} names variable {variable}, but the last of the graph is {} \
                     (variables are numbered from 0)",
                    domains.len() as i64 - 1
                ));
            }
            if let Some(variable) = twice(scope) {
                return Err(format!(
                    "factor {number} of template {name} names variable {variable} twice (each must be another one)"
                ));
            }
            if !scope.iter().map(|&v| domains[v as usize]).eq(self.domains.iter().copied()) {
                let found: Vec<u32> = scope.iter().map(|&v| domains[v as usize]).collect();
                return Err(format!("factor {number} of {}", self.other_domains(&found)));
            }
        }
        let count = factors.scopes.len() / arity;
        match (self.features, &factors.features) {
            _ if count == 0 && factors.features.as_ref().is_none_or(|rows| rows.rows() == 0) => Ok(()),
            (Some(columns), Some(rows)) => {
                check_rows(rows, count, columns).map_err(|what| format!("features of template {name}: {what}"))
            }
            (None, None) => Ok(()),
            (Some(_), None) => Err(format!("template {name} without features, which it needs (a row for each factor)")),
            (None, Some(_)) => Err(format!("template {name} with features, which it cannot have (leave them out)")),
        }
    }

    /// Factors of this name that join variables of other domains.
    pub(crate) fn other_domains(&self, found: &[u32]) -> String {
        let [found, own] = [found, &self.domains].map(|domains| listed(domains, " x "));
        format!(
            "template {} joins variables of {found} labels, others of it {own} (give kinds of factors different names)",
            quoted(&self.name)
        )
    }
}

/// As many rows as there should be, within the columns, finite.
fn check_rows(matrix: &SparseMatrix, rows: usize, columns: u32) -> Result<(), String> {
    if matrix.rows() != rows {
        return Err(format!("{} rows instead of {rows} (one for each)", matrix.rows()));
    }
    if matrix.columns() > columns {
        return Err(format!("{} columns, but the task has {columns} (leave out the others)", matrix.columns()));
    }
    match matrix.range(0..rows).values().iter().find(|value| !value.is_finite()) {
        Some(value) => Err(format!("the value {value} (values must be finite)")),
        None => Ok(()),
    }
}

/// A variable that a scope names twice.
fn twice(scope: &[u32]) -> Option<u32> {
    /// Up to here looking at all pairs is faster than sorting.
    const SHORT: usize = 16;
    if scope.len() <= SHORT {
        return scope.iter().enumerate().find(|(at, v)| scope[..*at].contains(v)).map(|(_, &v)| v);
    }
    let mut sorted = scope.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

/// A name, fit for a message: short, and without control characters.
pub(crate) fn quoted(name: &str) -> String {
    const LONGEST: usize = 40;
    let mut short: String = name.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if name.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    format!("'{short}'")
}

/// The first few numbers of a list.
pub(crate) fn listed(numbers: &[u32], between: &str) -> String {
    const MOST: usize = 8;
    let mut shown: Vec<String> = numbers.iter().take(MOST).map(ToString::to_string).collect();
    if numbers.len() > MOST {
        shown.push("…".to_owned());
    }
    shown.join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(name: &str, domains: &[u32], features: Option<u32>) -> Template {
        Template { name: name.to_owned(), domains: domains.to_vec(), features }
    }

    fn rows(count: usize, columns: u32) -> SparseMatrix {
        let mut matrix = SparseMatrix::new();
        (0..count).for_each(|_| matrix.push_row((0..columns).map(|j| (j, 1.0))));
        matrix
    }

    fn sample() -> (Shape, Graph) {
        let templates = vec![template("edge", &[2, 2], Some(1)), template("triple", &[2, 3, 2], None)];
        let shape = Shape { domains: vec![2, 3], features: 4, templates };
        let edges = Factors { scopes: vec![0, 1, 3, 0], features: Some(rows(2, 1)) };
        let triples = Factors { scopes: vec![0, 2, 1], features: None };
        (shape, Graph { domains: vec![2, 2, 3, 2], features: rows(4, 4), factors: vec![edges, triples] })
    }

    #[test]
    fn a_good_graph_fits() {
        let (shape, mut graph) = sample();
        assert_eq!(shape.check(&graph), Ok(()));
        graph.factors = vec![Factors::default(); 2];
        assert_eq!(shape.check(&graph), Ok(()));
        assert_eq!((shape.template("triple"), shape.template("square")), (Some(1), None));
    }

    #[test]
    fn what_does_not_fit_is_told() {
        type Change = fn(&mut Graph);
        let cases: [(Change, &str); 16] = [
            (|g| *g = Graph::default(), "without variables"),
            (|g| g.domains[1] = 5, "variable 1 has 5 labels, but variables of the task have 2 or 3"),
            (|g| g.features = rows(3, 4), "features of variables: 3 rows instead of 4"),
            (|g| g.features = rows(4, 5), "5 columns, but the task has 4"),
            (|g| g.features.push_row([(0, 1.0)]), "5 rows instead of 4"),
            (|g| g.factors.truncate(1), "1 lists of factors for 2 templates"),
            (|g| g.factors[0].scopes.truncate(3), "the scopes of template 'edge' are 3 numbers (each factor needs 2)"),
            (
                |g| g.factors[0].scopes[3] = 4,
                "factor 1 of template 'edge' names variable 4, but the last of the graph is 3",
            ),
            (|g| g.factors[0].scopes[2] = 0, "factor 1 of template 'edge' names variable 0 twice"),
            (
                |g| g.factors[0].scopes[3] = 2,
                "factor 1 of template 'edge' joins variables of 2 x 3 labels, others of it 2 x 2",
            ),
            (|g| g.factors[1].scopes.reverse(), ""),
            (|g| g.factors[1].scopes.rotate_left(1), "joins variables of 3 x 2 x 2 labels, others of it 2 x 3 x 2"),
            (|g| g.factors[0].features = None, "template 'edge' without features, which it needs"),
            (|g| g.factors[1].features = Some(rows(1, 0)), "template 'triple' with features, which it cannot have"),
            (|g| g.factors[0].features = Some(rows(1, 1)), "features of template 'edge': 1 rows instead of 2"),
            (
                |g| g.factors[0].features = Some(rows(2, 2)),
                "features of template 'edge': 2 columns, but the task has 1",
            ),
        ];
        for (change, what) in cases {
            let (shape, mut graph) = sample();
            change(&mut graph);
            match shape.check(&graph) {
                Ok(()) => assert_eq!(what, ""),
                Err(told) => assert!(!what.is_empty() && told.contains(what), "{told}"),
            }
        }
        let (shape, mut graph) = sample();
        graph.factors[0].features = Some({
            let mut rows = rows(1, 1);
            rows.push_row([(0, f32::NAN)]);
            rows
        });
        assert_eq!(
            shape.check(&graph).unwrap_err(),
            "features of template 'edge': the value NaN (values must be finite)"
        );
    }

    #[test]
    fn wide_scopes_are_searched_fast_and_told_short() {
        let mut scope: Vec<u32> = (0..200_000).collect();
        assert_eq!(twice(&scope), None);
        scope[199_999] = 7;
        assert_eq!(twice(&scope), Some(7));
        assert_eq!(listed(&scope, " x ").len(), "0 x 1 x 2 x 3 x 4 x 5 x 6 x 7 x …".len());
        assert_eq!(quoted(&"x\n".repeat(100)).chars().count(), 63);
    }
}
