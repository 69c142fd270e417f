//! On which lines tokens stand.

/// Line numbers of tokens, as runs: one for each sentence, as a rule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Lines {
    /// (token, line) where a run of tokens on successive lines starts.
    runs: Vec<(usize, u64)>,
}

impl Lines {
    /// The next token stands on this line.
    pub(super) fn mark(&mut self, token: usize, line: u64) {
        let expected = self.runs.last().map(|&(first, start)| start + (token - first) as u64);
        if expected != Some(line) {
            self.runs.push((token, line));
        }
    }

    /// The lines of text that follows `lines` lines with `tokens` tokens.
    pub(super) fn append(&mut self, other: &Self, tokens: usize, lines: u64) {
        for &(token, line) in &other.runs {
            self.mark(tokens + token, lines + line);
        }
    }

    /// The line of a token.
    pub(super) fn line(&self, token: usize) -> u64 {
        let run = self.runs.partition_point(|&(first, _)| first <= token);
        let (first, line) = self.runs[run - 1];
        line + (token - first) as u64
    }
}
