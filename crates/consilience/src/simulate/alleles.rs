//! Allele doses of people and a trait that a few of them move: sparse regression.
//!
//! ```text
//! haplotype    locus j carries the rare allele where zⱼ < Φ⁻¹(fⱼ), z normal with zⱼ = ρ·zⱼ₋₁ + √(1 − ρ²)·eⱼ
//!              within a stretch of the chromosome, and begun anew where the next stretch begins
//! dose         of two haplotypes that know nothing of each other: 0, 1 or 2
//! outcome      y = μ + Σⱼ γⱼ·doseⱼ + e, e standard normal; γ is 0 at all loci but every twentieth
//! ```

use super::BLOCK;
use crate::math::special::normal_quantile;
use crate::math::stream;
use crate::math::ziggurat::normal;

/// The most loci that can be asked for.
pub const MOST: usize = 10_000;

/// Loci of a stretch within which alleles are linked.
pub const STRETCH: usize = 10;

/// How closely neighbours are linked: the correlation of their normal variables.
pub const LINKAGE: f64 = 0.8;

/// The mean of the outcome where there is no rare allele.
pub const MEAN: f64 = 0.5;

/// The column's names: `y`, then `locus_1` and so on.
pub fn names(loci: usize) -> Vec<String> {
    let loci = (1..=loci).map(|j| format!("locus_{j}"));
    std::iter::once("y".to_string()).chain(loci).collect()
}

/// How frequent the rare allele of a locus is, counted from 0: from 0.05 to 0.5, evenly over the loci.
pub fn frequency(locus: usize) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let turn = GOLDEN * (locus + 1) as f64;
    0.05 + 0.45 * (turn - libm::floor(turn))
}

/// The effect of one rare allele at a locus, counted from 0: not 0 at the 10th, the 30th, the 50th, … only.
pub fn effect(locus: usize) -> f64 {
    const SIZES: [f64; 5] = [0.2, -0.1, 0.05, 0.15, -0.05];
    if locus % 20 == 9 { SIZES[locus / 20 % SIZES.len()] } else { 0.0 }
}

/// The columns of one block of people of the data with this seed, as [`super::higgs::block`] has them.
pub fn block(seed: u64, block: u64, rows: usize, loci: usize) -> Vec<Vec<f32>> {
    let mut rng = stream(seed, 0, block, "alleles");
    let thresholds: Vec<f64> = (0..loci).map(|j| normal_quantile(frequency(j))).collect();
    let fresh = (1.0 - LINKAGE * LINKAGE).sqrt();
    let mut columns = vec![Vec::with_capacity(rows); loci + 1];
    for _ in 0..rows.min(BLOCK) {
        let mut doses = vec![0u8; loci];
        for _ in 0..2 {
            let mut z = 0.0;
            for (j, (dose, threshold)) in doses.iter_mut().zip(&thresholds).enumerate() {
                let e = normal(&mut rng);
                z = if j % STRETCH == 0 { e } else { LINKAGE * z + fresh * e };
                *dose += u8::from(z < *threshold);
            }
        }
        let mut y = MEAN + normal(&mut rng);
        for (j, dose) in doses.into_iter().enumerate() {
            y += effect(j) * f64::from(dose);
            columns[j + 1].push(f32::from(dose));
        }
        columns[0].push(y as f32);
    }
    columns
}
