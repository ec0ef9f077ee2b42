//! Where importance draws come from: a normal with a share of Student's t at the same place.
//!
//! The t share is a defence: for a target that is nearly normal the weights stay below
//! 1/(1 − share), and where the target's tails are heavier than normal they stay bounded by the t's.
//!
//! A target that falls more slowly to one side gets a proposal that does (Geweke 1989): coordinate i of
//! F⁻¹(θ − m) has the scale bᵢ below 0 and aᵢ above, with the density 2/(aᵢ + bᵢ)·φ(x/scale), continuous
//! at 0.

use super::sobol::REPLICATES;
use super::special::normal_quantile;
use super::ziggurat::{chi_square, normal};
use super::{Cholesky, LOG_2PI, Matrix, Sobol, Stream, dot, log_sum_exp};
use libm::{erfc, exp, lgamma, log, log1p};
use rand::RngExt;
use serde::{Deserialize, Serialize};
use std::f64::consts::FRAC_1_SQRT_2;

/// log((1 − share)·N + share·t) in d coordinates at the squared distance q from the centre, for a unit covariance.
pub fn log_defensive(d: f64, q: f64, t_share: f64, df: f64) -> f64 {
    let normal = -0.5 * (d * LOG_2PI + q);
    let t = lgamma(0.5 * (df + d))
        - lgamma(0.5 * df)
        - 0.5 * d * log(df * std::f64::consts::PI)
        - 0.5 * (df + d) * log1p(q / df);
    let (a, b) = (log1p(-t_share) + normal, log(t_share) + t);
    let (high, low) = if a > b { (a, b) } else { (b, a) };
    high + log1p(exp(low - high))
}

/// A defensive mixture (1 − share)·N(m, FF') + share·t(df, m, FF').
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "SentProposal", try_from = "SentProposal")]
pub struct Proposal {
    mean: Vec<f64>,
    /// F: θ = m + F·z. Lower or upper triangular; only its product is used.
    factor: Matrix,
    /// F⁻¹.
    inverse: Matrix,
    log_det_factor: f64,
    /// (bᵢ, aᵢ) per coordinate; empty: all 1.
    sides: Vec<(f64, f64)>,
    t_share: f64,
    df: f64,
}

/// A proposal as it travels: all that draws are made of.
#[derive(Serialize, Deserialize)]
struct SentProposal {
    mean: Vec<f64>,
    /// Whether the factor is lower triangular; else it is upper.
    lower: bool,
    /// Its triangle, row after row.
    factor: Vec<f64>,
    sides: Vec<(f64, f64)>,
    t_share: f64,
    df: f64,
}

impl From<Proposal> for SentProposal {
    fn from(proposal: Proposal) -> SentProposal {
        let Proposal { mean, factor, sides, t_share, df, .. } = proposal;
        let d = mean.len();
        let lower = (0..d).all(|i| factor.row(i)[i + 1..].iter().all(|x| *x == 0.0));
        let row = |i: usize| if lower { &factor.row(i)[..=i] } else { &factor.row(i)[i..] };
        let triangle = (0..d).flat_map(|i| row(i).to_vec()).collect();
        SentProposal { mean, lower, factor: triangle, sides, t_share, df }
    }
}

impl TryFrom<SentProposal> for Proposal {
    type Error = &'static str;

    fn try_from(sent: SentProposal) -> Result<Proposal, Self::Error> {
        let SentProposal { mean, lower, factor: triangle, sides, t_share, df } = sent;
        let d = mean.len();
        let fits = Some(2 * triangle.len()) == d.checked_mul(d + 1);
        let finite = mean.iter().chain(&triangle).all(|x| x.is_finite());
        let scale = |x: f64| x.is_finite() && x > 0.0;
        let wide = sides.iter().all(|&(below, above)| scale(below) && scale(above));
        // Draws from a t take a whole number of degrees of freedom, each a random number.
        let tails = (0.0..=1.0).contains(&t_share) && (1.0..=1000.0).contains(&df);
        let whole = df == df.trunc();
        if !(fits && finite && wide && tails && whole && (sides.is_empty() || sides.len() == d)) {
            return Err("a proposal that nothing can be drawn from");
        }
        let (mut factor, mut at) = (Matrix::zeros(d, d), 0);
        for i in 0..d {
            let columns = if lower { 0..i + 1 } else { i..d };
            for j in columns {
                factor[(i, j)] = triangle[at];
                at += 1;
            }
        }
        if factor.diagonal().contains(&0.0) {
            return Err("a proposal that nothing can be drawn from");
        }
        let (inverse, log_det_factor) = inverse_triangle(&factor, lower);
        let plain =
            Proposal { mean, factor, inverse, log_det_factor, sides: Vec::new(), t_share, df };
        Ok(if sides.is_empty() { plain } else { plain.with_sides(sides) })
    }
}

/// The inverse of a triangular matrix, and the logarithm of its determinant.
fn inverse_triangle(factor: &Matrix, lower: bool) -> (Matrix, f64) {
    let own = if lower { factor.clone() } else { factor.transpose() };
    let d = own.rows();
    let mut inverse = Matrix::zeros(d, d);
    for j in 0..d {
        inverse[(j, j)] = 1.0 / own[(j, j)];
        for i in j + 1..d {
            let sum: f64 = (j..i).map(|k| own[(i, k)] * inverse[(k, j)]).sum();
            inverse[(i, j)] = -sum / own[(i, i)];
        }
    }
    let log_det = own.diagonal().iter().map(|x| log(x.abs())).sum();
    (if lower { inverse } else { inverse.transpose() }, log_det)
}

/// Draws and the log density of each under the proposal they came from.
#[derive(Debug, Clone)]
pub struct Draws {
    /// One draw per row.
    pub thetas: Matrix,
    /// log g(θ) per draw.
    pub log_density: Vec<f64>,
    /// How they depend on each other.
    pub kinship: Kinship,
    /// Functions of each draw whose expectation is known to be 0, so that what their means are off by says what other
    /// means are off by: c − 1 and c·(q − d)/√(2d), with c the density of a proposal's normal part over g and q the
    /// squared distance, which is χ² with d degrees of freedom under that part. Of mirrored draws only; else empty.
    pub controls: Vec<Controls>,
}

/// See [`Draws::controls`].
pub type Controls = [f64; 2];

/// How draws depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kinship {
    /// Not at all.
    Strangers,
    /// Draw 2k + 1 is made of the negatives of the normal numbers that draw 2k is made of.
    Mirrored,
    /// Draw k belongs to set k mod this; the sets are independent.
    Sets(usize),
}

impl Proposal {
    /// Around `mean` with the inverse of a precision matrix as covariance.
    pub fn from_precision(mean: Vec<f64>, precision: &Cholesky, t_share: f64, df: f64) -> Proposal {
        let factor = precision.inverse_lower().transpose();
        let inverse = precision.lower().transpose();
        let log_det_factor = -0.5 * precision.log_det();
        Proposal { mean, factor, inverse, log_det_factor, sides: Vec::new(), t_share, df }
    }

    /// Around `mean` with this covariance.
    pub fn from_covariance(
        mean: Vec<f64>,
        covariance: &Cholesky,
        t_share: f64,
        df: f64,
    ) -> Proposal {
        let (factor, inverse) = (covariance.lower().clone(), covariance.inverse_lower());
        let log_det_factor = 0.5 * covariance.log_det();
        Proposal { mean, factor, inverse, log_det_factor, sides: Vec::new(), t_share, df }
    }

    /// The same with these scales below and above the mean along each column of F.
    pub fn with_sides(mut self, sides: Vec<(f64, f64)>) -> Proposal {
        self.log_det_factor += sides.iter().map(|(b, a)| log(0.5 * (a + b))).sum::<f64>();
        self.sides = sides;
        self
    }

    /// The same with both sides alike.
    pub fn without_sides(&self) -> Proposal {
        let volume = |(b, a): &(f64, f64)| log(0.5 * (a + b));
        let mut plain = self.clone();
        plain.log_det_factor -= self.sides.iter().map(volume).sum::<f64>();
        plain.sides = Vec::new();
        plain
    }

    /// Whether it has scales to both sides.
    pub fn has_sides(&self) -> bool {
        !self.sides.is_empty()
    }

    /// How many coordinates.
    pub fn dim(&self) -> usize {
        self.mean.len()
    }

    /// m + F·x.
    pub fn at(&self, x: &[f64]) -> Vec<f64> {
        (0..x.len()).map(|i| self.mean[i] + dot(self.factor.row(i), x)).collect()
    }

    /// The centre m.
    pub fn centre(&self) -> &[f64] {
        &self.mean
    }

    /// The same around another centre.
    pub fn moved(mut self, centre: Vec<f64>) -> Proposal {
        self.mean = centre;
        self
    }

    /// log of the volume under a normal of this shape that is 1 at the centre.
    pub fn log_volume(&self) -> f64 {
        0.5 * self.mean.len() as f64 * LOG_2PI + self.log_det_factor
    }

    /// FF': the covariance of the normal part where its sides are 1.
    pub fn covariance(&self) -> Matrix {
        self.factor.product(&self.factor.transpose())
    }

    /// This many draws.
    pub fn draw(&self, count: usize, rng: &mut Stream) -> Draws {
        Mixture::from(self.clone()).draw(count, rng)
    }

    /// x = F⁻¹(θ − m).
    fn place_of(&self, theta: &[f64]) -> Vec<f64> {
        let offset: Vec<f64> = theta.iter().zip(&self.mean).map(|(t, m)| t - m).collect();
        (0..offset.len()).map(|i| dot(self.inverse.row(i), &offset)).collect()
    }

    /// The scales below and above the mean along column i of F.
    fn side(&self, i: usize) -> (f64, f64) {
        self.sides.get(i).copied().unwrap_or((1.0, 1.0))
    }

    /// The square of the distance Σ (xᵢ/scaleᵢ)² of a point, x = F⁻¹(θ − m).
    pub fn distance(&self, theta: &[f64]) -> f64 {
        let scaled = |(i, x): (usize, &f64)| {
            let (below, above) = self.side(i);
            x / if *x < 0.0 { below } else { above }
        };
        self.place_of(theta).iter().enumerate().map(scaled).map(|x| x * x).sum()
    }

    /// The same with the scales that weighted points, worth `effective` draws, make most likely. With S the
    /// weighted mean squares of xᵢ below and above 0, these are b² = S_b (1 + r) and a = r b, r³ = S_a/S_b.
    /// In logs each has the variance 1/`effective`; what all of them together vary by beyond that is no
    /// chance, and they are drawn towards 0 by its share.
    pub fn with_sides_of<'a>(
        &self,
        points: impl Iterator<Item = (&'a [f64], f64)>,
        effective: f64,
    ) -> Proposal {
        let (mut squares, mut total) = (vec![(0.0, 0.0); self.mean.len()], 0.0);
        for (theta, weight) in points {
            total += weight;
            for (sum, x) in squares.iter_mut().zip(self.place_of(theta)) {
                let part = if x < 0.0 { &mut sum.0 } else { &mut sum.1 };
                *part += weight * x * x;
            }
        }
        let likely = |&(below, above): &(f64, f64)| {
            let ratio = libm::cbrt(above / below);
            let b = 0.5 * log(below / total * (1.0 + ratio));
            (b, b + log(ratio))
        };
        let mut logs: Vec<(f64, f64)> = squares.iter().map(likely).collect();
        for (i, side) in logs.iter_mut().enumerate() {
            if !(side.0.is_finite() && side.1.is_finite()) {
                *side = (log(self.side(i).0), log(self.side(i).1));
            }
        }
        let spread: f64 = logs.iter().map(|(b, a)| b * b + a * a).sum();
        let beyond = (spread / (2 * logs.len()).max(1) as f64 - 1.0 / effective).max(0.0);
        let kept = beyond / (beyond + 1.0 / effective);
        self.without_sides()
            .with_sides(logs.iter().map(|(b, a)| (exp(kept * b), exp(kept * a))).collect())
    }

    /// log g(θ).
    pub fn log_density(&self, theta: &[f64]) -> f64 {
        self.log_density_at(self.distance(theta))
    }

    /// The draw that standard normal numbers make, stretched by a t's factor; and its distance.
    fn place(&self, z: &mut [f64], stretch: f64, theta: &mut [f64]) -> f64 {
        for (z, &(below, above)) in z.iter_mut().zip(&self.sides) {
            *z = resided(*z, below / (below + above));
        }
        z.iter_mut().for_each(|z| *z *= stretch);
        let distance = dot(z, z);
        for (z, &(below, above)) in z.iter_mut().zip(&self.sides) {
            *z *= if *z < 0.0 { below } else { above };
        }
        theta.copy_from_slice(&self.at(z));
        distance
    }

    /// The log density at squared distance q = Σ (xᵢ/scaleᵢ)², x = F⁻¹(θ − m).
    fn log_density_at(&self, q: f64) -> f64 {
        log_defensive(self.mean.len() as f64, q, self.t_share, self.df) - self.log_det_factor
    }
}

/// A mixture of proposals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "SentMixture")]
pub struct Mixture {
    /// Shares, which sum to 1, and what they are of.
    parts: Vec<(f64, Proposal)>,
}

/// A mixture as it comes from a file.
#[derive(Deserialize)]
struct SentMixture {
    parts: Vec<(f64, Proposal)>,
}

impl TryFrom<SentMixture> for Mixture {
    type Error = &'static str;

    fn try_from(SentMixture { parts }: SentMixture) -> Result<Mixture, Self::Error> {
        // As they are: to divide by their sum again would change last bits.
        let fine = parts.iter().all(|(share, _)| (0.0..=1.0).contains(share));
        if fine && !parts.is_empty() { Ok(Mixture { parts }) } else { Err("a mixture of nothing") }
    }
}

impl From<Proposal> for Mixture {
    fn from(proposal: Proposal) -> Mixture {
        Mixture { parts: vec![(1.0, proposal)] }
    }
}

impl Mixture {
    /// The mixture with these shares, whatever they sum to.
    pub fn new(mut parts: Vec<(f64, Proposal)>) -> Mixture {
        let sum: f64 = parts.iter().map(|(share, _)| share).sum();
        parts.iter_mut().for_each(|(share, _)| *share /= sum);
        Mixture { parts }
    }

    /// Shares, which sum to 1, and what they are of.
    pub fn parts(&self) -> &[(f64, Proposal)] {
        &self.parts
    }

    /// This many draws.
    pub fn draw(&self, count: usize, rng: &mut Stream) -> Draws {
        self.draw_by(count, Kinship::Strangers, |z| self.next(z, rng))
    }

    /// The next normal numbers, the part that they are for and the factor by which a t is stretched.
    fn next(&self, z: &mut [f64], rng: &mut Stream) -> (usize, f64) {
        z.iter_mut().for_each(|v| *v = normal(rng));
        let (is_t, part) = (rng.random::<f64>(), self.choose(|| rng.random()));
        let Proposal { t_share, df, .. } = self.parts[part].1;
        (part, if is_t < t_share { (df / chi_square(df, rng)).sqrt() } else { 1.0 })
    }

    /// This many draws, rounded up to whole pairs, of which one mirrors the other: what is odd in a weight cancels,
    /// which of a posterior that is nearly normal is most of it.
    pub fn draw_mirrored(&self, count: usize, rng: &mut Stream) -> Draws {
        let mut first: Option<(Vec<f64>, usize, f64)> = None;
        self.draw_by(count.next_multiple_of(2), Kinship::Mirrored, |z| match first.take() {
            None => {
                let (part, stretch) = self.next(z, rng);
                first = Some((z.to_vec(), part, stretch));
                (part, stretch)
            }
            Some((mirrored, part, stretch)) => {
                z.iter_mut().zip(mirrored).for_each(|(z, m)| *z = -m);
                (part, stretch)
            }
        })
    }

    /// This many draws, rounded up to whole sets of replicates, from the next Sobol points. The degrees
    /// of freedom must be a whole number.
    pub fn draw_evenly(&self, count: usize, sobol: &mut Sobol, rng: &mut Stream) -> Draws {
        let d = self.parts[0].1.mean.len();
        let most = self.parts.iter().map(|(_, p)| p.df as usize).max().unwrap_or(0);
        // Further coordinates choose between normal and t, make the t's χ², and choose the part.
        let mut point = vec![0.0; d + 1 + most + usize::from(self.parts.len() > 1)];
        self.draw_by(count.next_multiple_of(REPLICATES), Kinship::Sets(REPLICATES), |z| {
            sobol.normals(&mut point, rng);
            z.copy_from_slice(&point[..d]);
            let part = self.choose(|| 0.5 * erfc(-point[d + 1 + most] * FRAC_1_SQRT_2));
            let Proposal { t_share, df, .. } = self.parts[part].1;
            let own = &point[d + 1..d + 1 + df as usize];
            let is_t = point[d] < normal_quantile(t_share);
            (part, if is_t { (df / dot(own, own)).sqrt() } else { 1.0 })
        })
    }

    /// The number of the part that a number between 0 and 1 falls to; where there is but one, none is taken.
    fn choose(&self, uniform: impl FnOnce() -> f64) -> usize {
        if self.parts.len() == 1 {
            return 0;
        }
        let mut left = uniform();
        let falls = |(share, _): &(f64, Proposal)| {
            left -= share;
            left < 0.0
        };
        self.parts.iter().position(falls).unwrap_or(self.parts.len() - 1)
    }

    /// Draws from the standard normal points that `next` writes; it returns the part that each is for, and
    /// the factor by which a t is stretched.
    fn draw_by(
        &self,
        count: usize,
        kinship: Kinship,
        mut next: impl FnMut(&mut [f64]) -> (usize, f64),
    ) -> Draws {
        let d = self.parts[0].1.mean.len();
        let mut thetas = Matrix::zeros(count, d);
        let (mut log_density, mut controls) = (Vec::with_capacity(count), Vec::new());
        let mut z = vec![0.0; d];
        for k in 0..count {
            let (part, stretch) = next(&mut z);
            let own = &self.parts[part].1;
            let distance = own.place(&mut z, stretch, thetas.row_mut(k));
            log_density.push(match self.parts.len() {
                1 => own.log_density_at(distance),
                _ => self.log_density(thetas.row(k)),
            });
            if kinship == Kinship::Mirrored {
                controls.push(self.controls(thetas.row(k), log_density[k]));
            }
        }
        Draws { thetas, log_density, kinship, controls }
    }

    /// See [`Draws::controls`]; those of a mixture are of its parts with the largest share.
    fn controls(&self, theta: &[f64], log_density: f64) -> Controls {
        let largest = |a: &&(f64, Proposal), b: &&(f64, Proposal)| a.0.total_cmp(&b.0);
        let (_, part) = self.parts.iter().max_by(largest).expect("a mixture has parts");
        let (q, d) = (part.distance(theta), part.mean.len() as f64);
        let ratio = exp(-0.5 * q - part.log_volume() - log_density);
        [ratio - 1.0, ratio * (q - d) / (2.0 * d).sqrt()]
    }

    /// log of each part's share times its density at a point.
    pub fn log_parts(&self, theta: &[f64]) -> Vec<f64> {
        self.parts.iter().map(|(share, part)| log(*share) + part.log_density(theta)).collect()
    }

    /// log g(θ).
    pub fn log_density(&self, theta: &[f64]) -> f64 {
        log_sum_exp(&self.log_parts(theta))
    }
}

/// A standard normal number turned into one with this share below 0, normal on either side.
fn resided(z: f64, share_below: f64) -> f64 {
    // Each tail from its own end, so that nothing is lost far out.
    let tail = 0.5 * erfc(z.abs() * FRAC_1_SQRT_2);
    let (u_below, u_above) = if z < 0.0 { (tail, 1.0 - tail) } else { (1.0 - tail, tail) };
    if u_below < share_below {
        normal_quantile(0.5 * u_below / share_below)
    } else {
        -normal_quantile(0.5 * u_above / (1.0 - share_below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::{log_mean_exp, stream};

    #[test]
    fn sides_get_their_shares_and_stay_normal() {
        for z in [-30.0, -4.0, -0.5, 0.3, 2.0, 12.0] {
            assert!((resided(z, 0.5) - z).abs() < 1e-12 * z.abs());
        }
        let normals = (0..20_000).map(|k| normal_quantile((f64::from(k) + 0.5) / 20_000.0));
        let values: Vec<f64> = normals.map(|z| resided(z, 0.2)).collect();
        assert_eq!(values.iter().filter(|v| **v < 0.0).count(), 4_000);
        let square = |side: f64| {
            let squares = values.iter().filter(|v| **v * side > 0.0).map(|v| v * v);
            squares.clone().sum::<f64>() / squares.count() as f64
        };
        assert!((square(1.0) - 1.0).abs() < 2e-3 && (square(-1.0) - 1.0).abs() < 2e-3);
    }

    // E_g[N(θ; m, V)/g(θ)] = 1 for any proposal g: checks draws and densities against each other.
    #[test]
    fn a_known_normal_has_evidence_one() {
        let covariance = Matrix::from_rows(2, 2, vec![2.0, 0.6, 0.6, 0.5]);
        let factor = Cholesky::new(&covariance).unwrap();
        let mean = vec![1.0, -3.0];
        for share in [0.1, 1.0] {
            let wide = Cholesky::new(&Matrix::from_rows(2, 2, vec![3.0, 0.0, 0.0, 1.0])).unwrap();
            let from_covariance = Proposal::from_covariance(vec![0.5, -2.5], &wide, share, 5.0);
            let precision = Cholesky::new(&wide.inverse()).unwrap();
            let from_precision = Proposal::from_precision(vec![0.5, -2.5], &precision, share, 5.0);
            let sides = vec![(0.8, 1.7), (1.5, 0.9)];
            let uneven = from_covariance.clone().with_sides(sides);
            for proposal in [from_covariance, from_precision, uneven] {
                let draws = proposal.draw(40_000, &mut stream(1, 0, 0, "test"));
                let log_weights: Vec<f64> = (0..40_000)
                    .map(|k| {
                        let offset: Vec<f64> =
                            draws.thetas.row(k).iter().zip(&mean).map(|(a, b)| a - b).collect();
                        let q = factor.inverse_quadratic(&offset);
                        -0.5 * (2.0 * LOG_2PI + factor.log_det() + q) - draws.log_density[k]
                    })
                    .collect();
                assert!(log_mean_exp(&log_weights).abs() < 0.02);
            }
        }
    }
}
