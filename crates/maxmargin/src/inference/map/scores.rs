//! What is maximised: a factor graph with a score for each label, and a table of scores for each factor.

/// A factor graph and what its labellings score. Kept and filled again by the caller: [`clear`](Self::clear) keeps the
/// memory. All scores are finite: what must not be is given a large negative score.
#[derive(Debug, Default, Clone)]
pub struct Scores {
    /// The scores of all labels: of each variable, one after the other.
    pub(super) unary: Vec<f64>,
    /// Where those of each variable end.
    pub(super) ends: Vec<usize>,
    /// All tables, one after the other.
    pub(super) tables: Vec<f64>,
    table_ends: Vec<usize>,
    /// The variables of each factor, one factor after the other.
    scopes: Vec<u32>,
    scope_ends: Vec<usize>,
    /// The table of each factor.
    table_of: Vec<Table>,
}

/// A table of some [`Scores`], good until they are cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table(u32);

/// Item i of items one after the other, from where each of them ends.
fn part(ends: &[usize], i: usize) -> std::ops::Range<usize> {
    let begin = if i == 0 { 0 } else { ends[i - 1] };
    begin..ends[i]
}

impl Scores {
    /// No variable, no table, no factor; the memory is kept.
    pub fn clear(&mut self) {
        self.unary.clear();
        self.ends.clear();
        self.tables.clear();
        self.table_ends.clear();
        self.scopes.clear();
        self.scope_ends.clear();
        self.table_of.clear();
    }

    /// Adds a variable with so many labels (at least 1) and returns its scores, all zero, to be filled in.
    ///
    /// # Panics
    /// If there is no label.
    pub fn variable(&mut self, domain: u32) -> &mut [f64] {
        assert!(domain > 0, "a variable has at least one label");
        let begin = self.unary.len();
        self.unary.resize(begin + domain as usize, 0.0);
        self.ends.push(self.unary.len());
        &mut self.unary[begin..]
    }

    /// Adds a table of scores, all zero, row by row (the last variable of a scope runs fastest). Factors may share one.
    pub fn table(&mut self, len: usize) -> (Table, &mut [f64]) {
        let begin = self.tables.len();
        self.tables.resize(begin + len, 0.0);
        let table = Table(self.table_ends.len() as u32);
        self.table_ends.push(self.tables.len());
        (table, &mut self.tables[begin..])
    }

    /// Adds a factor: distinct variables (1 or more), and a table as large as the product of their domains.
    ///
    /// # Panics
    /// If it is none.
    pub fn factor(&mut self, scope: &[u32], table: Table) {
        assert!(!scope.is_empty(), "a factor has at least one variable");
        let mut len = 1;
        for (i, &v) in scope.iter().enumerate() {
            assert!(!scope[..i].contains(&v), "the variables of a factor are distinct");
            len *= self.domain(v as usize) as usize;
        }
        let has = part(&self.table_ends, table.0 as usize).len();
        assert_eq!(len, has, "a table has an entry for each labelling of the factor's variables");
        self.scopes.extend_from_slice(scope);
        self.scope_ends.push(self.scopes.len());
        self.table_of.push(table);
    }

    /// Number of variables.
    pub fn variables(&self) -> usize {
        self.ends.len()
    }

    /// Number of factors.
    pub fn factors(&self) -> usize {
        self.scope_ends.len()
    }

    /// Number of labels of variable v.
    pub fn domain(&self, v: usize) -> u32 {
        part(&self.ends, v).len() as u32
    }

    /// The scores of the labels of variable v.
    pub fn unary(&self, v: usize) -> &[f64] {
        &self.unary[part(&self.ends, v)]
    }

    /// The same, to be filled in.
    pub fn unary_mut(&mut self, v: usize) -> &mut [f64] {
        &mut self.unary[part(&self.ends, v)]
    }

    /// The variables of factor f.
    pub fn scope(&self, f: usize) -> &[u32] {
        &self.scopes[part(&self.scope_ends, f)]
    }

    /// The table of factor f.
    pub fn scores(&self, f: usize) -> &[f64] {
        &self.tables[self.table_place(f)]
    }

    /// Where it stands among all tables.
    pub(super) fn table_place(&self, f: usize) -> std::ops::Range<usize> {
        part(&self.table_ends, self.table_of[f].0 as usize)
    }

    /// The score of a labelling.
    pub fn value(&self, labels: &[u32]) -> f64 {
        debug_assert_eq!(labels.len(), self.variables(), "a label for each variable");
        let unary: f64 = labels.iter().enumerate().map(|(v, &label)| self.unary(v)[label as usize]).sum();
        let factors = (0..self.factors()).map(|f| {
            let entry = self.scope(f).iter().fold(0, |entry, &v| {
                let v = v as usize;
                entry * self.domain(v) as usize + labels[v] as usize
            });
            self.scores(f)[entry]
        });
        unary + factors.sum::<f64>()
    }
}
