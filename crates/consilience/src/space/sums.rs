//! Sums over all models of a space.

use super::bound::{self, Aim, WalkBounds};
use super::leaves::{Leaves, MOST};
use super::reduced::Reduced;
use super::sweep::{Summit, climb};
use super::tree::{Taken, Tree, TreeNode, Visitor, WalkBudget, Walker};
use super::{Quadratic, Space, Subset};
use crate::{Error, Result};
use rayon::prelude::*;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A space with no more models than this is walked whole.
const WHOLE: f64 = 1_048_576.0;
/// Into how many subtrees a walk is split: whatever the number of threads, so that sums have the same bits.
const TASKS: usize = 64;
/// The same where subtrees differ much in size.
const UNEVEN_TASKS: usize = 256;
/// In a space with more models than this, one that weighs next to nothing is not among the heaviest.
const SMALL: f64 = 16_384.0;
/// Next to nothing, as a logarithm of a share.
const NOTHING: f64 = -600.0;
/// The first threshold for subtrees, as a share of the tolerance.
const FIRST_SHARE: f64 = 1e-2;
/// By what it is divided if that left out too much.
const STEP: f64 = 8.0;

/// What is known of all models of a space. Weights are w_γ = Z̃_γ·p(γ).
#[derive(Debug, Clone)]
pub struct Sums {
    /// log Σ w over the models visited.
    pub log_total: f64,
    /// The logarithm of a bound on Σ w over the models that were not visited; −∞ if all were.
    pub log_rest: f64,
    /// log Σ √w over the models visited.
    pub log_root: f64,
    /// Per term, the share of the models that have it.
    pub inclusion: Vec<f64>,
    /// Per number of terms, the share of the models that have so many.
    pub sizes: Vec<f64>,
    /// The heaviest models with log w, heaviest first.
    pub top: Vec<(Subset, f64)>,
    /// How many models were visited.
    pub visited: f64,
    /// How many nodes of the tree were seen to that end.
    pub nodes: u64,
    pub(super) path: TreePath,
}

/// What makes the walk the same again.
#[derive(Debug, Clone)]
pub(super) struct TreePath {
    order: Vec<usize>,
    reference: f64,
    /// Subtrees below this were left out.
    least: Option<f64>,
    /// Per subtree, its sums of w and √w.
    pub parts: Vec<(f64, f64)>,
}

/// How a space is walked.
#[derive(Debug, Clone, Copy)]
pub struct Walk {
    /// How many of the heaviest models are wanted.
    pub top: usize,
    /// The share of the total that may be left out: 1e-4, or 0 for nothing.
    pub tolerance: f64,
    /// How many nodes of the tree may be seen.
    pub most_nodes: u64,
}

/// Sums over all models, or over all but a share; `None` where the space is too large for that.
pub fn sum(space: &Space, quadratic: &Quadratic, walk: &Walk) -> Result<Option<Sums>> {
    let reduced = Reduced::new(space, quadratic)?;
    let summit = climb(space, &reduced);
    let mut reference = summit.log_weight;
    let whole = walk.tolerance.is_nan() || walk.tolerance <= 0.0 || space.models() <= WHOLE;
    if whole && space.models() / MOST as f64 > walk.most_nodes as f64 {
        return Ok(None);
    }
    if !reference.is_finite() {
        reference = reduced.base;
    }
    let order = order(space, &reduced, &summit.odds, whole);
    // The heavy model and its neighbours: all models weigh at least so much.
    let mut known = 1.0;
    known += summit.odds.iter().map(|odds| libm::exp(-odds.abs())).sum::<f64>();
    let mut budget = walk.most_nodes;
    let mut share = FIRST_SHARE;
    let mut raise = 300.0;
    loop {
        let least = (!whole).then_some(walk.tolerance * share * known);
        let path = TreePath { order: order.clone(), reference, least, parts: Vec::new() };
        let Some(found) = attempt(space, &reduced, &summit, walk, path, budget) else {
            return Ok(None);
        };
        budget = budget.saturating_sub(found.nodes);
        // Far heavier models than the climb found: exponentials may have met their end.
        if found.log_total > reference + 300.0 {
            reference += raise;
            raise *= 2.0;
            if !(found.log_total.is_finite() && reference.is_finite()) {
                return Err(Error::numeric("the weights of models are beyond all numbers"));
            }
            continue;
        }
        if whole || found.log_rest <= found.log_total + libm::log(walk.tolerance) {
            return Ok(Some(found));
        }
        known = known.max(libm::exp(found.log_total - reference));
        share /= STEP;
    }
}

/// Terms from the likeliest to the least likely, parents before children. Where all models are walked, terms
/// that cannot be decided side by side come first.
fn order(space: &Space, reduced: &Reduced, odds: &[f64], whole: bool) -> Vec<usize> {
    let p = space.terms.len();
    let mut rank = odds.to_vec();
    if whole {
        for (t, rank) in rank.iter_mut().enumerate() {
            if reduced.columns[t].len() != 1 || reduced.left[t] != 0.0 {
                *rank = f64::INFINITY;
            }
        }
    }
    if space.has_rules() {
        // Children stand after their parents, so that one pass hands ranks down to all ancestors.
        for t in (0..p).rev() {
            for &parent in &space.terms[t].parents {
                rank[parent] = rank[parent].max(rank[t]);
            }
        }
    }
    let mut order: Vec<usize> = (0..p).collect();
    // A parent ranks no lower than its children and has a lower number.
    order.sort_by(|&a, &b| rank[b].total_cmp(&rank[a]).then(a.cmp(&b)));
    order
}

/// The subtrees of a walk, in its order, and bounds on those that are left out at once.
fn tasks(tree: &Tree, root: TreeNode) -> (Vec<TreeNode>, f64) {
    let many = if tree.bounds.is_some() { UNEVEN_TASKS } else { TASKS };
    let (mut nodes, mut rest) = (vec![root], 0.0);
    while nodes.len() < many && nodes.iter().any(|node| node.undecided.len() > 7) {
        let mut next = Vec::with_capacity(2 * nodes.len());
        for node in nodes {
            if node.undecided.len() <= 7 {
                next.push(node);
                continue;
            }
            let (with, without) = node.split(tree);
            for child in with.into_iter().chain([without]) {
                match &tree.bounds {
                    Some(bounds) => {
                        let held = bounds.whole(tree, &child.view());
                        if held <= bounds.least {
                            rest += held;
                        } else {
                            next.push(child);
                        }
                    }
                    None => next.push(child),
                }
            }
        }
        nodes = next;
    }
    (nodes, rest)
}

/// The tree of a walk, its subtrees, and bounds on those that are left out at once.
pub(super) fn plant(
    space: &Space,
    reduced: &Reduced,
    summit: &Summit,
    path: &TreePath,
) -> (Tree, Vec<TreeNode>, f64) {
    let mut tree = Tree::new(space, reduced, &path.order, path.reference);
    let columns = reduced.slope.len();
    let mut root = tree.root(reduced, &path.order, vec![0.0; columns]);
    if let Some(least) = path.least {
        tree.bounds = Some(WalkBounds::new(tree.log_prior(), least));
        let aim = Aim {
            odds: (path.order.iter())
                .flat_map(|&t| reduced.columns[t].clone().map(move |_| summit.odds[t]))
                .collect(),
            squares: (path.order.iter())
                .flat_map(|&t| reduced.columns[t].clone().map(|j| summit.squares[j]))
                .collect(),
        };
        root.cover = bound::cover(&root.matrix, &aim);
    }
    let (nodes, rest) = tasks(&tree, root);
    (tree, nodes, rest)
}

fn attempt(
    space: &Space,
    reduced: &Reduced,
    summit: &Summit,
    walk: &Walk,
    mut path: TreePath,
    most_nodes: u64,
) -> Option<Sums> {
    let p = space.terms.len();
    let (tree, nodes, mut rest) = plant(space, reduced, summit, &path);
    let budget = WalkBudget::new(most_nodes);
    let floor = if space.models() > SMALL { path.reference + NOTHING } else { f64::NEG_INFINITY };
    let gather = |node: &TreeNode, floor: f64| {
        let gather = Gather::new(p, walk.top, floor, path.reference);
        let mut walker = Walker::new(&tree, gather, &budget);
        let total = walker.walk(node);
        let mut gather = walker.visitor;
        node.taken.places.iter().for_each(|place| gather.inclusion[place] += total);
        (gather, total, walker.rest)
    };
    // The subtree of the heavy model goes first: what is lighter than its heaviest need not be looked at.
    let first = nodes.iter().position(|node| {
        (0..p).all(|place| {
            let has = summit.model.contains(path.order[place]);
            node.undecided.contains(&place) || has == node.taken.places.contains(place)
        })
    });
    let first = first.unwrap_or(0);
    let found = nodes.get(first).map(|node| gather(node, floor));
    let full = found.as_ref().filter(|found| found.0.top.len() == walk.top);
    let floor = full.map_or(floor, |found| found.0.floor.max(floor));
    let rest_of = |nodes: &[TreeNode]| -> Vec<(Gather, f64, f64)> {
        nodes.par_iter().with_max_len(1).map(|node| gather(node, floor)).collect()
    };
    let (before, after) =
        rayon::join(|| rest_of(&nodes[..first]), || rest_of(nodes.get(first + 1..).unwrap_or(&[])));
    let gathered = before.into_iter().chain(found).chain(after);
    if budget.is_spent() {
        return None;
    }
    let (mut total, mut root, mut visited) = (0.0, 0.0, 0.0);
    let (mut by_place, mut sizes, mut top) = (vec![0.0; p], vec![0.0; p + 1], Vec::new());
    for (gather, part, left_out) in gathered {
        path.parts.push((part, gather.root));
        total += part;
        root += gather.root;
        rest += left_out;
        visited += gather.visited;
        by_place.iter_mut().zip(&gather.inclusion).for_each(|(sum, x)| *sum += x);
        for (k, block) in gather.sizes.iter().enumerate() {
            for (i, weight) in block.iter().enumerate() {
                // What no model has is 0.
                if let Some(sum) = sizes.get_mut(k + i.count_ones() as usize) {
                    *sum += weight;
                }
            }
        }
        top.extend(gather.top);
    }
    top.sort();
    top.truncate(walk.top);
    let share = |weight: f64| if total > 0.0 { (weight / total).min(1.0) } else { 0.0 };
    let mut inclusion = vec![0.0; p];
    path.order.iter().zip(&by_place).for_each(|(&term, weight)| inclusion[term] = share(*weight));
    let reference = path.reference;
    let log = |sum: f64, reference: f64| {
        if sum > 0.0 { reference + libm::log(sum) } else { f64::NEG_INFINITY }
    };
    Some(Sums {
        log_total: log(total, reference),
        log_rest: log(rest, reference),
        log_root: log(root, 0.5 * reference),
        inclusion,
        sizes: sizes.into_iter().map(share).collect(),
        top: top.into_iter().map(|ranked| (ranked.model, ranked.log_weight)).collect(),
        visited,
        nodes: budget.seen(),
        path,
    })
}

/// A model in the order of weights, the heaviest least.
struct Ranked {
    log_weight: f64,
    model: Subset,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Ranked) -> Ordering {
        other.log_weight.total_cmp(&self.log_weight).then(self.model.cmp(&other.model))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Ranked) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Ranked) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}

/// Sums over a subtree.
struct Gather {
    /// Per place in the walk.
    inclusion: Vec<f64>,
    /// Per number of terms taken in before the last, and choice of these.
    sizes: Vec<[f64; MOST]>,
    root: f64,
    visited: f64,
    /// The lightest of the heaviest is on top.
    top: BinaryHeap<Ranked>,
    wanted: usize,
    /// What a log weight must exceed to be among the heaviest, and the same as a weight.
    floor: f64,
    least: f64,
    reference: f64,
}

impl Gather {
    fn new(p: usize, wanted: usize, floor: f64, reference: f64) -> Gather {
        Gather {
            inclusion: vec![0.0; p],
            sizes: vec![[0.0; MOST]; p + 1],
            root: 0.0,
            visited: 0.0,
            top: BinaryHeap::new(),
            wanted,
            floor,
            least: if wanted == 0 { f64::INFINITY } else { least(floor, reference) },
            reference,
        }
    }

    #[cold]
    fn rank(&mut self, tree: &Tree, taken: &Taken, last: &[usize], leaves: &Leaves) {
        for i in 0..leaves.count {
            if leaves.weight[i] < self.least {
                continue;
            }
            let log_weight = tree.log_weight(taken, leaves, i);
            if log_weight.is_nan() || log_weight < self.floor || log_weight == f64::NEG_INFINITY {
                continue;
            }
            let places = with(taken.places, last, i);
            self.top.push(Ranked { log_weight, model: tree.terms(&places) });
            if self.top.len() > self.wanted {
                self.top.pop();
                let lightest = self.top.peek().map_or(self.floor, |ranked| ranked.log_weight);
                self.floor = lightest;
                self.least = least(lightest, self.reference);
            }
        }
    }
}

/// A weight that no model of at least this log weight is below.
fn least(log_weight: f64, reference: f64) -> f64 {
    if log_weight - reference > -690.0 {
        libm::exp(log_weight - reference) * (1.0 - 1e-9)
    } else {
        0.0
    }
}

/// The terms taken in with a choice of the last.
pub(super) fn with(mut places: Subset, last: &[usize], choice: usize) -> Subset {
    for (bit, &place) in last.iter().enumerate() {
        if choice >> bit & 1 == 1 {
            places.insert(place);
        }
    }
    places
}

impl Visitor for Gather {
    #[inline]
    fn models(&mut self, tree: &Tree, taken: &Taken, last: &[usize], leaves: &Leaves) -> f64 {
        let count = leaves.count;
        self.visited += count as f64;
        let mut weight = leaves.weight;
        let size = &mut self.sizes[taken.count];
        let mut root = 0.0;
        if count == MOST {
            let mut roots = [0.0; 4];
            for i in 0..MOST {
                size[i] += weight[i];
                roots[i % 4] += weight[i].sqrt();
            }
            root += (roots[0] + roots[1]) + (roots[2] + roots[3]);
        } else {
            for i in 0..count {
                size[i] += weight[i];
                root += weight[i].sqrt();
            }
        }
        self.root += root;
        // Halves are put on each other: the upper one has the last term.
        for (bit, &place) in last.iter().enumerate().rev() {
            let (low, high) = weight.split_at_mut(1 << bit);
            let mut taken_in = 0.0;
            for (low, high) in low.iter_mut().zip(&*high) {
                *low += high;
                taken_in += high;
            }
            self.inclusion[place] += taken_in;
        }
        let total = weight[0];
        if total >= self.least {
            self.rank(tree, taken, last, leaves);
        }
        total
    }

    #[inline]
    fn took(&mut self, place: usize, weight: f64) {
        self.inclusion[place] += weight;
    }
}
