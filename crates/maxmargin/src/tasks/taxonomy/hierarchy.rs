//! A tree or lattice of classes: who stands above whom, how high, and how far apart.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Nodes with one root. Numbers are such that parents come before their children: in a tree a node is followed by all that is
/// below it, children in the order of their names. They do not depend on the order in which the edges are given.
#[derive(Debug, Clone, PartialEq)]
pub struct Hierarchy {
    names: Vec<String>,
    /// Node k has the places `parent_offsets[k]..parent_offsets[k + 1]` of `parents`.
    parent_offsets: Vec<usize>,
    parents: Vec<u32>,
    /// Node k has the places `offsets[k]..offsets[k + 1]` of `ancestors`, ascending, itself the last, and of `distances`.
    offsets: Vec<usize>,
    ancestors: Vec<u32>,
    distances: Vec<u32>,
    heights: Vec<u32>,
    /// In a tree: the node after the last one below each.
    ends: Option<Vec<u32>>,
}

/// Why edges make no hierarchy; nodes and edges by their numbers in what was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// There is no edge.
    Empty,
    /// An edge is there a second time.
    Twice {
        /// Where it is again.
        edge: usize,
        /// Where it was first.
        first: usize,
    },
    /// Each of these nodes stands below the next, and the last below the first.
    Cycle(Vec<u32>),
    /// These nodes have no parent.
    Roots(Vec<u32>),
    /// All nodes' ancestors together are more than 2^26.
    TooDeep,
}

/// Ancestors of all nodes, together, at most: 512 MB.
const MOST_ANCESTORS: usize = 1 << 26;

impl Hierarchy {
    /// `edges`: child and parent, as places in `names`, which are all different.
    ///
    /// # Panics
    /// If an edge has another node, or a node has no edge.
    pub fn new(names: &[String], edges: &[(u32, u32)]) -> Result<Self, Flaw> {
        if edges.is_empty() {
            return Err(Flaw::Empty);
        }
        let n = names.len();
        let (mut above, mut below) = (vec![Vec::new(); n], vec![Vec::new(); n]);
        let mut seen = HashMap::with_capacity(edges.len());
        for (edge, &(child, parent)) in edges.iter().enumerate() {
            if let Some(first) = seen.insert((child, parent), edge) {
                return Err(Flaw::Twice { edge, first });
            }
            above[child as usize].push(parent);
            below[parent as usize].push(child);
        }
        assert!(above.iter().zip(&below).all(|(a, b)| a.len() + b.len() > 0), "every node has an edge");
        let by_name = order_of(names);
        let sorted = topological(&above, &below, &by_name)?;
        let roots: Vec<u32> = (0..n as u32).filter(|&k| above[k as usize].is_empty()).collect();
        let &[root] = roots.as_slice() else { return Err(Flaw::Roots(roots)) };
        let is_tree = edges.len() == n - 1;
        let order = if is_tree { preorder(root, &mut below, &by_name) } else { sorted };
        let mut number = vec![0; n];
        order.iter().zip(0..).for_each(|(&node, k)| number[node as usize] = k);
        let parents_of = |k: usize| {
            let mut parents: Vec<u32> = above[order[k] as usize].iter().map(|&p| number[p as usize]).collect();
            parents.sort_unstable();
            parents
        };
        let mut hierarchy = Self {
            names: order.iter().map(|&node| names[node as usize].clone()).collect(),
            parent_offsets: vec![0],
            parents: Vec::with_capacity(edges.len()),
            offsets: vec![0],
            ancestors: Vec::new(),
            distances: Vec::new(),
            heights: vec![0; n],
            ends: is_tree.then(|| (1..=n as u32).collect()),
        };
        for k in 0..n {
            hierarchy.push(&parents_of(k))?;
        }
        hierarchy.look_up();
        Ok(hierarchy)
    }

    /// The next node, below these, which are there.
    fn push(&mut self, parents: &[u32]) -> Result<(), Flaw> {
        let node = self.offsets.len() as u32 - 1;
        let mut above: Vec<(u32, u32)> = Vec::new();
        for &parent in parents {
            let (ancestors, distances) = self.ancestors(parent);
            above.extend(ancestors.iter().zip(distances).map(|(&ancestor, distance)| (ancestor, distance + 1)));
        }
        // The shortest way to each.
        above.sort_unstable();
        above.dedup_by_key(|a| a.0);
        above.push((node, 0));
        if self.ancestors.len() + above.len() > MOST_ANCESTORS {
            return Err(Flaw::TooDeep);
        }
        self.ancestors.extend(above.iter().map(|a| a.0));
        self.distances.extend(above.iter().map(|a| a.1));
        self.offsets.push(self.ancestors.len());
        self.parents.extend_from_slice(parents);
        self.parent_offsets.push(self.parents.len());
        Ok(())
    }

    /// Heights and ends, from the leaves up.
    fn look_up(&mut self) {
        for node in (1..self.len()).rev() {
            for at in self.parent_offsets[node]..self.parent_offsets[node + 1] {
                let parent = self.parents[at] as usize;
                self.heights[parent] = self.heights[parent].max(self.heights[node] + 1);
                if let Some(ends) = &mut self.ends {
                    ends[parent] = ends[parent].max(ends[node]);
                }
            }
        }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Never true: there is a root.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The name of each node; the root's is the first.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Has every node but the root a single parent?
    pub fn is_tree(&self) -> bool {
        self.ends.is_some()
    }

    /// The nodes right above this one, ascending.
    pub fn parents(&self, node: u32) -> &[u32] {
        &self.parents[self.parent_offsets[node as usize]..self.parent_offsets[node as usize + 1]]
    }

    /// All edges, child and parent.
    pub fn edges(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..self.len() as u32).flat_map(|child| self.parents(child).iter().map(move |&parent| (child, parent)))
    }

    /// The nodes above this one and itself, ascending, and how far it is to each by the shortest way.
    pub fn ancestors(&self, node: u32) -> (&[u32], &[u32]) {
        let range = self.offsets[node as usize]..self.offsets[node as usize + 1];
        (&self.ancestors[range.clone()], &self.distances[range])
    }

    /// Does `node` stand below `above`, or is it that node?
    pub fn is_below(&self, node: u32, above: u32) -> bool {
        match &self.ends {
            Some(ends) => (above..ends[above as usize]).contains(&node),
            None => self.ancestors(node).0.binary_search(&above).is_ok(),
        }
    }

    /// In a tree: the node after the last one below this one.
    pub(super) fn end(&self, node: u32) -> Option<u32> {
        self.ends.as_ref().map(|ends| ends[node as usize])
    }

    /// The longest way down to a leaf; 0 at a leaf.
    pub fn height(&self, node: u32) -> u32 {
        self.heights[node as usize]
    }

    /// The shortest way up to the root; 0 there.
    pub fn depth(&self, node: u32) -> u32 {
        // The root is the first of all ancestors.
        self.ancestors(node).1[0]
    }

    /// The depth of the deepest node.
    pub fn max_depth(&self) -> u32 {
        (0..self.len() as u32).map(|node| self.depth(node)).max().unwrap_or(0)
    }

    /// The height of the first common ancestor of two nodes, each being its own ancestor, too; in a lattice that of the lowest.
    pub fn common_height(&self, a: u32, b: u32) -> u32 {
        self.least_common(a, b, |ancestor, _| self.height(ancestor))
    }

    /// The shortest way from one node to another over a common ancestor.
    pub fn distance(&self, a: u32, b: u32) -> u32 {
        self.least_common(a, b, |_, distance| distance)
    }

    /// The least of a number of the common ancestors, and of the way over them.
    fn least_common(&self, a: u32, b: u32, of: impl Fn(u32, u32) -> u32) -> u32 {
        let ((a, to_a), (b, to_b)) = (self.ancestors(a), self.ancestors(b));
        let (mut i, mut j, mut least) = (0, 0, u32::MAX);
        while i < a.len() && j < b.len() {
            match a[i].cmp(&b[j]) {
                std::cmp::Ordering::Less => i += 1,
                std::cmp::Ordering::Greater => j += 1,
                std::cmp::Ordering::Equal => {
                    least = least.min(of(a[i], to_a[i] + to_b[j]));
                    (i, j) = (i + 1, j + 1);
                }
            }
        }
        least
    }
}

/// The place of each name in the order of all.
fn order_of(names: &[String]) -> Vec<u32> {
    let mut sorted: Vec<usize> = (0..names.len()).collect();
    sorted.sort_by(|&a, &b| names[a].cmp(&names[b]));
    let mut order = vec![0; names.len()];
    sorted.iter().zip(0..).for_each(|(&node, at)| order[node] = at);
    order
}

/// All nodes, parents before their children; of those that may be next, the first by name.
fn topological(above: &[Vec<u32>], below: &[Vec<u32>], by_name: &[u32]) -> Result<Vec<u32>, Flaw> {
    let mut left: Vec<usize> = above.iter().map(Vec::len).collect();
    let next = |node: u32| Reverse((by_name[node as usize], node));
    let mut ready: BinaryHeap<_> = (0..above.len() as u32).filter(|&k| left[k as usize] == 0).map(next).collect();
    let mut order = Vec::with_capacity(above.len());
    while let Some(Reverse((_, node))) = ready.pop() {
        order.push(node);
        for &child in &below[node as usize] {
            left[child as usize] -= 1;
            if left[child as usize] == 0 {
                ready.push(next(child));
            }
        }
    }
    match left.iter().position(|&left| left > 0) {
        None => Ok(order),
        // Each node that is left has a parent that is left: going up ends in a circle.
        Some(start) => {
            let (mut way, mut seen, mut node) = (Vec::new(), vec![false; above.len()], start as u32);
            while !std::mem::replace(&mut seen[node as usize], true) {
                way.push(node);
                let up = above[node as usize].iter().find(|&&parent| left[parent as usize] > 0);
                node = *up.expect("a parent that is left");
            }
            let begin = way.iter().position(|&k| k == node).expect("a node on the way");
            Err(Flaw::Cycle(way.split_off(begin)))
        }
    }
}

/// The nodes of a tree, each followed by all below it.
fn preorder(root: u32, below: &mut [Vec<u32>], by_name: &[u32]) -> Vec<u32> {
    let (mut order, mut ahead) = (Vec::with_capacity(below.len()), vec![root]);
    while let Some(node) = ahead.pop() {
        order.push(node);
        let mut children = std::mem::take(&mut below[node as usize]);
        children.sort_by_key(|&child| Reverse(by_name[child as usize]));
        ahead.append(&mut children);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From `child parent` words.
    fn hierarchy(edges: &[(&str, &str)]) -> Result<Hierarchy, Flaw> {
        let mut names: Vec<String> = Vec::new();
        let mut number = |name: &str| {
            let at = names.iter().position(|n| n == name).unwrap_or(names.len());
            if at == names.len() {
                names.push(name.to_owned());
            }
            at as u32
        };
        let edges: Vec<_> = edges.iter().map(|(child, parent)| (number(child), number(parent))).collect();
        Hierarchy::new(&names, &edges)
    }

    fn node(h: &Hierarchy, name: &str) -> u32 {
        h.names().iter().position(|n| n == name).unwrap() as u32
    }

    const TREE: [(&str, &str); 7] =
        [("b2", "b"), ("a", "root"), ("b1", "b"), ("b", "root"), ("c", "b1"), ("d", "b1"), ("chain", "a")];

    #[test]
    fn a_tree() {
        let tree = hierarchy(&TREE).unwrap();
        assert_eq!(tree.names(), ["root", "a", "chain", "b", "b1", "c", "d", "b2"]);
        assert!(tree.is_tree() && tree.max_depth() == 3);
        let heights = ["root", "a", "chain", "b", "b1", "c", "d", "b2"].map(|name| tree.height(node(&tree, name)));
        assert_eq!(heights, [3, 1, 0, 2, 1, 0, 0, 0]);
        let common = |a: &str, b: &str| {
            let (a, b) = (node(&tree, a), node(&tree, b));
            assert_eq!(tree.common_height(a, b), tree.common_height(b, a));
            (tree.common_height(a, b), tree.distance(a, b))
        };
        assert_eq!([common("c", "d"), common("c", "b2"), common("c", "chain")], [(1, 2), (2, 3), (3, 5)]);
        assert_eq!([common("c", "b"), common("b", "b"), common("a", "chain")], [(2, 2), (2, 0), (1, 1)]);
        assert!(
            tree.is_below(node(&tree, "c"), node(&tree, "b")) && !tree.is_below(node(&tree, "b"), node(&tree, "c"))
        );
        // Numbers do not follow the order of the lines.
        let mut turned = TREE;
        turned.reverse();
        assert_eq!(hierarchy(&turned).unwrap(), tree);
    }

    #[test]
    fn a_lattice() {
        let lattice = hierarchy(&[
            ("a", "r"),
            ("b", "r"),
            ("x", "a"),
            ("x", "b"),
            ("y", "a"),
            ("z", "b"),
            ("x1", "x"),
            ("y", "x"),
        ])
        .unwrap();
        assert!(!lattice.is_tree());
        let of = |name: &str| node(&lattice, name);
        assert_eq!([lattice.height(of("r")), lattice.height(of("a")), lattice.height(of("x"))], [3, 2, 1]);
        assert_eq!(lattice.depth(of("y")), 2);
        // y and x1 meet at x, not only at a.
        assert_eq!((lattice.common_height(of("y"), of("x1")), lattice.distance(of("y"), of("x1"))), (1, 2));
        assert_eq!((lattice.common_height(of("y"), of("z")), lattice.distance(of("y"), of("z"))), (2, 3));
        assert!(lattice.is_below(of("y"), of("b")) && !lattice.is_below(of("z"), of("a")));
        let ordered = (0..lattice.len() as u32).all(|k| lattice.parents(k).iter().all(|&p| p < k));
        assert!(ordered);
    }

    #[test]
    fn what_is_no_hierarchy() {
        assert_eq!(hierarchy(&[]).unwrap_err(), Flaw::Empty);
        assert_eq!(hierarchy(&[("a", "a")]).unwrap_err(), Flaw::Cycle(vec![0]));
        // a below b below c below a; d hangs below it.
        let circle = [("d", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("x", "root")];
        assert_eq!(hierarchy(&circle).unwrap_err(), Flaw::Cycle(vec![1, 2, 3]));
        assert_eq!(hierarchy(&[("a", "r"), ("b", "q")]).unwrap_err(), Flaw::Roots(vec![1, 3]));
        assert_eq!(hierarchy(&[("a", "r"), ("b", "r"), ("a", "r")]).unwrap_err(), Flaw::Twice { edge: 2, first: 0 });
    }

    /// A chain as long as this has 2 * 10^8 ancestors: refused before they are there.
    #[test]
    fn too_deep() {
        let names: Vec<String> = (0..20_000).map(|k| k.to_string()).collect();
        let edges: Vec<(u32, u32)> = (1..20_000).map(|k| (k, k - 1)).collect();
        assert_eq!(Hierarchy::new(&names, &edges).unwrap_err(), Flaw::TooDeep);
        let edges = &edges[..2000];
        assert_eq!(Hierarchy::new(&names[..2001], edges).unwrap().max_depth(), 2000);
    }
}
