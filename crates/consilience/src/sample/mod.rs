//! Samplers: draws from a density that is known up to its integral.

pub mod draws;
pub mod gibbs;
pub mod jump;
pub mod nuts;
pub mod polya_gamma;
pub mod truncated;

pub use gibbs::{Conditional, GibbsDraws, gibbs};
pub use polya_gamma::PolyaGamma;

use crate::math::Matrix;

/// Draws of one target.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Chains of equal length.
    pub chains: Vec<Chain>,
}

/// One chain, warm-up left out.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// One draw per row.
    pub thetas: Matrix,
    /// log f(θ) per draw; empty where the draws were made of others.
    pub log_density: Vec<f64>,
    /// The Hamiltonian's energy per draw; empty where the sampler has none.
    pub energy: Vec<f64>,
    /// Trajectories that diverged.
    pub divergences: usize,
}

impl Chain {
    /// A chain of which only the draws are known.
    pub fn of_draws(thetas: Matrix) -> Chain {
        Chain { thetas, log_density: Vec::new(), energy: Vec::new(), divergences: 0 }
    }
}
