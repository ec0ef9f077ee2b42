//! The tree of all models: each node takes the next term in or leaves it out.
//!
//! A node keeps [S r; r' q] of its undecided columns as an upper triangle, row after row. Leaving the first term
//! out is dropping its rows; taking it in is a Schur complement, after which q holds −2 times the exponent.

use super::bound::WalkBounds;
use super::leaves::{LAST, Leaves, MOST};
use super::reduced::Reduced;
use super::{Heredity, Space, Subset};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where a product of reciprocal pivots goes over into the logarithm.
const LARGEST_PRODUCT: f64 = 1e60;

/// With fewer undecided terms than this, bounds cost more than they spare.
const FEW: usize = 7;

/// A term in the order of the walk; others are known by their places in it.
struct TermPlace {
    term: usize,
    noise: Vec<f64>,
    left: f64,
    parents: Vec<usize>,
    /// The place of its last parent, and 1.
    ready: usize,
    has_children: bool,
}

/// What is the same at all nodes.
pub(super) struct Tree {
    places: Vec<TermPlace>,
    heredity: Heredity,
    log_prior: Vec<f64>,
    /// Per number of terms taken in, the largest log prior that the last few can lead to, and the prior of each
    /// of their models over it.
    priors: Vec<(f64, [f64; MOST])>,
    /// The log weight that counts as 1.
    pub reference: f64,
    /// What is left out: subtrees that hold less than this; `None` to leave nothing out.
    pub bounds: Option<WalkBounds>,
}

/// The models that have the terms taken and any of those undecided.
#[derive(Clone)]
pub(super) struct TreeNode {
    /// Undecided, by their places in the walk.
    pub undecided: Vec<usize>,
    pub matrix: Vec<f64>,
    /// A diagonal that the undecided columns' matrix is not below: Σ dⱼvⱼ² ≤ v'Sv.
    pub cover: Vec<f64>,
    pub taken: Taken,
}

/// The terms taken in.
#[derive(Clone, Copy)]
pub(super) struct Taken {
    /// By their places in the walk.
    pub places: Subset,
    pub count: usize,
    /// Log weight but for q, the reciprocals below, and the prior.
    pub log_scale: f64,
    pub reciprocal: f64,
}

/// A node on the way, that borrows what its parent has.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub undecided: &'a [usize],
    pub matrix: &'a [f64],
    pub cover: &'a [f64],
    pub taken: Taken,
}

/// Who looks at the models as the walk comes by.
pub(super) trait Visitor {
    /// Models side by side; gives the sum of their weights.
    fn models(&mut self, tree: &Tree, taken: &Taken, last: &[usize], leaves: &Leaves) -> f64;
    /// What all models below a place that was taken in weigh.
    fn took(&mut self, place: usize, weight: f64);
}

/// One walk's state.
pub(super) struct Walker<'a, V> {
    pub tree: &'a Tree,
    pub visitor: V,
    pub leaves: Leaves,
    /// Bounds on what was left out, in all.
    pub rest: f64,
    /// Nodes that this walk has seen.
    pub nodes: u64,
    told: u64,
    budget: &'a WalkBudget,
}

/// How many nodes all walks together may still see.
pub(super) struct WalkBudget {
    seen: AtomicU64,
    most: u64,
}

impl WalkBudget {
    pub fn new(most: u64) -> WalkBudget {
        WalkBudget { seen: AtomicU64::new(0), most }
    }

    /// Whether there were too many: the same whoever asked first, because all are counted.
    pub fn is_spent(&self) -> bool {
        self.seen.load(Ordering::Relaxed) > self.most
    }

    pub fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    fn add(&self, nodes: u64) {
        self.seen.fetch_add(nodes, Ordering::Relaxed);
    }
}

impl Tree {
    pub fn new(space: &Space, reduced: &Reduced, order: &[usize], reference: f64) -> Tree {
        let p = order.len();
        let mut place_of = vec![0; p];
        order.iter().enumerate().for_each(|(place, &term)| place_of[term] = place);
        let rules = space.has_rules();
        let mut places: Vec<TermPlace> = order
            .iter()
            .map(|&term| {
                let parents: Vec<usize> = if rules {
                    space.terms[term].parents.iter().map(|&parent| place_of[parent]).collect()
                } else {
                    Vec::new()
                };
                TermPlace {
                    term,
                    noise: reduced.noise[reduced.columns[term].clone()].to_vec(),
                    left: reduced.left[term],
                    ready: parents.iter().map(|place| place + 1).max().unwrap_or(0),
                    parents,
                    has_children: false,
                }
            })
            .collect();
        for place in 0..p {
            for parent in places[place].parents.clone() {
                places[parent].has_children = true;
            }
        }
        let log_prior: Vec<f64> = (0..=p).map(|k| space.log_prior(k)).collect();
        let priors = (0..=p)
            .map(|k| {
                let at = |i: usize| -> f64 {
                    let size = k + i.count_ones() as usize;
                    log_prior.get(size).copied().unwrap_or(f64::NEG_INFINITY)
                };
                let top = (0..MOST).map(at).fold(f64::NEG_INFINITY, f64::max);
                let top = if top.is_finite() { top } else { 0.0 };
                (top, std::array::from_fn(|i| libm::exp(at(i) - top)))
            })
            .collect();
        let heredity = if rules { space.heredity } else { Heredity::None };
        Tree { places, heredity, log_prior, priors, reference, bounds: None }
    }

    /// The node of all models.
    pub fn root(&self, reduced: &Reduced, order: &[usize], cover: Vec<f64>) -> TreeNode {
        let taken =
            Taken { places: Subset::EMPTY, count: 0, log_scale: reduced.base, reciprocal: 1.0 };
        let undecided = (0..order.len()).collect();
        TreeNode { undecided, matrix: reduced.packed(order), cover, taken }
    }

    /// How many columns a place has.
    pub fn width(&self, place: usize) -> usize {
        self.places[place].noise.len()
    }

    /// What a place's weight has beside its columns'.
    pub fn left(&self, place: usize) -> f64 {
        self.places[place].left
    }

    /// A model by its terms.
    pub fn terms(&self, places: &Subset) -> Subset {
        places.iter().map(|place| self.places[place].term).collect()
    }

    /// The log weight of one of the models side by side.
    pub fn log_weight(&self, taken: &Taken, leaves: &Leaves, i: usize) -> f64 {
        let size = taken.count + i.count_ones() as usize;
        let half = 0.5 * (libm::log(leaves.reciprocals[i]) - leaves.q[i]);
        taken.log_scale + half + self.log_prior[size]
    }

    /// The log priors per number of terms.
    pub fn log_prior(&self) -> &[f64] {
        &self.log_prior
    }

    /// Whether the terms that are left can be decided side by side.
    fn is_last(&self, undecided: &[usize]) -> bool {
        let Some(&first) = undecided.first() else { return true };
        undecided.len() <= LAST
            && undecided.iter().all(|&place| {
                let own = &self.places[place];
                own.noise.len() == 1 && own.left == 0.0 && own.ready <= first
            })
    }

    /// Whether a term may still come in, after the one at `out` was left out.
    fn lives(&self, place: usize, out: usize, taken: &Subset, undecided: &[usize]) -> bool {
        let parents = &self.places[place].parents;
        match self.heredity {
            Heredity::None => true,
            Heredity::Strong => parents.iter().all(|parent| {
                *parent != out && (taken.contains(*parent) || undecided.contains(parent))
            }),
            Heredity::Weak => {
                parents.is_empty()
                    || parents.iter().any(|parent| {
                        taken.contains(*parent) || (*parent != out && undecided.contains(parent))
                    })
            }
        }
    }

    /// Takes the first undecided term in; `None` if that has no normal approximation.
    fn take(&self, view: &View, to: &mut TreeNode) -> bool {
        let place = view.undecided[0];
        let own = &self.places[place];
        let mut taken = view.taken;
        let mut columns = view.cover.len();
        let mut spare = Vec::new();
        for (i, &noise) in own.noise.iter().enumerate() {
            let from: &[f64] = if i == 0 {
                view.matrix
            } else {
                std::mem::swap(&mut spare, &mut to.matrix);
                &spare
            };
            let pivot = from[0];
            if pivot.is_nan() || pivot <= noise {
                return false;
            }
            eliminate(from, columns, &mut to.matrix);
            columns -= 1;
            taken.reciprocal /= pivot;
            let fine =
                taken.reciprocal < LARGEST_PRODUCT && taken.reciprocal > 1.0 / LARGEST_PRODUCT;
            if !fine {
                taken.log_scale += 0.5 * libm::log(taken.reciprocal);
                taken.reciprocal = 1.0;
            }
        }
        taken.places.insert(place);
        taken.count += 1;
        taken.log_scale += own.left;
        to.undecided.clear();
        to.undecided.extend_from_slice(&view.undecided[1..]);
        to.cover.clear();
        to.cover.extend_from_slice(&view.cover[own.noise.len()..]);
        to.taken = taken;
        true
    }

    /// Leaves the first undecided term out.
    pub fn leave<'a>(&self, view: View<'a>) -> View<'a> {
        let width = self.width(view.undecided[0]);
        let columns = view.cover.len() + 1;
        let dropped: usize = (0..width).map(|i| columns - i).sum();
        View {
            undecided: &view.undecided[1..],
            matrix: &view.matrix[dropped..],
            cover: &view.cover[width..],
            taken: view.taken,
        }
    }

    /// The node without the terms that can no longer come in now that the one at `out` is left out; `None` if
    /// all can.
    fn prune(&self, view: &View, out: usize, to: &mut TreeNode) -> bool {
        to.undecided.clear();
        // Parents stand before their children, so that one pass finds all.
        for &place in view.undecided {
            if self.lives(place, out, &view.taken.places, &to.undecided) {
                to.undecided.push(place);
            }
        }
        if to.undecided.len() == view.undecided.len() {
            return false;
        }
        let mut keep = Vec::with_capacity(view.cover.len() + 1);
        let mut alive = to.undecided.iter().peekable();
        for place in view.undecided {
            let lives = alive.next_if_eq(&place).is_some();
            keep.resize(keep.len() + self.width(*place), lives);
        }
        keep.push(true);
        to.matrix.clear();
        let mut rest = view.matrix;
        for i in 0..keep.len() {
            let (row, next) = rest.split_at(keep.len() - i);
            rest = next;
            if keep[i] {
                let kept = row.iter().zip(&keep[i..]).filter(|(_, keep)| **keep);
                to.matrix.extend(kept.map(|(value, _)| *value));
            }
        }
        to.cover.clear();
        let kept = view.cover.iter().zip(&keep).filter(|(_, keep)| **keep);
        to.cover.extend(kept.map(|(value, _)| *value));
        to.taken = view.taken;
        true
    }
}

/// The Schur complement of the first of so many columns.
fn eliminate(from: &[f64], columns: usize, to: &mut Vec<f64>) {
    let (first, mut rest) = from.split_at(columns + 1);
    let reciprocal = 1.0 / first[0];
    to.resize(rest.len(), 0.0);
    let mut written = &mut to[..];
    for i in 1..=columns {
        let factor = first[i] * reciprocal;
        let width = columns + 1 - i;
        let (row, next) = rest.split_at(width);
        let (new, after) = written.split_at_mut(width);
        for ((new, old), other) in new.iter_mut().zip(row).zip(&first[i..]) {
            *new = old - factor * other;
        }
        (rest, written) = (next, after);
    }
}

impl TreeNode {
    pub fn empty() -> TreeNode {
        let taken = Taken { places: Subset::EMPTY, count: 0, log_scale: 0.0, reciprocal: 1.0 };
        TreeNode { undecided: Vec::new(), matrix: Vec::new(), cover: Vec::new(), taken }
    }

    pub fn view(&self) -> View<'_> {
        View {
            undecided: &self.undecided,
            matrix: &self.matrix,
            cover: &self.cover,
            taken: self.taken,
        }
    }

    /// The two nodes below: with the first undecided term and without it.
    pub fn split(&self, tree: &Tree) -> (Option<TreeNode>, TreeNode) {
        let view = self.view();
        let mut with = TreeNode::empty();
        let taken = tree.take(&view, &mut with).then_some(with);
        let rest = tree.leave(view);
        let mut without = TreeNode::empty();
        if !tree.prune(&rest, view.undecided[0], &mut without) {
            without = TreeNode {
                undecided: rest.undecided.to_vec(),
                matrix: rest.matrix.to_vec(),
                cover: rest.cover.to_vec(),
                taken: rest.taken,
            };
        }
        (taken, without)
    }
}

impl<'a, V: Visitor> Walker<'a, V> {
    pub fn new(tree: &'a Tree, visitor: V, budget: &'a WalkBudget) -> Walker<'a, V> {
        Walker { tree, visitor, leaves: Leaves::new(), rest: 0.0, nodes: 0, told: 0, budget }
    }

    /// Walks a node's models; gives the sum of their weights.
    pub fn walk(&mut self, node: &TreeNode) -> f64 {
        let mut levels = Vec::new();
        let total = self.enter(node.view(), &mut levels, 0);
        self.budget.add(self.nodes - self.told);
        self.told = self.nodes;
        total
    }

    fn count(&mut self) {
        self.nodes += 1;
        if self.nodes - self.told >= 1024 {
            self.budget.add(self.nodes - self.told);
            self.told = self.nodes;
        }
    }

    fn enter(&mut self, view: View, levels: &mut Vec<TreeNode>, depth: usize) -> f64 {
        let tree = self.tree;
        match &tree.bounds {
            Some(bounds) if view.undecided.len() > FEW => {
                self.bounded(bounds, view, true, levels, depth)
            }
            _ => self.all(view, levels, depth),
        }
    }

    /// Walks all models of a node.
    fn all(&mut self, mut view: View, levels: &mut Vec<TreeNode>, depth: usize) -> f64 {
        let tree = self.tree;
        let mut total = 0.0;
        while !tree.is_last(view.undecided) {
            if self.budget.is_spent() {
                return total;
            }
            total += self.child(view, levels, depth);
            let out = view.undecided[0];
            view = tree.leave(view);
            if tree.places[out].has_children {
                let mut next = take_level(levels, depth);
                let pruned = tree.prune(&view, out, &mut next);
                if pruned {
                    total += self.all(next.view(), levels, depth + 1);
                }
                levels[depth] = next;
                if pruned {
                    return total;
                }
            }
        }
        total + self.models(view)
    }

    /// Takes the first undecided term in and walks what is below.
    fn child(&mut self, view: View, levels: &mut Vec<TreeNode>, depth: usize) -> f64 {
        self.count();
        let mut total = 0.0;
        let mut next = take_level(levels, depth);
        if self.tree.take(&view, &mut next) {
            total = self.enter(next.view(), levels, depth + 1);
            self.visitor.took(view.undecided[0], total);
        }
        levels[depth] = next;
        total
    }

    /// Decides the last terms side by side.
    fn models(&mut self, view: View) -> f64 {
        self.count();
        let tree = self.tree;
        let mut noise = [0.0; LAST];
        for (slot, &place) in noise.iter_mut().zip(view.undecided) {
            *slot = tree.places[place].noise[0];
        }
        let (log_prior, prior) = &tree.priors[view.taken.count];
        let log_scale = view.taken.log_scale + log_prior - tree.reference;
        let noise = &noise[..view.undecided.len()];
        self.leaves.decide(view.matrix, noise, view.taken.reciprocal, log_scale, prior);
        self.visitor.models(tree, &view.taken, view.undecided, &self.leaves)
    }

    /// Walks the models of a node but for subtrees that hold too little: first, if `own`, the one that takes none
    /// of the undecided, then those of which a term is the first that they take.
    fn bounded(
        &mut self,
        bounds: &WalkBounds,
        mut view: View,
        own: bool,
        levels: &mut Vec<TreeNode>,
        depth: usize,
    ) -> f64 {
        let tree = self.tree;
        let mut total = 0.0;
        if own {
            let last = view.matrix.len() - 1;
            let matrix = &view.matrix[last..];
            total += self.models(View { undecided: &[], matrix, cover: &[], ..view });
        }
        for part in bounds.parts(tree, &view) {
            if self.budget.is_spent() {
                break;
            }
            if part.from_here <= bounds.least {
                self.rest += part.from_here;
                break;
            }
            if part.first <= bounds.least {
                self.rest += part.first;
            } else {
                total += self.child(view, levels, depth);
            }
            let out = view.undecided[0];
            view = tree.leave(view);
            if tree.places[out].has_children {
                let mut next = take_level(levels, depth);
                let pruned = tree.prune(&view, out, &mut next);
                if pruned {
                    total += self.bounded(bounds, next.view(), false, levels, depth + 1);
                }
                levels[depth] = next;
                if pruned {
                    break;
                }
            }
        }
        total
    }
}

/// The buffers of a depth, taken out so that deeper ones can be used meanwhile.
fn take_level(levels: &mut Vec<TreeNode>, depth: usize) -> TreeNode {
    if levels.len() <= depth {
        levels.resize_with(depth + 1, TreeNode::empty);
    }
    std::mem::replace(&mut levels[depth], TreeNode::empty())
}
