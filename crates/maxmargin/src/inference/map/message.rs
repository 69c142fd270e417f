//! What a factor says to one of its variables, and the loops over its table.
//!
//! ```text
//! out(y_k) = max over the other variables' labels of  table(y) + sum_{i != k} part_i(y_i)
//! ```
//!
//! Tables stand row by row, the last variable's labels side by side. `keep` is the place k in the scope.

#![expect(clippy::inline_always, reason = "what is not inlined is compiled for the oldest machine only")]

/// The first largest.
#[inline(always)]
pub(super) fn first_best(scores: impl Iterator<Item = f64>) -> (usize, f64) {
    let (mut at, mut best) = (0, f64::NEG_INFINITY);
    for (i, score) in scores.enumerate() {
        if score > best {
            (at, best) = (i, score);
        }
    }
    (at, best)
}

/// The largest.
#[inline(always)]
pub(super) fn largest(scores: &[f64]) -> f64 {
    scores.iter().fold(f64::NEG_INFINITY, |best, &score| if score > best { score } else { best })
}

/// The largest sum of two rows, four at a time: one running maximum would make each wait for the one before it.
#[inline(always)]
fn best_sum(a: &[f64], b: &[f64]) -> f64 {
    let mut best = [f64::NEG_INFINITY; 4];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
    for (a, b) in a.iter().zip(b) {
        for l in 0..4 {
            let sum = a[l] + b[l];
            best[l] = if sum > best[l] { sum } else { best[l] };
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(a, b)| a + b);
    rest.chain(best).fold(f64::NEG_INFINITY, |best, sum| if sum > best { sum } else { best })
}

/// out = max(out, base + row).
#[inline(always)]
fn raise(out: &mut [f64], base: f64, row: &[f64]) {
    for (out, &score) in out.iter_mut().zip(row) {
        let sum = base + score;
        *out = if sum > *out { sum } else { *out };
    }
}

/// The next labels of some variables, of which the last counts fastest; after the last labels the first again.
#[inline(always)]
pub(super) fn count_up<'a>(digits: &mut [u32], part: impl Fn(usize) -> &'a [f64]) {
    for i in (0..digits.len()).rev() {
        digits[i] += 1;
        if (digits[i] as usize) < part(i).len() {
            return;
        }
        digits[i] = 0;
    }
}

/// The message to variable `keep` of a factor of `arity` variables.
#[inline(always)]
pub(super) fn message<'a>(
    table: &[f64],
    (arity, keep): (usize, usize),
    part: impl Fn(usize) -> &'a [f64],
    digits: &mut Vec<u32>,
    out: &mut [f64],
) {
    out.fill(f64::NEG_INFINITY);
    let last = part(arity - 1);
    let rows = table.chunks_exact(last.len());
    match (arity, keep) {
        (2, 1) => rows.zip(part(0)).for_each(|(row, &base)| raise(out, base, row)),
        (2, _) => rows.zip(out).for_each(|(row, out)| *out = best_sum(row, last)),
        _ => {
            digits.clear();
            digits.resize(arity - 1, 0);
            for row in rows {
                let outer = (0..arity - 1).filter(|&i| i != keep);
                let base: f64 = outer.map(|i| part(i)[digits[i] as usize]).sum();
                if keep == arity - 1 {
                    raise(out, base, row);
                } else {
                    let out = &mut out[digits[keep] as usize];
                    *out = out.max(base + best_sum(row, last));
                }
                count_up(digits, &part);
            }
        }
    }
}

/// The same where the labels of some variables are known: parts of these do not count, and no label but theirs.
pub(super) fn message_given<'a>(
    table: &[f64],
    (arity, keep): (usize, usize),
    part: impl Fn(usize) -> &'a [f64],
    known: impl Fn(usize) -> Option<u32>,
    digits: &mut Vec<u32>,
    out: &mut [f64],
) {
    out.fill(f64::NEG_INFINITY);
    let inner = arity - 1;
    let last = part(inner);
    digits.clear();
    digits.resize(inner, 0);
    for row in table.chunks_exact(last.len()) {
        if (0..inner).all(|i| i == keep || known(i).is_none_or(|label| label == digits[i])) {
            let outer = (0..inner).filter(|&i| i != keep && known(i).is_none());
            let base: f64 = outer.map(|i| part(i)[digits[i] as usize]).sum();
            if keep == inner {
                raise(out, base, row);
            } else {
                let best = known(inner).map_or_else(|| best_sum(row, last), |label| row[label as usize]);
                let out = &mut out[digits[keep] as usize];
                *out = out.max(base + best);
            }
        }
        count_up(digits, &part);
    }
}

/// out += the entries of a table for each label of variable `keep`, those of the other variables being known.
#[inline(always)]
pub(super) fn add_entries(
    table: &[f64],
    (arity, keep): (usize, usize),
    domain: impl Fn(usize) -> usize,
    known: impl Fn(usize) -> u32,
    out: &mut [f64],
) {
    let (mut at, mut stride, mut step) = (0, 1, 1);
    for i in (0..arity).rev() {
        if i == keep {
            step = stride;
        } else {
            at += stride * known(i) as usize;
        }
        stride *= domain(i);
    }
    if step == 1 {
        out.iter_mut().zip(&table[at..]).for_each(|(out, score)| *out += score);
    } else {
        out.iter_mut().zip(table[at..].iter().step_by(step)).for_each(|(out, score)| *out += score);
    }
}

/// The first best labels of all variables, that of variable `keep` being `label`, of table and parts (of all but it).
pub(super) fn best_given<'a>(
    table: &[f64],
    (keep, label): (usize, u32),
    part: impl Fn(usize) -> &'a [f64],
    digits: &mut [u32],
    best: &mut Vec<u32>,
) {
    digits.fill(0);
    best.clear();
    best.resize(digits.len(), 0);
    let mut most = f64::NEG_INFINITY;
    for &score in table {
        if digits[keep] == label {
            let others = digits.iter().enumerate().filter(|(i, _)| *i != keep);
            let sum = score + others.map(|(i, &y)| part(i)[y as usize]).sum::<f64>();
            if sum > most {
                most = sum;
                best.copy_from_slice(digits);
            }
        }
        count_up(digits, &part);
    }
}
