//! Many vectors as columns: the kernel's values of a sparse row with all of them.
//!
//! Columns stand in tiles of 128, feature by feature: sums stay in registers while a row's entries are worked off, each
//! multiplied with the values of its feature. That costs a row's nonzeros alone, and nearly what a product of dense
//! matrices costs for each of them. Very sparse columns are kept as lists by feature instead, and only entries that meet are
//! multiplied.
//!
//! Either way a product is summed in the order of the features, fused; terms that are 0 change nothing. So it has the same
//! bits in every place of every layout, and `<a, b>` those of `<b, a>`.

#![expect(clippy::inline_always, reason = "what is not inlined is compiled for the oldest machine only")]

use std::ops::Range;
use std::sync::Arc;

use pulp::{Arch, Simd, WithSimd};

use super::function::{Extent, Function, MOST_ERROR};
use super::real::{Real, TILE};
use super::{Kernel, Shape, Standard, distance2};
use crate::sparse::{SparseMatrix, SparseView};

/// Registers that hold sums: as many as the machine needs to be busy, and half of what it has.
const SUMS: usize = 8;
/// Rows that have all features and go together.
const TOGETHER: usize = 3;
/// Columns that are at least this full are kept in tiles, one number in so many.
const SPARSEST: usize = 32;
/// Bytes of tiles that stay near while many rows pass.
const NEAR: usize = 256 << 10;
/// Most columns of a block of tiles.
const MOST_IN_TILES: usize = 16 * TILE;
/// Fewest and most columns of a block of lists: entries are searched for in each block.
const IN_LISTS: (usize, usize) = (512, 4096);
/// Rows that pass a tile while it is near: their values are to be near too.
pub(super) const ROWS: usize = 16;
/// Where columns are few, blocks are small, so that there are so many for threads to share.
const SHARES: usize = 32;

/// Vectors to be compared with rows, in blocks.
#[derive(Debug)]
pub(super) struct Panels<R> {
    len: usize,
    /// Columns of each block but the last.
    block: usize,
    layout: Layout<R>,
    /// Corrects values that products do not give exactly enough; None where none can be that far off.
    near: Option<Near>,
}

#[derive(Debug)]
enum Layout<R> {
    /// The kernel is a function of products and norms.
    Products { function: Function<R>, norms: Vec<R>, columns: Products<R> },
    /// Any kernel, asked for one value after the other.
    Pairs { kernel: Arc<dyn Kernel>, vectors: Arc<SparseMatrix> },
}

#[derive(Debug)]
enum Products<R> {
    /// `lines[tile * features + feature]`
    Tiles { features: usize, lines: Vec<Line<R>> },
    /// By block.
    Lists(Vec<Lists>),
}

/// The values of one feature in the columns of a tile.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line<R>([R; TILE]);

/// The entries of a block's columns, by feature.
#[derive(Debug)]
struct Lists {
    /// Features that occur, ascending.
    features: Vec<u32>,
    /// Where each one's entries start, and at last where they end.
    starts: Vec<u32>,
    columns: Vec<u16>,
    values: Vec<f32>,
}

/// A row, and where its values go.
#[derive(Debug)]
pub(super) struct Row<'r, R> {
    vector: SparseView<'r>,
    norm: R,
    /// One for each column of the block.
    pub(super) values: &'r mut [R],
}

impl<'r, R> Row<'r, R> {
    /// A row for a block of so many columns: of `values` the first are taken.
    pub(super) fn new(vector: SparseView<'r>, norm: R, values: &'r mut [R], columns: usize) -> Self {
        Self { vector, norm, values: &mut values[..columns] }
    }
}

impl<R: Real> Panels<R> {
    /// Columns for a standard kernel.
    pub(super) fn new(standard: Standard, vectors: &[SparseView<'_>]) -> Self {
        Self::with(standard, vectors, Near::new::<R>(standard, vectors))
    }

    /// Some of these columns, whose values have the same bits.
    pub(super) fn of_some(&self, standard: Standard, vectors: &[SparseView<'_>]) -> Self {
        let near = self.near.as_ref().map(|near| Near { vectors: copied(vectors), ..*near });
        Self::with(standard, vectors, near)
    }

    fn with(standard: Standard, vectors: &[SparseView<'_>], near: Option<Near>) -> Self {
        let len = vectors.len();
        let last = |v: &SparseView<'_>| v.indices().last().map_or(0, |&j| j as usize + 1);
        let features = vectors.iter().map(last).max().unwrap_or(0);
        let nonzeros: usize = vectors.iter().map(SparseView::len).sum();
        let (block, columns);
        if features.saturating_mul(len) <= SPARSEST * nonzeros {
            block = (NEAR / (features * size_of::<R>()).max(1)).min(len.div_ceil(SHARES)).min(MOST_IN_TILES);
            let mut lines = vec![Line([R::ZERO; TILE]); len.div_ceil(TILE) * features];
            for (tile, lines) in vectors.chunks(TILE).zip(lines.chunks_exact_mut(features.max(1))) {
                for (c, vector) in tile.iter().enumerate() {
                    vector.iter().for_each(|(j, x)| lines[j as usize].0[c] = R::of_value(x));
                }
            }
            columns = Products::Tiles { features, lines };
        } else {
            block = len.div_ceil(SHARES).clamp(IN_LISTS.0, IN_LISTS.1);
            columns = Products::Lists(vectors.chunks(block.next_multiple_of(TILE)).map(Lists::new).collect());
        }
        let norms: Vec<R> = vectors.iter().map(|&v| product(v, v)).collect();
        let block = block.max(1).next_multiple_of(TILE);
        Self { len, block, layout: Layout::Products { function: Function::new(standard), norms, columns }, near }
    }

    /// Columns for a kernel that is known by its values alone.
    pub(super) fn of_pairs(kernel: Arc<dyn Kernel>, vectors: Arc<SparseMatrix>) -> Self {
        let len = vectors.rows();
        let block = len.div_ceil(SHARES).clamp(1, MOST_IN_TILES).next_multiple_of(TILE);
        Self { len, block, layout: Layout::Pairs { kernel, vectors }, near: None }
    }

    /// The columns of each block.
    pub(super) fn blocks(&self) -> impl ExactSizeIterator<Item = Range<usize>> + use<R> {
        let (len, block) = (self.len, self.block);
        (0..len.div_ceil(block)).map(move |b| b * block..len.min((b + 1) * block))
    }

    /// Does the kernel follow from products, so that many values together are faster than one by one?
    pub(super) fn are_products(&self) -> bool {
        matches!(self.layout, Layout::Products { .. })
    }

    /// A row's `<a, a>`, which its values follow from. Any number where no product is taken.
    pub(super) fn norm(&self, row: SparseView<'_>) -> R {
        match self.layout {
            Layout::Products { .. } => product(row, row),
            Layout::Pairs { .. } => R::ZERO,
        }
    }

    /// The norm of column `at`.
    pub(super) fn norm_of(&self, at: usize) -> R {
        match &self.layout {
            Layout::Products { norms, .. } => norms[at],
            Layout::Pairs { .. } => R::ZERO,
        }
    }

    /// The values of some rows with the columns of a block. Each tile passes all rows while it is near.
    pub(super) fn values(&self, columns: Range<usize>, rows: &mut [Row<'_, R>]) {
        debug_assert!(columns.start.is_multiple_of(self.block) && columns.len() <= self.block);
        debug_assert!(rows.iter().all(|row| row.values.len() == columns.len()));
        // Below, features are left out that no column has.
        let whole: Vec<SparseView<'_>> = match self.near {
            Some(_) => rows.iter().map(|row| row.vector).collect(),
            None => Vec::new(),
        };
        let all = columns.clone();
        match &self.layout {
            Layout::Products { function, norms, columns: Products::Tiles { features, lines } } => {
                let lines = &lines[columns.start / TILE * features..];
                // Features that no column has add nothing.
                let end = u32::try_from(*features).unwrap_or(u32::MAX);
                for row in rows.iter_mut() {
                    row.vector = row.vector.below(end);
                }
                let features = *features;
                Arch::new().dispatch(InTiles { function, norms: &norms[columns], lines, features, rows });
            }
            Layout::Products { function, norms, columns: Products::Lists(lists) } => {
                let lists = &lists[columns.start / self.block];
                Arch::new().dispatch(InLists { function, norms: &norms[columns], lists, rows });
            }
            Layout::Pairs { kernel, vectors } => {
                for row in rows.iter_mut() {
                    for (value, j) in row.values.iter_mut().zip(columns.clone()) {
                        *value = R::new(kernel.value(row.vector, vectors.row(j)));
                    }
                }
            }
        }
        if let Some(near) = &self.near {
            for (row, vector) in rows.iter_mut().zip(whole) {
                for (value, j) in row.values.iter_mut().zip(all.clone()) {
                    let norms = row.norm.f64() + self.norm_of(j).f64();
                    near.correct(vector, near.vectors.row(j), norms, value);
                }
            }
        }
    }

    /// Hands on `(row, first column, values)` for all rows, which come with their norms, and all columns, those of a row in
    /// order.
    pub(super) fn each(&self, rows: &[(SparseView<'_>, R)], mut visit: impl FnMut(usize, usize, &[R])) {
        let largest = self.block.min(self.len);
        let mut values = vec![R::ZERO; largest * rows.len().min(ROWS)];
        for columns in self.blocks() {
            for (batch, rows) in rows.chunks(ROWS).enumerate() {
                let values = values.chunks_exact_mut(largest);
                let row = |(&(vector, norm), values): (&(_, _), _)| Row::new(vector, norm, values, columns.len());
                let mut rows: Vec<Row<'_, R>> = rows.iter().zip(values).map(row).collect();
                self.values(columns.clone(), &mut rows);
                rows.iter().enumerate().for_each(|(i, row)| visit(batch * ROWS + i, columns.start, row.values));
            }
        }
    }

    /// `k(a, b)`, with the bits that [`values`](Self::values) has for a row a and the column b, or the other way round.
    pub(super) fn value(&self, a: SparseView<'_>, b: SparseView<'_>) -> R {
        match &self.layout {
            Layout::Products { function, .. } => {
                let mut value = Arch::new().dispatch(OfPair { function, a, b });
                if let Some(near) = &self.near {
                    let norms = product::<R>(a, a).f64() + product::<R>(b, b).f64();
                    near.correct(a, b, norms, &mut value);
                }
                value
            }
            Layout::Pairs { kernel, .. } => R::new(kernel.value(a, b)),
        }
    }
}

/// Values of the rbf kernel in double precision between vectors that are near to each other beside their lengths: from
/// products, `|a|^2 + |b|^2 - 2 <a, b>` loses the digits of the distance. There the distance is summed by features.
#[derive(Debug)]
struct Near {
    gamma: f64,
    constant: f64,
    /// Bound of the rounding error of a distance from products, as a share of `|a|^2 + |b|^2`.
    unit: f64,
    vectors: SparseMatrix,
}

impl Near {
    /// None where values from products are all within [`MOST_ERROR`] of the kernel, or not in double precision.
    fn new<R: Real>(standard: Standard, vectors: &[SparseView<'_>]) -> Option<Self> {
        let Shape::Rbf { gamma } = standard.shape else { return None };
        let extent = Extent::of(vectors.iter().copied());
        let unit = extent.unit_of_products();
        if !R::IS_DOUBLE || 2.0 * gamma * extent.largest() * unit <= MOST_ERROR {
            return None;
        }
        Some(Self { gamma, constant: standard.constant, unit, vectors: copied(vectors) })
    }

    /// Computes the value of a and b from their difference, unless it is within [`MOST_ERROR`] of the kernel. `norms`: `|a|^2 + |b|^2`.
    fn correct<R: Real>(&self, a: SparseView<'_>, b: SparseView<'_>, norms: f64, value: &mut R) {
        /// exp of less than minus this is below 1e-30.
        const FAR: f64 = 70.0;
        let error = self.gamma * norms * self.unit;
        if error <= MOST_ERROR {
            return;
        }
        let found = value.f64() - self.constant;
        // The value is exp(-t) with t off by at most `error`.
        let is_fine = error < 0.5 && 2.0 * found.max(0.0) * error <= MOST_ERROR;
        let is_far = found <= 0.0 && error < 708.0 - FAR;
        if !(is_fine || is_far) {
            *value = R::new((self.gamma * distance2(a, b)).exp_minus() + self.constant);
        }
    }
}

/// A matrix with these vectors as rows.
fn copied(vectors: &[SparseView<'_>]) -> SparseMatrix {
    let mut copy = SparseMatrix::new();
    for vector in vectors {
        copy.push_row(vector.iter());
    }
    copy
}

impl Lists {
    fn new(vectors: &[SparseView<'_>]) -> Self {
        let mut entries: Vec<(u32, u16, f32)> = Vec::with_capacity(vectors.iter().map(SparseView::len).sum());
        for (c, vector) in vectors.iter().enumerate() {
            entries.extend(vector.iter().map(|(j, x)| (j, c as u16, x)));
        }
        entries.sort_unstable_by_key(|&(j, c, _)| (j, c));
        let (mut features, mut starts) = (Vec::new(), Vec::new());
        for (at, &(j, ..)) in entries.iter().enumerate() {
            if features.last() != Some(&j) {
                features.push(j);
                starts.push(at as u32);
            }
        }
        starts.push(entries.len() as u32);
        let columns = entries.iter().map(|&(_, c, _)| c).collect();
        Self { features, starts, columns, values: entries.iter().map(|&(.., x)| x).collect() }
    }
}

/// Rows against a block of tiles, in the widest vectors that the machine has.
struct InTiles<'p, 'r, R> {
    function: &'p Function<R>,
    norms: &'p [R],
    lines: &'p [Line<R>],
    features: usize,
    rows: &'p mut [Row<'r, R>],
}

impl<R: Real> WithSimd for InTiles<'_, '_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { function, norms, lines, features, rows } = self;
        for start in (0..norms.len()).step_by(TILE) {
            let lines = &lines[start / TILE * features..][..features];
            for rows in rows.chunks_mut(TOGETHER) {
                let is_full = |row: &Row<'_, R>| row.vector.len() == features && row.values.len() >= start + TILE;
                if let Some(rows) = rows.first_chunk_mut().filter(|rows| rows.iter().all(is_full)) {
                    products_together(simd, lines, start, rows);
                    continue;
                }
                for row in rows {
                    let values = &mut row.values[start..];
                    if let Some(values) = values.first_chunk_mut() {
                        products(simd, lines, row.vector, values);
                    } else {
                        let mut sums = [R::ZERO; TILE];
                        products(simd, lines, row.vector, &mut sums);
                        values.copy_from_slice(&sums[..values.len()]);
                    }
                }
            }
        }
        // Not tile by tile: a longer loop keeps the machine busier than many short ones.
        for row in rows {
            function.apply(row.norm, norms, row.values);
        }
    }
}

/// The inner products of a row with the columns of a tile.
#[inline(always)]
fn products<R: Real, S: Simd>(simd: S, lines: &[Line<R>], row: SparseView<'_>, products: &mut [R; TILE]) {
    for (part, products) in R::lanes_mut::<S>(products).as_chunks_mut::<SUMS>().0.iter_mut().enumerate() {
        let mut sums = [R::splat(simd, R::ZERO); SUMS];
        for (j, x) in row.iter() {
            let line = &R::lanes::<S>(&lines[j as usize].0).as_chunks::<SUMS>().0[part];
            let x = R::splat(simd, R::of_value(x));
            for (sum, &y) in sums.iter_mut().zip(line) {
                *sum = R::fused_lanes(simd, x, y, *sum);
            }
        }
        *products = sums;
    }
}

/// The same of rows that have all features: each line is read once for all of them.
#[inline(always)]
fn products_together<R: Real, S: Simd>(simd: S, lines: &[Line<R>], start: usize, rows: &mut [Row<'_, R>; TOGETHER]) {
    /// Registers of each row.
    const OWN: usize = 4;
    let values = rows.each_ref().map(|row| &row.vector.values()[..lines.len()]);
    for part in 0..R::lanes::<S>(&[R::ZERO; TILE]).len() / OWN {
        let mut sums = [[R::splat(simd, R::ZERO); OWN]; TOGETHER];
        for (j, line) in lines.iter().enumerate() {
            let line = &R::lanes::<S>(&line.0).as_chunks::<OWN>().0[part];
            for (sums, values) in sums.iter_mut().zip(values) {
                let x = R::splat(simd, R::of_value(values[j]));
                for (sum, &y) in sums.iter_mut().zip(line) {
                    *sum = R::fused_lanes(simd, x, y, *sum);
                }
            }
        }
        for (row, sums) in rows.iter_mut().zip(sums) {
            let tile = row.values[start..].first_chunk_mut().expect("a whole tile");
            R::lanes_mut::<S>(tile).as_chunks_mut::<OWN>().0[part] = sums;
        }
    }
}

/// Rows against a block of lists.
struct InLists<'p, 'r, R> {
    function: &'p Function<R>,
    norms: &'p [R],
    lists: &'p Lists,
    rows: &'p mut [Row<'r, R>],
}

impl<R: Real> WithSimd for InLists<'_, '_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { function, norms, lists, rows } = self;
        for Row { vector, norm, values } in rows {
            values.fill(R::ZERO);
            let mut at = 0;
            for (j, x) in vector.iter() {
                at += lists.features[at..].partition_point(|&feature| feature < j);
                if lists.features.get(at) == Some(&j) {
                    let entries = lists.starts[at] as usize..lists.starts[at + 1] as usize;
                    let x = R::of_value(x);
                    for (&c, &y) in lists.columns[entries.clone()].iter().zip(&lists.values[entries]) {
                        values[c as usize] = x.fused(R::of_value(y), values[c as usize]);
                    }
                }
            }
            function.apply(*norm, norms, values);
        }
    }
}

/// One value.
struct OfPair<'p, R> {
    function: &'p Function<R>,
    a: SparseView<'p>,
    b: SparseView<'p>,
}

impl<R: Real> WithSimd for OfPair<'_, R> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> R {
        let Self { function, a, b } = self;
        let mut value = [merged(a, b)];
        function.apply(merged(a, a), &[merged(b, b)], &mut value);
        value[0]
    }
}

/// `<a, b>`, by the machine's own fused products where it has them.
struct Product<'p, R> {
    a: SparseView<'p>,
    b: SparseView<'p>,
    precision: std::marker::PhantomData<R>,
}

impl<R: Real> WithSimd for Product<'_, R> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> R {
        merged(self.a, self.b)
    }
}

fn product<R: Real>(a: SparseView<'_>, b: SparseView<'_>) -> R {
    Arch::new().dispatch(Product { a, b, precision: std::marker::PhantomData })
}

/// `<a, b>`, summed as [`products`] does.
#[inline(always)]
fn merged<R: Real>(a: SparseView<'_>, b: SparseView<'_>) -> R {
    let (mut sum, mut at) = (R::ZERO, 0);
    let (indices, values) = (b.indices(), b.values());
    for (j, x) in a.iter() {
        while at < indices.len() && indices[at] < j {
            at += 1;
        }
        if at < indices.len() && indices[at] == j {
            sum = R::of_value(x).fused(R::of_value(values[at]), sum);
        }
    }
    sum
}
