//! What walking all models of a space costs: whole, with bounds, with heredity; and a step of Gibbs.
//! Run with: cargo bench --workspace --bench space (`-- 2` for two threads; one otherwise)

use consilience::math::{Matrix, Stream, stream, ziggurat};
use consilience::space::{Candidate, Heredity, ModelPrior, Quadratic, Space, Walk, gibbs, sum};
use std::time::Instant;

/// n rows of columns with correlations 0.5^|i−j|, unit normal priors, and effects `strength` standard errors
/// from 0 for some of the terms.
fn problem(p: usize, n: f64, effects: &[(usize, f64)], rng: &mut Stream) -> Quadratic {
    let mut precision = Matrix::zeros(p, p);
    for i in 0..p {
        for j in 0..p {
            precision[(i, j)] = n * 0.5f64.powi(i.abs_diff(j) as i32);
        }
    }
    let factor = consilience::math::Cholesky::new(&precision).unwrap();
    let mut truth = vec![0.0; p];
    effects.iter().for_each(|&(j, strength)| truth[j] = strength / n.sqrt());
    let mut slope = precision.times(&truth);
    let noise: Vec<f64> = (0..p).map(|_| ziggurat::normal(rng)).collect();
    let noise = factor.lower().times(&noise);
    slope.iter_mut().zip(noise).for_each(|(s, e)| *s += e);
    for j in 0..p {
        precision[(j, j)] += 1.0;
    }
    Quadratic { constant: 0.0, precision, slope, gain: vec![0.0; p] }
}

fn terms(p: usize) -> Vec<Candidate> {
    (0..p)
        .map(|j| Candidate { label: format!("x{j}"), columns: vec![j], parents: Vec::new() })
        .collect()
}

fn walk(name: &str, space: &Space, quadratic: &Quadratic, tolerance: f64) {
    let walk = Walk { top: 1000, tolerance, most_nodes: 20_000_000 };
    let start = Instant::now();
    let found = sum(space, quadratic, &walk).unwrap();
    let seconds = start.elapsed().as_secs_f64();
    match found {
        Some(sums) => println!(
            "{name}: {seconds:.3} s, {:.3e} models of {:.3e}, {:.1} million/s, {} nodes, rest {:.1e}",
            sums.visited,
            space.models(),
            sums.visited / seconds / 1e6,
            sums.nodes,
            (sums.log_rest - sums.log_total).exp()
        ),
        None => println!("{name}: gave up after {seconds:.3} s"),
    }
}

fn main() {
    // Threads by the first argument that is a number; one if there is none.
    let threads = std::env::args().find_map(|a| a.parse().ok()).unwrap_or(1);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let prior = ModelPrior::default();
        let effects = [(2, 20.0), (7, 9.0), (11, 6.0), (12, -7.0), (18, 4.0), (5, 2.5)];
        for p in [20, 22, 25] {
            let mut rng = stream(p as u64, 0, 0, "bench");
            let quadratic = problem(p, 1e4, &effects, &mut rng);
            let space = Space::new(terms(p), Heredity::None, p, &prior).unwrap();
            walk(&format!("all, P = {p}"), &space, &quadratic, 0.0);
        }
        for (p, seed) in [(40, 1), (60, 1), (60, 2), (60, 3), (80, 1)] {
            let mut rng = stream(seed, 0, 0, "bench");
            let quadratic = problem(p, 1e5, &effects, &mut rng);
            let space = Space::new(terms(p), Heredity::None, p, &prior).unwrap();
            walk(&format!("bounds, P = {p}"), &space, &quadratic, 1e-4);
        }
        let mut pairs = terms(10);
        for a in 0..10 {
            for b in a + 1..10 {
                let label = format!("x{a}:x{b}");
                pairs.push(Candidate { label, columns: vec![pairs.len()], parents: vec![a, b] });
            }
        }
        let mut rng = stream(9, 0, 0, "bench");
        let quadratic = problem(55, 1e5, &effects, &mut rng);
        let space = Space::new(pairs, Heredity::Strong, 55, &prior).unwrap();
        walk("strong heredity, 10 and 45", &space, &quadratic, 1e-4);
        for p in [100, 300] {
            let mut rng = stream(p as u64, 0, 0, "bench");
            let quadratic = problem(p, 1e5, &effects, &mut rng);
            let space = Space::new(terms(p), Heredity::None, p, &prior).unwrap();
            let steps = 2_000_000 / p;
            let start = Instant::now();
            let found = gibbs(&space, &quadratic, steps, &mut rng).unwrap();
            // A tenth more goes before a chain counts.
            let micros = start.elapsed().as_secs_f64() * 1e6 / (1.1 * steps as f64);
            println!(
                "Gibbs, P = {p}: {micros:.2} µs a step, {} models, log total ± {:.1e}, unseen {:.1e} ± {:.1e}",
                found.models.len(),
                found.log_total_se,
                found.unseen,
                found.unseen_se
            );
        }
    });
}
