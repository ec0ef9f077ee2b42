//! Integrals of e^g over the whole line, where g may have several peaks, kinks and heavy tails.
//!
//! Peaks are looked for on a mesh that the caller knows to be fine enough. Around every peak stand panels
//! whose widths grow with the distance from it, as far out as anything counts: a tail that falls like a
//! power is reached as well as one that falls like a normal's. On every panel the 15-point Kronrod rule
//! works, and panels are halved until its own estimate of the error is small.

use libm::{exp, log};

/// Kronrod's nodes from the edge to the middle, their weights, and the weights of Gauss' seven among them.
const NODES: [f64; 8] = [
    0.991_455_371_120_812_6,
    0.949_107_912_342_758_5,
    0.864_864_423_359_769_1,
    0.741_531_185_599_394_4,
    0.586_087_235_467_691_1,
    0.405_845_151_377_397_2,
    0.207_784_955_007_898_47,
    0.0,
];
const WEIGHTS: [f64; 8] = [
    0.022_935_322_010_529_224,
    0.063_092_092_629_978_55,
    0.104_790_010_322_250_18,
    0.140_653_259_715_525_92,
    0.169_004_726_639_267_9,
    0.190_350_578_064_785_4,
    0.204_432_940_075_298_9,
    0.209_482_141_084_727_82,
];
const GAUSS: [f64; 4] = [
    0.129_484_966_168_869_7,
    0.279_705_391_489_276_64,
    0.381_830_050_505_118_9,
    0.417_959_183_673_469_4,
];

/// Nats below the largest peak's mass at which a panel no longer counts.
const NEGLIGIBLE: f64 = 44.0;

/// How much wider a panel is than the one before it on the way out.
const GROWTH: f64 = 2.5;

/// As far out as anything is looked for.
const FURTHEST: f64 = 1e290;

/// The most panels.
const MOST_PANELS: usize = 2_000;

/// A node of the rule that an integral came from.
#[derive(Debug, Clone, Copy)]
pub struct LineNode {
    /// Where it is.
    pub x: f64,
    /// The cell that it stands for: the cells of all nodes cover the line as far as it counts.
    pub cell: (f64, f64),
    /// g(x).
    pub height: f64,
}

/// An integral with the nodes that it came from.
#[derive(Debug, Clone)]
pub struct LineIntegral {
    /// log ∫ e^g.
    pub log_integral: f64,
    /// The estimated relative error.
    pub error: f64,
    /// The nodes from left to right, but for those that do not count.
    pub nodes: Vec<LineNode>,
}

impl LineNode {
    /// What its cell adds to the integral, relative to e^`top`.
    pub fn mass(&self, top: f64) -> f64 {
        (self.cell.1 - self.cell.0) * exp(self.height - top)
    }
}

/// One panel and the rule's nodes in it.
struct Panel {
    from: f64,
    to: f64,
    heights: [f64; 15],
}

impl Panel {
    fn new(g: &dyn Fn(f64) -> f64, from: f64, to: f64) -> Panel {
        let (middle, half) = (0.5 * from + 0.5 * to, 0.5 * to - 0.5 * from);
        let heights = std::array::from_fn(|i| floor(g(middle + half * node(i).0)));
        Panel { from, to, heights }
    }

    /// The integral and its error, both relative to e^top.
    fn value(&self, top: f64) -> (f64, f64) {
        let heights = self.heights.map(|height| exp(height - top));
        let (mut fine, mut coarse) = (0.0, 0.0);
        for (i, height) in heights.iter().enumerate() {
            let (_, weight, gauss) = node(i);
            fine += weight * height;
            coarse += gauss * height;
        }
        let mean = 0.5 * fine;
        let spread: f64 =
            heights.iter().enumerate().map(|(i, h)| node(i).1 * (h - mean).abs()).sum();
        let half = 0.5 * (self.to - self.from);
        let mut error = (fine - coarse).abs();
        // The finer rule is better than its difference to the coarser one, as Piessens and others found.
        if spread > 0.0 {
            let ratio = (200.0 * error / spread).min(1.0);
            error = spread * ratio * ratio.sqrt();
        }
        (half * fine, half * error)
    }
}

/// Kronrod's node i of 15 from left to right, its weight, and Gauss' (0 if it is none of his).
fn node(i: usize) -> (f64, f64, f64) {
    let k = if i < 8 { i } else { 14 - i };
    let gauss = if k % 2 == 1 { GAUSS[k / 2] } else { 0.0 };
    (if i < 8 { -NODES[k] } else { NODES[k] }, WEIGHTS[k], gauss)
}

/// A value that is none belongs to a point so far out that nothing is there.
fn floor(height: f64) -> f64 {
    if height.is_nan() { f64::NEG_INFINITY } else { height }
}

/// log ∫ e^g over the line to this relative accuracy. `mesh` (sorted) holds points close enough together
/// that every peak shows in the values there; `breaks` holds points where g has a kink or something else
/// that happens at a scale of its own. `None` if e^g is 0 on the mesh, or its integral infinite.
pub fn integrate(
    g: &dyn Fn(f64) -> f64,
    mesh: &[f64],
    breaks: &[f64],
    accuracy: f64,
) -> Option<LineIntegral> {
    let peaks = peaks(g, mesh);
    let mass = |peak: &LinePeak| peak.height + log(peak.width());
    let greatest = peaks.iter().map(mass).fold(f64::NEG_INFINITY, f64::max);
    if !greatest.is_finite() {
        return None;
    }
    let mut edges: Vec<f64> = Vec::new();
    let mut beyond: f64 = 0.0;
    for peak in peaks.iter().filter(|peak| mass(peak) > greatest - NEGLIGIBLE) {
        edges.push(peak.at);
        for sign in [-1.0, 1.0] {
            let mut distance = 1.25 * peak.width();
            loop {
                let at = peak.at + sign * distance;
                edges.push(at);
                let left = floor(g(at)) + log(distance) - greatest;
                if left < -NEGLIGIBLE {
                    break;
                }
                if distance > FURTHEST {
                    beyond += exp(left);
                    break;
                }
                distance *= GROWTH;
            }
        }
    }
    let (low, high) = edges.iter().fold((f64::MAX, f64::MIN), |(a, b), &x| (a.min(x), b.max(x)));
    edges.extend(breaks.iter().filter(|x| low < **x && **x < high));
    edges.sort_unstable_by(f64::total_cmp);
    edges.dedup();
    let panels = edges.windows(2).map(|pair| Panel::new(g, pair[0], pair[1])).collect();
    Some(refined(g, panels, accuracy, beyond))
}

/// Halves panels until their errors are small together; `beyond` is what they do not reach, in terms of
/// the largest peak.
fn refined(
    g: &dyn Fn(f64) -> f64,
    mut panels: Vec<Panel>,
    accuracy: f64,
    beyond: f64,
) -> LineIntegral {
    loop {
        let top = panels.iter().flat_map(|p| p.heights).fold(f64::NEG_INFINITY, f64::max);
        let found: Vec<(f64, f64)> = panels.iter().map(|p| p.value(top)).collect();
        let total: f64 = found.iter().map(|f| f.0).sum();
        let error: f64 = found.iter().map(|f| f.1).sum();
        let most = 0.5 * accuracy * total / panels.len() as f64;
        let done = error <= accuracy * total || panels.len() > MOST_PANELS;
        let wide = |p: &Panel| p.to - p.from > 64.0 * f64::EPSILON * p.from.abs().max(p.to.abs());
        let split: Vec<bool> =
            panels.iter().zip(&found).map(|(p, f)| !done && f.1 > most && wide(p)).collect();
        if !split.contains(&true) {
            let log_integral = top + log(total);
            let nodes = nodes(&panels, log_integral);
            return LineIntegral { log_integral, error: error / total + beyond, nodes };
        }
        let old = std::mem::take(&mut panels);
        for (panel, split) in old.into_iter().zip(split) {
            if split {
                let middle = 0.5 * (panel.from + panel.to);
                panels.push(Panel::new(g, panel.from, middle));
                panels.push(Panel::new(g, middle, panel.to));
            } else {
                panels.push(panel);
            }
        }
    }
}

/// The nodes that count.
fn nodes(panels: &[Panel], log_integral: f64) -> Vec<LineNode> {
    let mut out = Vec::new();
    for panel in panels {
        let (middle, half) = (0.5 * (panel.from + panel.to), 0.5 * (panel.to - panel.from));
        let mut edge = panel.from;
        for (i, &height) in panel.heights.iter().enumerate() {
            let (place, weight, _) = node(i);
            let end = if i == 14 { panel.to } else { edge + half * weight };
            if height + log(end - edge) > log_integral - NEGLIGIBLE {
                out.push(LineNode { x: middle + half * place, cell: (edge, end), height });
            }
            edge = end;
        }
    }
    out
}

/// A local maximum between two points that are about half a nat lower, or as close as numbers come.
struct LinePeak {
    from: f64,
    at: f64,
    to: f64,
    height: f64,
}

impl LinePeak {
    fn width(&self) -> f64 {
        self.to - self.from
    }
}

/// All peaks that show on the mesh, which is made longer where g still rises at its ends.
fn peaks(g: &dyn Fn(f64) -> f64, mesh: &[f64]) -> Vec<LinePeak> {
    let mut points: Vec<(f64, f64)> = mesh.iter().map(|&x| (x, floor(g(x)))).collect();
    for _end in 0..2 {
        // The ends in turn, each as the last of the list.
        points.reverse();
        let (Some(last), Some(before)) = (points.last(), points.iter().rev().nth(1)) else { break };
        let (mut step, mut height) = (last.0 - before.0, last.1);
        let mut x = last.0;
        let mut before = before.1;
        while height >= before && height > f64::NEG_INFINITY && x.abs() < FURTHEST {
            (x, before) = (x + step, height);
            height = floor(g(x));
            points.push((x, height));
            step *= 2.0;
        }
    }
    let mut out = Vec::new();
    let mut start = 0;
    for i in 0..points.len() {
        if points[i].1 != points[start].1 {
            start = i;
        }
        let (first, next) = (start.checked_sub(1), points.get(i + 1));
        let (Some(first), Some(&next)) = (first, next) else { continue };
        // Up before a flat stretch (or a single point) and down after it.
        if points[first].1 < points[i].1 && next.1 < points[i].1 {
            out.push(refine(g, points[first], points[(start + i) / 2], next));
        }
    }
    out
}

/// Narrows a bracket of a maximum by golden sections.
fn refine(
    g: &dyn Fn(f64) -> f64,
    mut low: (f64, f64),
    mut top: (f64, f64),
    mut high: (f64, f64),
) -> LinePeak {
    const GOLDEN: f64 = 0.381_966_011_250_105;
    for _ in 0..200 {
        let close = high.0 - low.0 <= 16.0 * f64::EPSILON * top.0.abs();
        if close || top.1 - low.1.min(high.1) < 0.6 {
            break;
        }
        let left = top.0 - low.0 > high.0 - top.0;
        let edge = if left { low.0 } else { high.0 };
        let x = top.0 + GOLDEN * (edge - top.0);
        let probe = (x, floor(g(x)));
        if probe.1 > top.1 {
            if left {
                high = top
            } else {
                low = top
            }
            top = probe;
        } else if left {
            low = probe;
        } else {
            high = probe;
        }
    }
    LinePeak { from: low.0, at: top.0, to: high.0, height: top.1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::LOG_2PI;
    use std::f64::consts::PI;

    fn mesh(from: i32, to: i32) -> Vec<f64> {
        (4 * from..=4 * to).map(|i| 0.25 * f64::from(i)).collect()
    }

    fn check(g: &dyn Fn(f64) -> f64, mesh: &[f64], breaks: &[f64], exact: f64) {
        let found = integrate(g, mesh, breaks, 1e-12).unwrap();
        let off = (found.log_integral - exact).abs();
        assert!(
            off < 1e-10 && found.error < 1e-10,
            "{found:?} is not {exact}",
            found = found.log_integral
        );
        let sum: f64 = found.nodes.iter().map(|n| n.mass(found.log_integral)).sum();
        assert!((sum - 1.0).abs() < 1e-10);
        assert!(found.nodes.windows(2).all(|w| w[0].cell.1 <= w[1].cell.0 + 1e-12));
    }

    #[test]
    fn densities_have_integral_one() {
        for (mean, sd) in [(0.3, 1.0), (7.1, 1e-6), (-3.0, 40.0), (1e5, 2.0)] {
            let normal = |x: f64| -0.5 * ((x - mean) / sd).powi(2) - 0.5 * LOG_2PI - f64::ln(sd);
            check(&normal, &mesh(-10, 10), &[], 0.0);
            let cauchy = |x: f64| -(PI * sd * (1.0 + ((x - mean) / sd).powi(2))).ln();
            check(&cauchy, &[-1.0 + mean, mean, 1.0 + mean], &[], 0.0);
            let laplace = |x: f64| -(x - mean).abs() / sd - (2.0 * sd).ln();
            check(&laplace, &[mean - 1.0, mean, mean + 1.0], &[mean], 0.0);
        }
    }

    #[test]
    fn two_peaks_are_both_seen() {
        let g = |x: f64| {
            let one = -0.5 * ((x - 2.0) / 1e-3).powi(2);
            let other = -0.5 * ((x + 3.0) / 0.7).powi(2) - 3.0;
            one.max(other) + (-(one - other).abs()).exp().ln_1p()
        };
        let exact = (1e-3 + 0.7 * f64::exp(-3.0)).ln() + 0.5 * LOG_2PI;
        check(&g, &mesh(-20, 20), &[], exact);
    }
}
