//! Draws of models, by the walk that made the sums.

use super::leaves::{Leaves, MOST};
use super::reduced::Reduced;
use super::sums::{Sums, plant, with};
use super::sweep::climb;
use super::tree::{Taken, Tree, Visitor, WalkBudget, Walker};
use super::{Quadratic, Space, Subset};
use rayon::prelude::*;

/// The models at these positions, from 0 to 1 and ascending, of the cumulative distributions of w and of √w in the
/// order of the walk that made the sums, each with its log w.
#[allow(clippy::type_complexity)]
pub fn draw(
    space: &Space,
    quadratic: &Quadratic,
    sums: &Sums,
    by_weight: &[f64],
    by_root: &[f64],
) -> (Vec<(Subset, f64)>, Vec<(Subset, f64)>) {
    let Ok(reduced) = Reduced::new(space, quadratic) else {
        return (Vec::new(), Vec::new());
    };
    let path = &sums.path;
    let (tree, nodes, _) = plant(space, &reduced, &climb(space, &reduced), path);
    let weights: Vec<f64> = path.parts.iter().map(|part| part.0).collect();
    let roots: Vec<f64> = path.parts.iter().map(|part| part.1).collect();
    let (by_weight, by_root) = (shares(by_weight, &weights), shares(by_root, &roots));
    let budget = WalkBudget::new(u64::MAX);
    let drawn: Vec<(Vec<(Subset, f64)>, Vec<(Subset, f64)>)> = nodes
        .par_iter()
        .zip(by_weight.par_iter().zip(&by_root))
        .with_max_len(1)
        .map(|(node, (by_weight, by_root))| {
            if by_weight.is_empty() && by_root.is_empty() {
                return (Vec::new(), Vec::new());
            }
            let visitor =
                ModelPick { by_weight: Queue::new(by_weight), by_root: Queue::new(by_root) };
            let mut walker = Walker::new(&tree, visitor, &budget);
            walker.walk(node);
            (walker.visitor.by_weight.finish(), walker.visitor.by_root.finish())
        })
        .collect();
    let mut out = (Vec::new(), Vec::new());
    for (by_weight, by_root) in drawn {
        out.0.extend(by_weight);
        out.1.extend(by_root);
    }
    out
}

/// Per subtree, how far into its own sum the positions in it are.
fn shares(positions: &[f64], parts: &[f64]) -> Vec<Vec<f64>> {
    let total: f64 = parts.iter().sum();
    let last = parts.iter().rposition(|part| *part > 0.0).unwrap_or(0);
    let mut shares = vec![Vec::new(); parts.len()];
    let (mut part, mut before) = (0, 0.0);
    for position in positions {
        let at = position * total;
        while part < last && at >= before + parts[part] {
            before += parts[part];
            part += 1;
        }
        if let Some(list) = shares.get_mut(part) {
            list.push(at - before);
        }
    }
    shares
}

/// Positions that wait for the cumulative sum to pass them.
struct Queue<'a> {
    positions: &'a [f64],
    passed: f64,
    drawn: Vec<(Subset, f64)>,
    /// The last model that weighs anything: rounding may leave a position beyond the end.
    latest: Option<(Subset, f64)>,
}

impl<'a> Queue<'a> {
    fn new(positions: &'a [f64]) -> Queue<'a> {
        Queue { positions, passed: 0.0, drawn: Vec::new(), latest: None }
    }

    fn pass(&mut self, total: f64, each: &[f64], model: impl Fn(usize) -> (Subset, f64)) {
        let next = self.drawn.len();
        // Within the last step of rounding, a model is kept for positions beyond the end.
        if next < self.positions.len() && total > 0.0 {
            let until = self.passed + total;
            if self.positions[next] < until || self.positions[next] <= until * (1.0 + 1e-9) {
                let mut before = self.passed;
                for (i, &weight) in each.iter().enumerate().filter(|(_, w)| **w > 0.0) {
                    before += weight;
                    let mut found = None;
                    while let Some(position) = self.positions.get(self.drawn.len())
                        && *position < before
                    {
                        self.drawn.push(*found.get_or_insert_with(|| model(i)));
                    }
                    self.latest = Some(found.unwrap_or_else(|| model(i)));
                }
            }
        }
        self.passed += total;
    }

    fn finish(mut self) -> Vec<(Subset, f64)> {
        if let Some(latest) = self.latest {
            self.drawn.resize(self.positions.len(), latest);
        }
        self.drawn
    }
}

/// Draws from a subtree.
struct ModelPick<'a> {
    by_weight: Queue<'a>,
    by_root: Queue<'a>,
}

impl Visitor for ModelPick<'_> {
    fn models(&mut self, tree: &Tree, taken: &Taken, last: &[usize], leaves: &Leaves) -> f64 {
        let each = &leaves.weight[..leaves.count];
        let model = |i: usize| {
            (tree.terms(&with(taken.places, last, i)), tree.log_weight(taken, leaves, i))
        };
        let total: f64 = each.iter().sum();
        if !self.by_weight.positions.is_empty() {
            self.by_weight.pass(total, each, model);
        }
        if !self.by_root.positions.is_empty() {
            let mut roots = [0.0; MOST];
            roots.iter_mut().zip(each).for_each(|(root, weight)| *root = weight.sqrt());
            let roots = &roots[..leaves.count];
            self.by_root.pass(roots.iter().sum(), roots, model);
        }
        total
    }

    fn took(&mut self, _: usize, _: f64) {}
}
