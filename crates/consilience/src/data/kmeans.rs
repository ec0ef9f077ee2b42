//! k-means clusters of rows, for splits that are stratified by the predictors.

use crate::math::Stream;
use rand::RngExt;
use rand::seq::index::sample;
use serde::{Deserialize, Serialize};

/// Tries of which the tightest is kept.
const STARTS: usize = 5;
/// Centres are found on at most this many rows, and all rows then go to the nearest.
const SAMPLE: usize = 20_000;
const ITERATIONS: usize = 50;

/// In which units distances are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ClusterOn {
    /// Every column's standard deviation.
    #[default]
    Scaled,
    /// The columns' own: those with large numbers decide.
    Raw,
}

/// The cluster of every row: k-means++ starts and Lloyd's iterations on centred columns.
/// Columns without spread are left out.
pub fn cluster(
    columns: &[&[f64]],
    rows: usize,
    clusters: usize,
    on: ClusterOn,
    rng: &mut Stream,
) -> Vec<u32> {
    let points = points(columns, rows, on);
    let d = points.len().checked_div(rows).unwrap_or(0);
    if d == 0 || clusters < 2 {
        return vec![0; rows];
    }
    let chosen = sample(rng, rows, rows.min(SAMPLE)).into_vec();
    let sampled: Vec<f64> =
        chosen.iter().flat_map(|&r| points[r * d..(r + 1) * d].iter().copied()).collect();
    let mut best: Option<(f64, Vec<f64>)> = None;
    for _ in 0..STARTS {
        let (spread, centres) = lloyd(&sampled, plus_plus(&sampled, d, clusters, rng), d);
        if best.as_ref().is_none_or(|(least, _)| spread < *least) {
            best = Some((spread, centres));
        }
    }
    let centres = best.map(|(_, centres)| centres).unwrap_or_default();
    points.chunks_exact(d).map(|point| nearest(point, &centres, d).0 as u32).collect()
}

/// Rows of columns with mean 0, and variance 1 if they are to be scaled, row after row.
fn points(columns: &[&[f64]], rows: usize, on: ClusterOn) -> Vec<f64> {
    let n = rows as f64;
    let scales: Vec<(usize, f64, f64)> = columns
        .iter()
        .enumerate()
        .filter_map(|(j, column)| {
            let mean = column.iter().sum::<f64>() / n;
            let variance = column.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
            let unit = if on == ClusterOn::Raw { 1.0 } else { variance.sqrt() };
            (variance > 1e-24 * (1.0 + mean * mean)).then_some((j, mean, unit))
        })
        .collect();
    let row = |r: usize| scales.iter().map(move |&(j, mean, unit)| (columns[j][r] - mean) / unit);
    (0..rows).flat_map(row).collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum()
}

/// The nearest centre and its squared distance.
fn nearest(point: &[f64], centres: &[f64], d: usize) -> (usize, f64) {
    let mut best = (0, f64::INFINITY);
    for (k, centre) in centres.chunks_exact(d).enumerate() {
        let far = distance(point, centre);
        if far < best.1 {
            best = (k, far);
        }
    }
    best
}

/// Starting centres, each new one drawn with probability in proportion to the squared distance from
/// those before it (Arthur & Vassilvitskii 2007).
fn plus_plus(points: &[f64], d: usize, clusters: usize, rng: &mut Stream) -> Vec<f64> {
    let n = points.len() / d;
    let mut next = rng.random_range(0..n);
    let mut centres = Vec::new();
    let mut far = vec![f64::INFINITY; n];
    loop {
        let centre = &points[next * d..(next + 1) * d];
        centres.extend_from_slice(centre);
        for (f, point) in far.iter_mut().zip(points.chunks_exact(d)) {
            *f = f.min(distance(point, centre));
        }
        let total: f64 = far.iter().sum();
        // With fewer distinct points than clusters there is nothing left to choose.
        if centres.len() == clusters * d || total == 0.0 {
            return centres;
        }
        let mut left = rng.random::<f64>() * total;
        next = far
            .iter()
            .position(|f| {
                left -= f;
                left < 0.0
            })
            .unwrap_or(n - 1);
    }
}

/// Moves centres to the means of their points until nothing changes; also the sum of squares.
fn lloyd(points: &[f64], mut centres: Vec<f64>, d: usize) -> (f64, Vec<f64>) {
    let mut spread = f64::INFINITY;
    for _ in 0..ITERATIONS {
        let mut sums = vec![0.0; centres.len()];
        let mut counts = vec![0.0; centres.len() / d];
        let mut now = 0.0;
        for point in points.chunks_exact(d) {
            let (k, far) = nearest(point, &centres, d);
            now += far;
            counts[k] += 1.0;
            sums[k * d..(k + 1) * d].iter_mut().zip(point).for_each(|(s, x)| *s += x);
        }
        if now >= spread {
            break;
        }
        spread = now;
        for (k, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0.0) {
            for j in k * d..(k + 1) * d {
                centres[j] = sums[j] / count;
            }
        }
    }
    (spread, centres)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::stream;

    #[test]
    fn finds_groups_that_lie_apart() {
        // Three groups on a line, of unlike size, with a constant column beside them.
        let x: Vec<f64> = (0..300)
            .map(|i| {
                [0.0, 10.0, 30.0][usize::from(i >= 50) + usize::from(i >= 200)]
                    + (i % 7) as f64 * 0.1
            })
            .collect();
        let constant = vec![5.0; 300];
        for seed in 1..=20 {
            let found = cluster(
                &[&constant, &x],
                300,
                3,
                ClusterOn::Scaled,
                &mut stream(seed, 0, 0, "test"),
            );
            let groups = [&found[..50], &found[50..200], &found[200..]];
            for group in groups {
                assert!(group.iter().all(|k| *k == group[0]), "seed {seed}");
            }
            assert!(groups[0][0] != groups[1][0] && groups[1][0] != groups[2][0]);
        }
    }

    /// A column of large numbers without groups drowns one of small numbers with two, unless both are scaled.
    #[test]
    fn units_decide_what_is_near() {
        let rows = 400;
        let wide: Vec<f64> = (0..rows).map(|i| 1000.0 * (i * 37 % rows) as f64).collect();
        let groups: Vec<f64> = (0..rows).map(|i| (i % 2) as f64).collect();
        for seed in 1..=10 {
            let of = |columns: &[&[f64]], on| {
                cluster(columns, rows, 2, on, &mut stream(seed, 0, 0, "test"))
            };
            // How many rows have a cluster other than their group's, whatever the clusters' names.
            let astray = |found: &[u32]| {
                let other =
                    found.iter().zip(&groups).filter(|(k, g)| f64::from(**k) != **g).count();
                other.min(rows - other)
            };
            let raw = of(&[&wide, &groups], ClusterOn::Raw);
            // The wide column is cut in two near its middle, as it would be alone.
            let alone = of(&[&wide], ClusterOn::Raw);
            let differ = raw.iter().zip(&alone).filter(|(a, b)| a != b).count();
            assert!(differ.min(rows - differ) <= rows / 50, "seed {seed}: {differ}");
            assert!(astray(&raw) > rows / 3, "seed {seed}");
            let scaled = of(&[&wide, &groups], ClusterOn::Scaled);
            assert_eq!(astray(&scaled), 0, "seed {seed}");
        }
    }

    #[test]
    fn nothing_to_cluster_by_is_one_cluster() {
        let mut rng = stream(1, 0, 0, "test");
        assert_eq!(cluster(&[], 3, 10, ClusterOn::Scaled, &mut rng), [0, 0, 0]);
        assert_eq!(cluster(&[&[2.0; 4]], 4, 10, ClusterOn::Raw, &mut rng), [0; 4]);
        let two = cluster(&[&[1.0, 2.0, 1.0, 2.0]], 4, 10, ClusterOn::Raw, &mut rng);
        assert!(two[0] == two[2] && two[1] == two[3] && two[0] != two[1]);
    }
}
