//! Draws of the no-U-turn sampler as statistics: against distributions that are known, and laws that hold to the bit.

use consilience::Target;
use consilience::estimate::Mode;
use consilience::estimate::newton::find_mode;
use consilience::math::ziggurat::normal;
use consilience::math::{Cholesky, Matrix, stream};
use consilience::sample::nuts::{NutsLengths, nuts};
use consilience::sample::{Chain, Sample};

use rand::RngExt;

/// A quantity of which the expectation is known.
type Function<'a> = &'a dyn Fn(&[f64]) -> f64;

/// One chain of the stream of this seed.
fn chain(target: &dyn Target, mode: &Mode, draws: usize, warmup: usize, seed: u64) -> Chain {
    sample(target, mode, draws, warmup, seed).chains.remove(0)
}

fn sample(target: &dyn Target, mode: &Mode, draws: usize, warmup: usize, seed: u64) -> Sample {
    nuts(target, mode, NutsLengths { draws, warmup }, vec![stream(seed, 0, 0, "nuts")]).unwrap()
}

/// Coordinates of one's own choice in the place of a mode's: draws must be right in any.
fn coordinates(theta: &[f64], precision: Vec<f64>) -> Mode {
    let precision = Matrix::from_rows(theta.len(), theta.len(), precision);
    let factor = Cholesky::new(&precision).unwrap();
    Mode { theta: theta.to_vec(), value: 0.0, precision, factor, decrement: 0.0 }
}

/// Pearson's χ² of counts that should be equal, as a z-score by Wilson & Hilferty.
fn even(counts: &[usize]) -> f64 {
    let (all, df) = (counts.iter().sum::<usize>() as f64, (counts.len() - 1) as f64);
    let expected = all / counts.len() as f64;
    let square: f64 = counts.iter().map(|&c| (c as f64 - expected).powi(2) / expected).sum();
    ((square / df).cbrt() - 1.0 + 2.0 / (9.0 * df)) / (2.0 / (9.0 * df)).sqrt()
}

/// √n times the largest distance to the uniform distribution function: above 1.95 once in a thousand.
fn kolmogorov(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len() as f64;
    let off = |(k, u): (usize, &f64)| (u - k as f64 / n).max((k + 1) as f64 / n - u);
    n.sqrt() * values.iter().enumerate().map(off).fold(0.0, f64::max)
}

fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

/// A logistic regression on few rows with standard normal priors: skewed, and never the same.
struct Logistic(Vec<(f64, f64)>);

impl Target for Logistic {
    fn dim(&self) -> usize {
        2
    }

    fn log_density_gradient(&self, t: &[f64], gradient: &mut [f64]) -> f64 {
        let mut value = -0.5 * (t[0] * t[0] + t[1] * t[1]);
        gradient.copy_from_slice(&[-t[0], -t[1]]);
        for (x, sign) in &self.0 {
            let eta = sign * (t[0] + t[1] * x);
            value -= (-eta).exp().ln_1p();
            let slope = sign / (1.0 + eta.exp());
            gradient[0] += slope;
            gradient[1] += slope * x;
        }
        value
    }
}

/// Simulation-based calibration (Talts et al. 2018): parameters from the prior, data from the parameters, draws from the
/// posterior. The parameters' rank among the draws is uniform, and so is that of any function, such as the density.
#[test]
fn parameters_from_the_prior_have_uniform_ranks() {
    const RANKS: usize = 32;
    const THIN: usize = 8;
    let mut counts = [[0; RANKS]; 4];
    for seed in 1..=3000 {
        let mut rng = stream(seed, 0, 0, "calibration");
        let theta = [normal(&mut rng), normal(&mut rng)];
        let rows = (0..8).map(|_| {
            let x = 2.0 * normal(&mut rng);
            let chance = 1.0 / (1.0 + (-theta[0] - theta[1] * x).exp());
            (x, if rng.random::<f64>() < chance { 1.0 } else { -1.0 })
        });
        let target = Logistic(rows.collect());
        let mode = find_mode(&target, 1e-9, 100).unwrap().mode;
        let chain = chain(&target, &mode, THIN * (RANKS - 1), 200, seed);
        let functions: [Function; 4] =
            [&|t| t[0], &|t| t[1], &|t| t[0] * t[1], &|t| target.log_density(t)];
        for (function, counts) in functions.iter().zip(&mut counts) {
            let truth = function(&theta);
            let below = (0..RANKS - 1)
                .filter(|k| function(chain.thetas.row(k * THIN + THIN - 1)) < truth)
                .count();
            counts[below] += 1;
        }
    }
    for counts in counts {
        let z = even(&counts);
        println!("ranks: z = {z:+.2}");
        assert!(z < 3.5, "z = {z}: {counts:?}");
    }
}

/// e^x₀ ~ Gamma(3), x₁ logistic, x₂ normal around a wave of x₀: skewed, with tails heavier than a normal's, and bent.
struct Bent;

impl Bent {
    fn ridge(x: f64) -> f64 {
        1.5 * (2.0 * x).sin()
    }

    /// Three independent uniform numbers (Rosenblatt 1952).
    fn uniform(t: &[f64]) -> [f64; 3] {
        let g = t[0].exp();
        let gamma = 1.0 - (-g).exp() * (1.0 + g + 0.5 * g * g);
        [gamma, 1.0 / (1.0 + (-t[1]).exp()), normal_cdf(t[2] - Bent::ridge(t[0]))]
    }

    /// Near enough for a start, and tilted: nothing is where the sampler is told.
    fn mode() -> Mode {
        coordinates(&[0.7, -0.4, 0.9], vec![4.0, 0.5, -0.8, 0.5, 0.6, 0.1, -0.8, 0.1, 1.5])
    }
}

impl Target for Bent {
    fn dim(&self) -> usize {
        3
    }

    fn log_density_gradient(&self, t: &[f64], gradient: &mut [f64]) -> f64 {
        let off = t[2] - Bent::ridge(t[0]);
        gradient[0] = 3.0 - t[0].exp() + off * 3.0 * (2.0 * t[0]).cos();
        gradient[1] = -(0.5 * t[1]).tanh();
        gradient[2] = -off;
        3.0 * t[0] - t[0].exp() - 2.0 * (0.5 * t[1]).cosh().ln() - 0.5 * off * off
    }
}

#[test]
fn draws_of_a_bent_density_are_uniform_where_they_should_be() {
    const THIN: usize = 10;
    for seed in 1..=5 {
        let chain = chain(&Bent, &Bent::mode(), 20_000 * THIN, 1000, seed);
        let us: Vec<[f64; 3]> =
            (0..20_000).map(|k| Bent::uniform(chain.thetas.row(k * THIN))).collect();
        let mut cells = vec![0; 512];
        for u in &us {
            let [a, b, c] = u.map(|u| ((8.0 * u) as usize).min(7));
            cells[64 * a + 8 * b + c] += 1;
        }
        let z = even(&cells);
        let distances = [0, 1, 2].map(|j| kolmogorov(us.iter().map(|u| u[j]).collect()));
        println!("seed {seed}: cells z = {z:+.2}, distances {distances:.2?}");
        assert!(z < 3.5, "seed {seed}: z = {z}");
        assert!(distances.iter().all(|d| *d < 2.0), "seed {seed}: {distances:?}");
    }
}

/// (mean − expectation)/error over many seeds is standard normal. The last one is the kinetic energy at a draw: the
/// momentum there is standard normal whatever the density, so that twice the energy is χ² with three degrees of freedom.
#[test]
fn moments_are_within_their_errors() {
    const SEEDS: u64 = 200;
    let functions: [(Function, f64, &str); 6] = [
        // ψ(3), and the mean of a gamma variable.
        (&|t| t[0], 0.922_784_335_098_467_1, "x0"),
        (&|t| t[0].exp(), 3.0, "exp x0"),
        (&|t| t[1], 0.0, "x1"),
        (&|t| t[1] * t[1], std::f64::consts::PI * std::f64::consts::PI / 3.0, "x1²"),
        (&|t| (t[2] - Bent::ridge(t[0])).powi(2), 1.0, "x2²"),
        (&|t| (t[2] - Bent::ridge(t[0])) * t[1], 0.0, "x1 x2"),
    ];
    let mut scores: Vec<Vec<f64>> = vec![Vec::new(); functions.len() + 1];
    let score = |values: &[f64], ess: f64, expected: f64| {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean - expected) / (variance / ess).sqrt()
    };
    for seed in 1..=SEEDS {
        let sample = sample(&Bent, &Bent::mode(), 4000, 500, seed);
        let chain = &sample.chains[0];
        for ((function, expected, _), scores) in functions.iter().zip(&mut scores) {
            let values: Vec<f64> = (0..4000).map(|k| function(chain.thetas.row(k))).collect();
            scores.push(score(&values, sample.ess_of(function).unwrap(), *expected));
        }
        let kinetic: Vec<f64> =
            chain.energy.iter().zip(&chain.log_density).map(|(h, l)| h + l).collect();
        let ess = consilience::estimate::chains::ess(&[&kinetic]).unwrap();
        scores.last_mut().unwrap().push(score(&kinetic, ess, 1.5));
    }
    let names = functions.iter().map(|f| f.2).chain(["kinetic energy"]);
    for (name, scores) in names.zip(scores) {
        let mean = scores.iter().sum::<f64>() / SEEDS as f64;
        let size = (scores.iter().map(|z| z * z).sum::<f64>() / SEEDS as f64).sqrt();
        let largest = scores.iter().fold(0.0, |m: f64, z| m.max(z.abs()));
        println!("{name}: mean z {mean:+.2}, root mean square {size:.2}, largest {largest:.2}");
        assert!(largest < 4.0, "{name}: {largest}");
        // Four standard errors of a mean and of a spread over 200 seeds.
        assert!(mean.abs() < 0.28, "{name}: {mean}");
        assert!((0.8..1.2).contains(&size), "{name}: {size}");
    }
}

/// A standard normal above 0, with a wall below which there is nothing, or no number at all.
struct Walled(f64);

impl Target for Walled {
    fn dim(&self) -> usize {
        1
    }

    fn log_density_gradient(&self, t: &[f64], gradient: &mut [f64]) -> f64 {
        gradient[0] = if t[0] < 0.0 { self.0 } else { -t[0] };
        if t[0] < 0.0 { self.0 } else { -0.5 * t[0] * t[0] }
    }
}

#[test]
fn a_wall_ends_trajectories_and_nothing_else() {
    const THIN: usize = 20;
    let mode = coordinates(&[0.5], vec![2.0]);
    let free = chain(&Walled(f64::NEG_INFINITY), &mode, 4000 * THIN, 500, 3);
    assert_eq!(free, chain(&Walled(f64::NAN), &mode, 4000 * THIN, 500, 3));
    assert!(free.divergences > 100);
    assert!(free.thetas.data().iter().chain(&free.energy).all(|v| v.is_finite()));
    let us = (0..4000).map(|k| 2.0 * normal_cdf(free.thetas[(k * THIN, 0)]) - 1.0);
    let distance = kolmogorov(us.collect());
    assert!(distance < 2.0, "{distance}");
}

/// −½|θ|², as far as it reaches.
struct Ball {
    radius: f64,
    flat: bool,
}

impl Target for Ball {
    fn dim(&self) -> usize {
        2
    }

    fn log_density_gradient(&self, t: &[f64], gradient: &mut [f64]) -> f64 {
        let factor = if self.flat { 0.0 } else { 1.0 };
        gradient.iter_mut().zip(t).for_each(|(g, t)| *g = -factor * t);
        let square = t[0] * t[0] + t[1] * t[1];
        if square > self.radius * self.radius { f64::NEG_INFINITY } else { -0.5 * factor * square }
    }
}

#[test]
fn starts_move_towards_the_mode_until_there_is_a_density() {
    let mode = coordinates(&[0.0, 0.0], vec![1.0, 0.0, 0.0, 1.0]);
    let small = chain(&Ball { radius: 1e-4, flat: false }, &mode, 500, 500, 1);
    assert!(small.thetas.data().iter().all(|t| t.abs() <= 1e-4));
    assert!(small.thetas.row(0) != small.thetas.row(499), "it moves");
    let lengths = NutsLengths { draws: 10, warmup: 10 };
    let streams = vec![stream(1, 0, 0, "nuts")];
    let error = nuts(&Nowhere, &mode, lengths, streams).unwrap_err();
    assert!(error.to_string().contains("not finite"), "{error}");
}

/// No number anywhere.
struct Nowhere;

impl Target for Nowhere {
    fn dim(&self) -> usize {
        2
    }

    fn log_density_gradient(&self, _: &[f64], gradient: &mut [f64]) -> f64 {
        gradient.fill(0.0);
        f64::NAN
    }
}

/// Where nothing ever turns, trajectories end at their longest: 2¹⁰ − 1 steps.
#[test]
fn a_flat_density_ends_too() {
    let mode = coordinates(&[0.0, 0.0], vec![1.0, 0.0, 0.0, 1.0]);
    let flat = chain(&Ball { radius: 1e300, flat: true }, &mode, 20, 0, 1);
    assert!(flat.thetas.data().iter().all(|t| t.is_finite()));
    assert_eq!((flat.divergences, &flat.log_density[..]), (0, &[0.0; 20][..]));
}

/// A density in units of which `unit` make one of another's.
struct Scaled<'a> {
    of: &'a dyn Target,
    unit: f64,
}

impl Target for Scaled<'_> {
    fn dim(&self) -> usize {
        self.of.dim()
    }

    fn log_density_gradient(&self, t: &[f64], gradient: &mut [f64]) -> f64 {
        let there: Vec<f64> = t.iter().map(|t| t / self.unit).collect();
        let value = self.of.log_density_gradient(&there, gradient);
        gradient.iter_mut().for_each(|g| *g /= self.unit);
        value
    }
}

/// Chains depend on their stream alone; and in units of a power of two, which round nothing, all bits stay.
#[test]
fn the_same_stream_gives_the_same_bits() {
    let mode = Bent::mode();
    let lengths = NutsLengths { draws: 500, warmup: 300 };
    let streams = |seeds: &[u64]| seeds.iter().map(|s| stream(*s, 0, 0, "nuts")).collect();
    let together = nuts(&Bent, &mode, lengths, streams(&[1, 2, 3])).unwrap();
    for seed in 1..=3 {
        let alone = chain(&Bent, &mode, 500, 300, seed);
        assert_eq!(alone, together.chains[seed as usize - 1]);
    }
    assert_ne!(together.chains[0], together.chains[1]);
    for unit in [2.0, 0.125, 1024.0] {
        let theta: Vec<f64> = mode.theta.iter().map(|t| t * unit).collect();
        let precision = mode.precision.data().iter().map(|p| p / (unit * unit)).collect();
        let target = Scaled { of: &Bent, unit };
        let scaled = nuts(&target, &coordinates(&theta, precision), lengths, streams(&[1, 2, 3]));
        for (one, other) in scaled.unwrap().chains.iter().zip(&together.chains) {
            let back: Vec<f64> = one.thetas.data().iter().map(|t| t / unit).collect();
            assert_eq!(back, other.thetas.data());
            assert_eq!((&one.energy, &one.log_density), (&other.energy, &other.log_density));
        }
    }
}
