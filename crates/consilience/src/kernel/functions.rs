//! Elementary functions without branches, which the compiler turns into vector code.

use std::f64::consts::LOG2_E;

/// Rows that are worked on side by side.
pub const LANES: usize = 8;

/// One value per lane.
pub type Lanes = [f64; LANES];

/// eˣ to about 1 unit in the last place. Arguments are held within [−708, 709]: what is below gives a
/// number near 10⁻³⁰⁸, what is above one near 10³⁰⁸.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    // Adding 1.5·2⁵² rounds to a whole number, which then stands in the lowest bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let x = x.clamp(-708.0, 709.0);
    let shifted = x * LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (x - k * LN_2_HIGH) - k * LN_2_LOW;
    // Taylor to r¹³: |r| ≤ ½ log 2 leaves a rest of 4·10⁻¹⁸.
    let mut p = 1.0 / 6_227_020_800.0;
    for c in [
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ] {
        p = p * r + c;
    }
    p * f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52)
}

/// log(1 + u) for 0 ≤ u ≤ 1, by 2 artanh(u/(2 + u)).
#[inline(always)]
pub fn log1p_unit(u: f64) -> f64 {
    let s = u / (2.0 + u);
    let t = s * s;
    // t ≤ 1/9; the first term left out is below 10⁻¹⁸ of the sum.
    let mut p = 2.0 / 35.0;
    for k in
        [33.0, 31.0, 29.0, 27.0, 25.0, 23.0, 21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0]
    {
        p = p * t + 2.0 / k;
    }
    s * (p * t + 2.0)
}

/// log(1 + eˣ).
#[inline(always)]
pub fn softplus(x: f64) -> f64 {
    x.max(0.0) + log1p_unit(exp(-x.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_within_two_units_in_the_last_place() {
        for i in -70_000..70_000 {
            let x = f64::from(i) * 0.010_07;
            let exact = libm::exp(x);
            assert!((exp(x) / exact - 1.0).abs() < 5e-16, "exp({x})");
        }
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(-1e300) < 1e-300 && exp(1e300) > 1e300 && exp(f64::NEG_INFINITY) < 1e-300);
    }

    #[test]
    fn log1p_keeps_its_relative_accuracy_near_zero() {
        for i in 0..=100_000 {
            for scale in [1e-5, 1e-12, 1e-200] {
                let u = f64::from(i) * scale;
                let exact = libm::log1p(u);
                assert!((log1p_unit(u) - exact).abs() <= 6e-16 * exact, "log1p({u})");
            }
        }
    }

    #[test]
    fn softplus_is_right_on_both_sides() {
        for x in [-800.0, -30.0, -1.0, 0.0, 1e-9, 3.0, 40.0, 1e6] {
            let exact = crate::math::special::softplus(x);
            assert!((softplus(x) - exact).abs() <= 1e-15 * (1e-290 + exact), "softplus({x})");
        }
    }
}
