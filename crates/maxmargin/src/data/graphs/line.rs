//! One line of JSON. Errors are the text of the message; the caller knows file and line.

mod fields;

use crate::data::blocks::shown;
use crate::data::graphs::line::fields::{Domain, Fields, Scopes};
use crate::data::json_lines::{Sketch, explained};
use crate::data::svmlight::LabelRule;
use crate::sparse::SparseMatrix;
use crate::tasks::factor_graph::{Factors, Template};

const SKETCH: Sketch = Sketch { noun: "graph", fields: "{\"domain\": ..., \"x\": ..., ...}" };

/// A graph that is right in itself; whether it goes with others is not known yet.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) domains: Vec<u32>,
    /// Empty where there are none.
    pub(super) labels: Vec<u32>,
    pub(super) features: SparseMatrix,
    /// By name; each template with the columns that it has here. Templates without factors are left out.
    pub(super) factors: Vec<(Template, Factors)>,
}

impl Line {
    pub(super) fn parse(text: &[u8], rule: LabelRule) -> Result<Self, String> {
        let mut fields: Fields = serde_json::from_slice(text).map_err(|error| explained(&error, text, &SKETCH))?;
        if fields.labels.is_none() && rule == LabelRule::Required {
            return Err("labels missing (training and evaluation need one for each variable)".to_owned());
        }
        let domains = domains(&mut fields)?;
        let labels = checked_labels(fields.labels, &domains)?;
        let x = fields.x.unwrap_or_else(|| empty_rows(domains.len()));
        let features = checked_rows(x, domains.len(), "x", "variables")?;
        let factors = factors(fields.factors, fields.factor_x, &domains)?;
        Ok(Self { domains, labels, features, factors })
    }
}

fn empty_rows(count: usize) -> SparseMatrix {
    let mut rows = SparseMatrix::new();
    rows.reserve(count, 0);
    (0..count).for_each(|_| rows.end_row());
    rows
}

fn domains(fields: &mut Fields) -> Result<Vec<u32>, String> {
    let domains = match fields.domain.take() {
        None => {
            return Err("domain missing (the number of labels of the variables, or a list of one for each)".to_owned());
        }
        Some(Domain::Each(domains)) => domains,
        Some(Domain::Same(domain)) => {
            let (rows, labels) = (fields.x.as_ref().map(SparseMatrix::rows), fields.labels.as_ref().map(Vec::len));
            if let (Some(rows), Some(labels)) = (rows, labels)
                && rows != labels
            {
                return Err(format!("x has {rows} rows, but there are {labels} labels (a variable needs one of each)"));
            }
            let variables = rows.or(labels).ok_or(
                "how many variables? (without labels and x, domain must be a list with a number for each variable)",
            )?;
            vec![domain; variables]
        }
    };
    if domains.is_empty() {
        return Err("a graph without variables (it needs at least one; leave it out)".to_owned());
    }
    if domains.len() > u32::MAX as usize {
        return Err(format!("{} variables (the most is {})", domains.len(), u32::MAX));
    }
    match domains.iter().position(|&domain| domain == 0) {
        Some(variable) => Err(format!("the domain of variable {variable} has 0 labels (it needs at least one)")),
        None => Ok(domains),
    }
}

fn checked_labels(labels: Option<Vec<u32>>, domains: &[u32]) -> Result<Vec<u32>, String> {
    let Some(labels) = labels else { return Ok(Vec::new()) };
    if labels.len() != domains.len() {
        return Err(format!("{} labels for {} variables (one is needed for each)", labels.len(), domains.len()));
    }
    match labels.iter().zip(domains).position(|(label, domain)| label >= domain) {
        Some(variable) => Err(format!(
            "label {} of variable {variable}, whose domain has {} labels (labels are numbered from 0)",
            labels[variable], domains[variable]
        )),
        None => Ok(labels),
    }
}

fn checked_rows(rows: SparseMatrix, expected: usize, name: &str, of: &str) -> Result<SparseMatrix, String> {
    if rows.rows() == expected {
        return Ok(rows);
    }
    Err(format!("{name} has {} rows for {expected} {of} (one is needed for each)", rows.rows()))
}

/// Goes through both by name, in the order of names.
fn factors(
    scopes: Vec<(String, Scopes)>,
    features: Vec<(String, SparseMatrix)>,
    domains: &[u32],
) -> Result<Vec<(Template, Factors)>, String> {
    let scopes = sorted(scopes, "factors")?;
    let mut features = sorted(features, "factor_x")?.into_iter().peekable();
    let strange = |name: &str, rows: &SparseMatrix| match rows.rows() {
        0 => Ok(()),
        n => Err(format!("factor_x has {n} rows for template {}, of which factors has none", shown(name.as_bytes()))),
    };
    let mut found = Vec::with_capacity(scopes.len());
    for (name, scopes) in scopes {
        while let Some((before, rows)) = features.next_if(|next| next.0 < name) {
            strange(&before, &rows)?;
        }
        let rows = features.next_if(|next| next.0 == name).map(|next| next.1);
        let Some(first) = scopes.variables.get(..scopes.arity).filter(|first| !first.is_empty()) else {
            rows.map_or(Ok(()), |rows| strange(&name, &rows))?;
            continue;
        };
        let count = scopes.variables.len() / scopes.arity;
        let rows = match rows {
            Some(rows) => {
                let whose = format!("factor_x of template {}", shown(name.as_bytes()));
                Some(checked_rows(rows, count, &whose, "factors")?)
            }
            None => None,
        };
        // A variable that does not exist is told by the check.
        let of_first = first.iter().map(|&v| domains.get(v as usize).copied().unwrap_or(0)).collect();
        let template = Template { name, domains: of_first, features: rows.as_ref().map(SparseMatrix::columns) };
        let factors = Factors { scopes: scopes.variables, features: rows };
        template.check(&factors, domains)?;
        found.push((template, factors));
    }
    features.try_for_each(|(name, rows)| strange(&name, &rows))?;
    Ok(found)
}

/// By name; each name once, and fit to be shown.
fn sorted<T>(mut named: Vec<(String, T)>, field: &str) -> Result<Vec<(String, T)>, String> {
    named.sort_by(|a, b| a.0.cmp(&b.0));
    if let Some(pair) = named.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(format!(
            "{field} has template {} twice (put all of it into one list)",
            shown(pair[0].0.as_bytes())
        ));
    }
    match named.iter().find(|(name, _)| name.chars().any(char::is_control)) {
        Some((name, _)) => {
            Err(format!("the name of template {} contains a control character (rename it)", shown(name.as_bytes())))
        }
        None => Ok(named),
    }
}
