//! Points that travel as the rule that makes them: a few kilobytes in the place of thousands of points. Whoever has
//! the rule makes the same points, to the last bit.

use super::proposal::Draws;
use super::{Matrix, Mixture, Proposal, Sobol, stream};
use serde::{Deserialize, Serialize};

/// How far out along every axis of a proposal its surroundings are looked at, in standard deviations.
pub const PROBES: [f64; 3] = [1.0, 2.0, 4.0];

/// More numbers than this are made by no rule: they would be sent as they are, and be too many for that.
const MOST_NUMBERS: usize = 1 << 25;

/// How points are made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Rule {
    /// Draws from a mixture.
    Draws(Drawing),
    /// The centre of each of these, then points along its axes: see [`probes`].
    Probes(Vec<Proposal>),
}

/// Draws from a mixture, and where their random numbers are from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drawing {
    /// What is drawn from.
    pub mixture: Mixture,
    /// How many.
    pub count: usize,
    /// The number of their stream.
    pub seed: u64,
    /// Where their normal numbers are from.
    pub source: PointSource,
}

/// Where the normal numbers of draws are from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PointSource {
    /// The stream.
    Plain,
    /// The stream, and then their negatives.
    Mirrored,
    /// These even points.
    Even(Sobol),
}

impl Drawing {
    /// The draws, with their densities.
    pub fn draws(&self) -> Draws {
        let mut rng = stream(self.seed, 0, 0, "draws");
        match &self.source {
            PointSource::Plain => self.mixture.draw(self.count, &mut rng),
            PointSource::Mirrored => self.mixture.draw_mirrored(self.count, &mut rng),
            PointSource::Even(even) => {
                self.mixture.draw_evenly(self.count, &mut even.clone(), &mut rng)
            }
        }
    }
}

impl Rule {
    /// Whether it makes points of this dimension, and not too many of them to hold.
    pub fn is_sound(&self, dim: usize) -> bool {
        let (count, fits) = match self {
            Rule::Draws(drawing) => {
                let parts = drawing.mixture.parts();
                (drawing.count, !parts.is_empty() && parts.iter().all(|(_, p)| p.dim() == dim))
            }
            Rule::Probes(around) => {
                (around.len() * number_of_probes(dim), around.iter().all(|p| p.dim() == dim))
            }
        };
        fits && count.saturating_mul(dim.max(1)) <= MOST_NUMBERS
    }

    /// How many numbers its points have.
    pub fn numbers(&self) -> usize {
        match self {
            Rule::Draws(drawing) => {
                let dim = drawing.mixture.parts().first().map_or(0, |(_, p)| p.dim());
                drawing.count.saturating_mul(dim.max(1))
            }
            Rule::Probes(around) => {
                let one = |p: &Proposal| number_of_probes(p.dim()).saturating_mul(p.dim().max(1));
                around.iter().map(one).fold(0, usize::saturating_add)
            }
        }
    }

    /// The points, one per row. The rule has to be sound.
    pub fn points(&self) -> Matrix {
        match self {
            Rule::Draws(drawing) => drawing.draws().thetas,
            Rule::Probes(around) => {
                let d = around.first().map_or(0, Proposal::dim);
                let data: Vec<f64> =
                    around.iter().flat_map(|p| probes(p).data().to_vec()).collect();
                Matrix::from_rows(around.len() * number_of_probes(d), d, data)
            }
        }
    }
}

/// How many points [`probes`] makes.
pub fn number_of_probes(dim: usize) -> usize {
    1 + 2 * PROBES.len() * dim
}

/// Points that tell how a density falls from its mode: the centre of a proposal, then along every coordinate below
/// and above.
pub fn probes(proposal: &Proposal) -> Matrix {
    let d = proposal.dim();
    let mut points = vec![proposal.at(&vec![0.0; d])];
    for i in 0..d {
        for sign in [-1.0, 1.0] {
            for distance in PROBES {
                let mut x = vec![0.0; d];
                x[i] = sign * distance;
                points.push(proposal.at(&x));
            }
        }
    }
    Matrix::from_rows(points.len(), d, points.concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::Cholesky;
    use crate::math::stream;

    fn rules() -> Vec<Rule> {
        let precision = Matrix::from_rows(2, 2, vec![2.0, 0.6, 0.6, 0.5]);
        let factor = Cholesky::new(&precision).unwrap();
        let first = Proposal::from_precision(vec![1.0, -3.0], &factor, 0.1, 5.0);
        let second = Proposal::from_covariance(vec![0.1, 7.0], &factor, 0.1, 5.0)
            .with_sides(vec![(0.7, 1.9), (1.0, 0.3)]);
        let mixture = Mixture::new(vec![(0.3, first.clone()), (0.7, second.clone())]);
        let drawing = Drawing { mixture, count: 100, seed: 7, source: PointSource::Plain };
        let mut even = Sobol::new(&mut stream(1, 2, 3, "test"));
        even.skip(48);
        vec![
            Rule::Draws(drawing.clone()),
            Rule::Draws(Drawing { source: PointSource::Mirrored, ..drawing.clone() }),
            Rule::Draws(Drawing { source: PointSource::Even(even), ..drawing }),
            Rule::Probes(vec![first, second]),
        ]
    }

    #[test]
    fn points_made_elsewhere_are_the_same_bits() {
        for rule in rules() {
            let bytes = postcard::to_stdvec(&rule).unwrap();
            let there: Rule = postcard::from_bytes(&bytes).unwrap();
            assert!(there.is_sound(2) && !there.is_sound(3));
            let bits = |m: Matrix| m.data().iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
            assert_eq!(bits(rule.points()), bits(there.points()));
        }
    }

    #[test]
    fn rules_that_would_fill_a_machine_or_make_no_numbers_are_refused() {
        let Rule::Draws(drawing) = rules().remove(0) else { unreachable!("the first are draws") };
        assert!(!Rule::Draws(Drawing { count: usize::MAX, ..drawing.clone() }).is_sound(2));
        assert!(!Rule::Draws(Drawing { count: 1 << 30, ..drawing }).is_sound(2));
        for text in [
            // A factor with 0 on its diagonal, a side that is negative, degrees of freedom without end.
            r#"{"mean":[0.0],"lower":true,"factor":[0.0],"sides":[],"t_share":0.1,"df":5.0}"#,
            r#"{"mean":[0.0],"lower":true,"factor":[1.0],"sides":[[-1.0,1.0]],"t_share":0.1,"df":5.0}"#,
            r#"{"mean":[0.0],"lower":true,"factor":[1.0],"sides":[],"t_share":0.1,"df":5e9}"#,
            r#"{"mean":[0.0],"lower":true,"factor":[1.0,2.0],"sides":[],"t_share":0.1,"df":5.0}"#,
        ] {
            assert!(serde_json::from_str::<Proposal>(text).is_err(), "{text}");
        }
    }
}
