//! Runs of lines, parsed apart from each other and put together again.

use std::collections::{BTreeSet, HashMap};

use crate::data::blocks::shown;
use crate::data::graphs::Graphs;
use crate::data::graphs::line::Line;
use crate::data::json_lines::Piece;
use crate::data::svmlight::LabelRule;
use crate::sparse::SparseMatrix;
use crate::tasks::factor_graph::{Factors, Graph, Shape, Template};

/// A graph of a known shape, and its labels.
pub(super) fn fitted(text: &[u8], shape: &Shape, rule: LabelRule) -> Result<(Graph, Vec<u32>), String> {
    let line = Line::parse(text, rule)?;
    let empty = |template: &Template| Factors { scopes: Vec::new(), features: rows_of_none(template.features) };
    let mut graph = Graph {
        domains: line.domains,
        features: below(line.features, shape.features),
        factors: shape.templates.iter().map(empty).collect(),
    };
    for (template, mut factors) in line.factors {
        let Some(at) = shape.template(&template.name) else {
            let names: Vec<String> = shape.templates.iter().take(8).map(|t| shown(t.name.as_bytes())).collect();
            let known = if names.is_empty() { "no templates".to_owned() } else { names.join(", ") };
            let name = shown(template.name.as_bytes());
            return Err(format!("template {name} is unknown: the training data have {known} (leave the others out)"));
        };
        factors.features = match (factors.features, shape.templates[at].features) {
            (Some(rows), Some(columns)) => Some(below(rows, columns)),
            // The check says what is wrong.
            (features, _) => features,
        };
        graph.factors[at] = factors;
    }
    shape.check(&graph)?;
    Ok((graph, line.labels))
}

/// The features of a template without factors.
fn rows_of_none(columns: Option<u32>) -> Option<SparseMatrix> {
    columns.map(|columns| below(SparseMatrix::new(), columns))
}

/// The matrix with exactly that many columns.
fn below(mut matrix: SparseMatrix, columns: u32) -> SparseMatrix {
    if matrix.columns() > columns {
        let mut narrow = SparseMatrix::new();
        narrow.reserve(matrix.rows(), 0);
        (0..matrix.rows()).for_each(|i| narrow.push_row(matrix.row(i).below(columns).iter()));
        matrix = narrow;
    }
    matrix.set_columns(columns);
    matrix
}

/// The pieces of a training file so far, and what its graphs are made of.
#[derive(Debug, Default)]
pub(super) struct Learned {
    graphs: Graphs,
    /// By graph: the numbers of its templates, in the order of their first appearance, and its factors of them.
    factors: Vec<Vec<(u32, Factors)>>,
    /// By name.
    numbers: HashMap<String, u32>,
    /// With the line on which each appeared first.
    templates: Vec<(Template, u64)>,
    domains: BTreeSet<u32>,
    features: u32,
    lines: u64,
}

impl Learned {
    /// No graphs so far?
    pub(super) fn is_empty(&self) -> bool {
        self.graphs.is_empty()
    }

    /// Number of lines so far.
    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    /// Adds the next piece, or says on which line of the whole it is wrong, and why.
    pub(super) fn append(&mut self, piece: Piece<Line>) -> Result<(), (u64, String)> {
        for (line, example) in piece.examples {
            let line = self.lines + line;
            self.add(line, example).map_err(|what| (line, what))?;
        }
        self.lines += piece.lines;
        piece.error.map_or(Ok(()), |what| Err((self.lines, what)))
    }

    fn add(&mut self, line: u64, example: Line) -> Result<(), String> {
        let mut last = 0;
        for &domain in &example.domains {
            if domain != last {
                self.domains.insert(domain);
            }
            last = domain;
        }
        self.features = self.features.max(example.features.columns());
        let mut factors = Vec::with_capacity(example.factors.len());
        for (template, of_template) in example.factors {
            factors.push((self.number(template, line)?, of_template));
        }
        self.factors.push(factors);
        let graph = Graph { domains: example.domains, features: example.features, factors: Vec::new() };
        self.graphs.push(line, (graph, example.labels));
        Ok(())
    }

    /// The number of a template, which must be as it was before.
    fn number(&mut self, template: Template, line: u64) -> Result<u32, String> {
        let Some(&number) = self.numbers.get(&template.name) else {
            let number = self.templates.len() as u32;
            self.numbers.insert(template.name.clone(), number);
            self.templates.push((template, line));
            return Ok(number);
        };
        let (known, first) = &mut self.templates[number as usize];
        if known.domains != template.domains {
            return Err(format!("{}; the others are on line {first}", known.other_domains(&template.domains)));
        }
        known.features = match (known.features, template.features) {
            (Some(known), Some(new)) => Some(known.max(new)),
            (None, None) => None,
            (known, _) => {
                let (here, there) = if known.is_some() { ("no", "one") } else { ("a", "none") };
                let name = shown(template.name.as_bytes());
                return Err(format!(
                    "template {name} has {here} factor_x, but {there} on line {first} (give a row to every factor of a \
                     template, or to none)"
                ));
            }
        };
        Ok(number)
    }

    /// The graphs, and their shape.
    pub(super) fn finish(self) -> Result<(Graphs, Shape), String> {
        let (mut graphs, templates) = (self.graphs, self.templates);
        check_templates(&self.factors, templates.len())?;
        let mut order: Vec<usize> = (0..templates.len()).collect();
        order.sort_unstable_by(|&a, &b| templates[a].0.name.cmp(&templates[b].0.name));
        let mut place = vec![0; order.len()];
        (0..).zip(&order).for_each(|(at, &number)| place[number] = at);
        let mut sorted: Vec<Option<Template>> = templates.into_iter().map(|(template, _)| Some(template)).collect();
        let shape = Shape {
            domains: self.domains.into_iter().collect(),
            features: self.features,
            templates: order.into_iter().filter_map(|number| sorted[number].take()).collect(),
        };
        for (graph, factors) in graphs.graphs.iter_mut().zip(self.factors) {
            graph.features.set_columns(shape.features);
            let empty = |template: &Template| Factors { scopes: Vec::new(), features: rows_of_none(template.features) };
            graph.factors = shape.templates.iter().map(empty).collect();
            for (number, mut of_template) in factors {
                let at: usize = place[number as usize];
                of_template.features = of_template.features.map(|rows| below(rows, rows_columns(&shape.templates[at])));
                graph.factors[at] = of_template;
            }
            debug_assert_eq!(shape.check(graph), Ok(()));
        }
        Ok((graphs, shape))
    }
}

fn rows_columns(template: &Template) -> u32 {
    template.features.unwrap_or(0)
}

/// Each graph has a place for each template. Where hardly any is taken, a small file would take a lot of memory, and something
/// is wrong with it.
fn check_templates(factors: &[Vec<(u32, Factors)>], templates: usize) -> Result<(), String> {
    const FREE: usize = 1 << 20;
    const SHARE: usize = 64;
    let taken: usize = factors.iter().map(Vec::len).sum();
    if factors.len().saturating_mul(templates) <= FREE.saturating_add(SHARE * taken) {
        return Ok(());
    }
    Err(format!(
        "{templates} templates, of which a graph has {} on average (a template is a kind of factors, which share their weights; \
         a name for each factor is too much)",
        taken / factors.len()
    ))
}
