//! Special functions that `libm` does not have.

use super::LOG_2PI;
use libm::{erfc, exp, lgamma, log, log1p};

/// log(1 + eˣ) without overflow.
pub fn softplus(x: f64) -> f64 {
    x.max(0.0) + log1p(exp(-x.abs()))
}

/// log B(a, b), the logarithm of the beta function.
pub fn log_beta(a: f64, b: f64) -> f64 {
    lgamma(a) + lgamma(b) - lgamma(a + b)
}

/// log Φ(−z) for z ≥ 0.
pub fn log_normal_tail(z: f64) -> f64 {
    if z > 20.0 {
        log_normal_cdf(-z).0
    } else {
        log(0.5 * erfc(z * std::f64::consts::FRAC_1_SQRT_2))
    }
}

/// log Φ(z) with its first two derivatives, right in both tails.
pub fn log_normal_cdf(z: f64) -> (f64, f64, f64) {
    if z < -20.0 {
        // Φ(z) = φ(z)/|z| · (1 − t + 3t² − 15t³ + …), t = 1/z².
        let t = 1.0 / (z * z);
        let coefficients = [1.0, 3.0, 15.0, 105.0, 945.0, 10395.0, 135135.0, 2027025.0];
        let falling = coefficients.iter().rev().fold(0.0, |sum, c| c - t * sum);
        let series = 1.0 - t * falling;
        let value = -0.5 * z * z - 0.5 * LOG_2PI - log(-z) + log1p(-t * falling);
        return (value, -z / series, -falling / (series * series));
    }
    let value = if z < 0.0 {
        log(0.5 * erfc(-z * std::f64::consts::FRAC_1_SQRT_2))
    } else {
        log1p(-0.5 * erfc(z * std::f64::consts::FRAC_1_SQRT_2))
    };
    let ratio = exp(-0.5 * z * z - 0.5 * LOG_2PI - value);
    (value, ratio, -ratio * (z + ratio))
}

/// The quantile function of the standard normal distribution, right to about 16 digits for
/// 0 < p < 1 (Wichura 1988, algorithm AS 241); ∓∞ at 0 and 1.
pub fn normal_quantile(p: f64) -> f64 {
    const CENTRE_TOP: [f64; 8] = [
        3.387_132_872_796_366_5,
        133.141_667_891_784_38,
        1_971.590_950_306_551_3,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ];
    const CENTRE_BOTTOM: [f64; 8] = [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_854,
    ];
    const TAIL_TOP: [f64; 8] = [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        0.241_780_725_177_450_6,
        0.022_723_844_989_269_184,
        0.000_774_545_014_278_341_4,
    ];
    const TAIL_BOTTOM: [f64; 8] = [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        0.689_767_334_985_1,
        0.148_103_976_427_480_08,
        0.015_198_666_563_616_457,
        0.000_547_593_808_499_534_5,
        1.0507500716444169e-09,
    ];
    const FAR_TOP: [f64; 8] = [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        0.296_560_571_828_504_87,
        0.026_532_189_526_576_124,
        0.001_242_660_947_388_078_4,
        2.7115555687434876e-05,
        2.0103343992922881e-07,
    ];
    const FAR_BOTTOM: [f64; 8] = [
        1.0,
        0.599_832_206_555_888,
        0.136_929_880_922_735_8,
        0.014_875_361_290_850_615,
        0.000_786_869_131_145_613_3,
        1.8463183175100548e-05,
        1.421511758316446e-07,
        2.0442631033899397e-15,
    ];
    let ratio = |top: &[f64; 8], bottom: &[f64; 8], x: f64| {
        let polynomial = |c: &[f64; 8]| c.iter().rev().fold(0.0, |sum, c| sum * x + c);
        polynomial(top) / polynomial(bottom)
    };
    let offset = p - 0.5;
    if offset.abs() <= 0.425 {
        return offset * ratio(&CENTRE_TOP, &CENTRE_BOTTOM, 0.180625 - offset * offset);
    }
    let tail = if offset < 0.0 { p } else { 1.0 - p };
    if tail <= 0.0 {
        return offset * f64::INFINITY;
    }
    let r = (-log(tail)).sqrt();
    let z = if r <= 5.0 {
        ratio(&TAIL_TOP, &TAIL_BOTTOM, r - 1.6)
    } else {
        ratio(&FAR_TOP, &FAR_BOTTOM, r - 5.0)
    };
    if offset < 0.0 { -z } else { z }
}

/// The chance that a χ² variable of `df` degrees of freedom exceeds `x`, by the cube-root
/// approximation of Wilson and Hilferty (1931): plenty for a warning's threshold.
pub fn chi_square_tail(x: f64, df: f64) -> f64 {
    let spread = 2.0 / (9.0 * df);
    let z = (libm::cbrt(x / df) - (1.0 - spread)) / spread.sqrt();
    0.5 * erfc(z * std::f64::consts::FRAC_1_SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, expected: f64, relative: f64) {
        assert!((value - expected).abs() <= relative * expected.abs(), "{value} is not {expected}");
    }

    // References to 20 digits by mpmath: log(ncdf(z)).
    #[test]
    fn log_phi_is_right_in_both_tails() {
        for (z, expected) in [
            (-40.0, -804.608_442_013_753_8),
            (-20.0, -203.917_155_371_097_27),
            (-5.0, -15.064_998_393_988_727),
            (-1.0, -1.841_021_645_009_263_8),
            (0.0, -std::f64::consts::LN_2),
            (3.0, -1.350_809_964_748_202_6e-3),
            (8.0, -6.220_960_574_271_786e-16),
        ] {
            near(log_normal_cdf(z).0, expected, 2e-14);
        }
        assert_eq!(log_normal_cdf(40.0), (0.0, 0.0, 0.0));
        assert!(log_normal_cdf(-1e9).0.is_finite());
        near(log_normal_cdf(-1e9).1, 1e9, 1e-15);
        near(log_normal_cdf(-1e9).2, -1.0, 1e-15);
    }

    #[test]
    fn log_phi_is_smooth_where_its_formulas_meet() {
        let (below, above) = (log_normal_cdf(-20.0 - 1e-12), log_normal_cdf(-20.0 + 1e-12));
        near(below.0 + 20.0 * 2e-12, above.0, 1e-13);
        near(below.1, above.1, 1e-12);
        near(below.2, above.2, 1e-9);
    }

    #[test]
    fn normal_quantiles_undo_the_normal_distribution() {
        for z in [-37.0, -12.0, -8.2, -5.0, -2.0, -1.5, -1.4, -0.3, 0.7, 1.6, 3.0] {
            let p = 0.5 * erfc(-z * std::f64::consts::FRAC_1_SQRT_2);
            near(normal_quantile(p), z, 4e-15 + 1e-16 * (z * z / 2.0).exp().min(1e3));
        }
        assert_eq!(normal_quantile(0.5), 0.0);
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
        assert_eq!(normal_quantile(0.25), -normal_quantile(0.75));
    }

    // Quantiles of R's qchisq(1e-3, df, lower = FALSE).
    #[test]
    fn chi_square_tail_is_close_where_warnings_look() {
        for (df, x) in [(1.0, 10.827_57), (17.0, 40.790_22), (32.0, 62.487_22)] {
            near(chi_square_tail(x, df), 1e-3, 0.25);
        }
    }
}
