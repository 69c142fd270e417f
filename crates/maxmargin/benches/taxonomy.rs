//! How fast the best of 5,000 classes is found, at the leaves of a tree of depth 5, by sums from the root down and by scoring each
//! class's whole path. One thread. Prints one JSON line.
//!
//! Two ways to score the paths, so that the comparison is fair: feature by feature of each node, as the class's features are
//! emitted, and from the scores of a path's nodes, each of which is computed, as a row, for every class anew.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use maxmargin::sparse::{SparseMatrix, SparseView};
use maxmargin::task::{LossTerm, Task};
use maxmargin::tasks::taxonomy::{Architecture, Hierarchy, NodeLoss, Taxonomy, TaxonomyScratch};
use maxmargin::weights::Weights;

const ROUNDS: usize = 7;
const EXAMPLES: usize = 20;
const ACTIVE: usize = 100;
const FEATURES: u32 = 2000;
/// Children of the nodes of each level: 5,000 leaves.
const BRANCHING: [u32; 5] = [5, 5, 5, 5, 8];

fn main() {
    // `cargo bench` says --bench; `cargo test --all-targets` runs this too and wants no measurement.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let hierarchy = Arc::new(tree());
    let leaves: Vec<u32> = (0..hierarchy.len() as u32).filter(|&node| hierarchy.height(node) == 0).collect();
    let task =
        Taxonomy::new(FEATURES, Arc::clone(&hierarchy), leaves.clone(), &Architecture::Taxonomy(1.0), NodeLoss::Tree)
            .unwrap();
    let mut state = 1;
    let w: Vec<f64> = (0..task.dimension()).map(|_| unit(&mut state) - 0.5).collect();
    // The same weights with a row for each node: the best layout for one node at a time.
    let block = task.blocks()[0];
    let by_node: Vec<f64> = (0..block.width)
        .flat_map(|slot| (0..FEATURES).map(move |j| (slot, j)))
        .map(|(slot, j)| w[block.at(j, slot)])
        .collect();
    let w = Weights::from(w);
    let x = rows(&mut state);
    let truth = leaves[0];

    let mut scratch = TaxonomyScratch::default();
    let mut summed = |x: SparseView<'_>, with_loss: bool| {
        let (mut y, term) = (0, LossTerm { truth: &truth, weight: 1.0 });
        task.argmax(&w, x, with_loss.then_some(term), &mut scratch, &mut y).unwrap();
        y
    };
    let [ours, with_loss] = [false, true].map(|loss| best(&x, |x| summed(x, loss)));
    let emitted = best(&x, |x| highest(&leaves, |&leaf| task.score(&w, x, &leaf).unwrap()));
    let gathered = best(&x, |x| {
        highest(&leaves, |&leaf| {
            let path = hierarchy.ancestors(leaf).0[1..].iter();
            path.map(|&node| x.dot(&by_node[(node as usize - 1) * FEATURES as usize..][..FEATURES as usize])).sum()
        })
    });
    for i in 0..EXAMPLES {
        let found = highest(&leaves, |&leaf| task.score(&w, x.row(i), &leaf).unwrap());
        assert_eq!(summed(x.row(i), false), found, "the same class");
    }
    println!(
        "{{\"bench\": \"taxonomy\", \"classes\": {}, \"nodes\": {}, \"active_features\": {ACTIVE}, \"argmax_us\": {:.1}, \
         \"argmax_with_loss_us\": {:.1}, \"paths_emitted_us\": {:.1}, \"paths_by_node_us\": {:.1}, \"times_faster\": {:.1}, \
         \"times_faster_with_loss\": {:.1}}}",
        leaves.len(),
        hierarchy.len(),
        1e6 * ours,
        1e6 * with_loss,
        1e6 * emitted,
        1e6 * gathered,
        emitted.min(gathered) / ours,
        emitted.min(gathered) / with_loss,
    );
}

/// Seconds for one example, the fastest of some rounds.
fn best(x: &SparseMatrix, mut argmax: impl FnMut(SparseView<'_>) -> u32) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for i in 0..x.rows() {
            black_box(argmax(x.row(i)));
        }
        best = best.min(start.elapsed().as_secs_f64() / x.rows() as f64);
    }
    best
}

fn highest(leaves: &[u32], score: impl Fn(&u32) -> f64) -> u32 {
    let (mut best, mut found) = (f64::NEG_INFINITY, 0);
    for leaf in leaves {
        let value = score(leaf);
        if value > best {
            (best, found) = (value, *leaf);
        }
    }
    found
}

fn tree() -> Hierarchy {
    let (mut edges, mut level, mut count) = (Vec::new(), vec![0], 1_u32);
    for branching in BRANCHING {
        let mut next = Vec::new();
        for &parent in &level {
            for _ in 0..branching {
                edges.push((count, parent));
                next.push(count);
                count += 1;
            }
        }
        level = next;
    }
    let names: Vec<String> = (0..count).map(|node| format!("{node:05}")).collect();
    Hierarchy::new(&names, &edges).unwrap()
}

/// In [0, 1): splitmix64.
fn unit(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

fn rows(state: &mut u64) -> SparseMatrix {
    let mut x = SparseMatrix::new();
    for _ in 0..EXAMPLES {
        let mut columns = BTreeSet::new();
        while columns.len() < ACTIVE {
            columns.insert((unit(state) * f64::from(FEATURES)) as u32);
        }
        x.push_row(columns.into_iter().map(|j| (j, (unit(state) + 0.1) as f32)));
    }
    x.set_columns(FEATURES);
    x
}
