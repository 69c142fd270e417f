//! Some slots of a block with phi in it: an entry of phi meets all of them while its row of w is near.

use crate::sparse::SparseView;

/// Rows of a block that stand together, from one on.
pub(super) struct Rows<'w> {
    pub(super) first: u32,
    pub(super) w: &'w mut [f64],
}

impl Rows<'_> {
    #[inline]
    fn row(&mut self, j: u32, width: usize) -> &mut [f64] {
        &mut self.w[(j - self.first) as usize * width..][..width]
    }
}

/// So many at a time.
const GROUP: usize = 4;

/// `scores[s] = <w, phi in slots[s]>`, in a block of this width at the start of w.
pub(super) fn scores(w: &[f64], width: usize, phi: SparseView<'_>, slots: &[u32], scores: &mut [f64]) {
    let (groups, rest) = slots.as_chunks::<GROUP>();
    let (group_scores, rest_scores) = scores.as_chunks_mut::<GROUP>();
    for (slots, scores) in groups.iter().zip(group_scores) {
        *scores = scores_of(w, width, phi, *slots);
    }
    match *rest {
        [] => {}
        [a] => rest_scores.copy_from_slice(&scores_of(w, width, phi, [a])),
        [a, b] => rest_scores.copy_from_slice(&scores_of(w, width, phi, [a, b])),
        [a, b, c] => rest_scores.copy_from_slice(&scores_of(w, width, phi, [a, b, c])),
        _ => unreachable!("less than a group"),
    }
}

#[inline]
fn scores_of<const N: usize>(w: &[f64], width: usize, phi: SparseView<'_>, slots: [u32; N]) -> [f64; N] {
    let mut sums = [0.0; N];
    for (j, x) in phi.iter() {
        let (row, x) = (&w[j as usize * width..][..width], f64::from(x));
        for (sum, slot) in sums.iter_mut().zip(slots) {
            *sum += x * row[slot as usize];
        }
    }
    sums
}

/// `w += scales[s] phi in slots[s]`
pub(super) fn add(w: &mut Rows<'_>, width: usize, phi: SparseView<'_>, slots: &[u32], scales: &[f64]) {
    let (groups, rest) = slots.as_chunks::<GROUP>();
    let (group_scales, rest_scales) = scales.as_chunks::<GROUP>();
    for (slots, scales) in groups.iter().zip(group_scales) {
        add_to(w, width, phi, *slots, *scales);
    }
    match (rest, rest_scales) {
        (&[a], &[x]) => add_to(w, width, phi, [a], [x]),
        (&[a, b], &[x, y]) => add_to(w, width, phi, [a, b], [x, y]),
        (&[a, b, c], &[x, y, z]) => add_to(w, width, phi, [a, b, c], [x, y, z]),
        _ => {}
    }
}

#[inline]
fn add_to<const N: usize>(w: &mut Rows<'_>, width: usize, phi: SparseView<'_>, slots: [u32; N], scales: [f64; N]) {
    for (j, x) in phi.iter() {
        let (row, x) = (w.row(j, width), f64::from(x));
        for (scale, slot) in scales.iter().zip(slots) {
            row[slot as usize] += scale * x;
        }
    }
}

/// `w += scales[k] phi in slot k`, for all slots.
pub(super) fn add_to_all(w: &mut Rows<'_>, phi: SparseView<'_>, scales: &[f64]) {
    let width = scales.len();
    for (j, x) in phi.iter() {
        let x = f64::from(x);
        for (w, scale) in w.row(j, width).iter_mut().zip(scales) {
            *w += scale * x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_slot_by_slot() {
        const WIDTH: usize = 11;
        let phi = SparseView::new(&[0, 2, 3], &[0.5, -1.0, 3.0]);
        let w: Vec<f64> = (0..4 * WIDTH).map(|i| (i as f64 * 0.7).sin()).collect();
        for count in 0..=WIDTH {
            let slots: Vec<u32> = (0..count as u32).map(|s| s * 3 % WIDTH as u32).collect();
            let scales: Vec<f64> = (0..count).map(|s| 1.0 + s as f64).collect();
            let mut found = vec![f64::NAN; count];
            scores(&w, WIDTH, phi, &slots, &mut found);
            let (mut moved, mut all, mut right) = (w.clone(), w.clone(), w.clone());
            // In two parts of the rows, 0 and 1 with one entry, 2 and 3 with two.
            for (rows, entries) in [(0..2, 0..1), (2..4, 1..3)] {
                let w = &mut moved[rows.start * WIDTH..rows.end * WIDTH];
                let first = rows.start as u32;
                add(&mut Rows { first, w }, WIDTH, phi.entries(entries), &slots, &scales);
            }
            let mut by_slot = [0.0; WIDTH];
            for (&slot, (scale, found)) in slots.iter().zip(scales.iter().zip(found)) {
                let at = |j: u32| j as usize * WIDTH + slot as usize;
                let score: f64 = phi.iter().map(|(j, x)| f64::from(x) * w[at(j)]).sum();
                assert!((score - found).abs() < 1e-12);
                phi.iter().for_each(|(j, x)| right[at(j)] += scale * f64::from(x));
                by_slot[slot as usize] = *scale;
            }
            add_to_all(&mut Rows { first: 0, w: &mut all }, phi, &by_slot);
            assert_eq!(moved, right);
            assert_eq!(all, right);
        }
    }
}
