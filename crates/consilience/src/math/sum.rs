//! Sums of exponentials in logs, and sums that keep what rounding takes.

/// A sum with the rounding errors of its additions kept beside it (Neumaier 1974).
#[derive(Debug, Clone, Copy, Default)]
pub struct Compensated {
    sum: f64,
    lost: f64,
}

impl Compensated {
    /// Adds a number.
    #[inline]
    pub fn add(&mut self, x: f64) {
        let sum = self.sum + x;
        let (large, small) = if self.sum.abs() >= x.abs() { (self.sum, x) } else { (x, self.sum) };
        self.lost += (large - sum) + small;
        self.sum = sum;
    }

    /// The sum.
    #[inline]
    pub fn value(self) -> f64 {
        // What an infinite sum lost is not a number.
        if self.sum.is_finite() { self.sum + self.lost } else { self.sum }
    }
}

/// a'b with the additions' rounding errors kept.
pub fn dot_compensated(a: &[f64], b: &[f64]) -> f64 {
    let mut sum = Compensated::default();
    a.iter().zip(b).for_each(|(x, y)| sum.add(x * y));
    sum.value()
}

/// log Σ e^xᵢ without overflow; −∞ for an empty or all −∞ list.
pub fn log_sum_exp(x: &[f64]) -> f64 {
    let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if top.is_infinite() {
        return top;
    }
    top + libm::log(x.iter().map(|&v| libm::exp(v - top)).sum::<f64>())
}

/// log of the mean of e^xᵢ.
pub fn log_mean_exp(x: &[f64]) -> f64 {
    log_sum_exp(x) - libm::log(x.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compensated_sums_keep_small_terms_and_infinities() {
        let mut sum = Compensated::default();
        [1e16, 1.0, 1.0, -1e16].iter().for_each(|x| sum.add(*x));
        assert_eq!(sum.value(), 2.0);
        sum.add(f64::NEG_INFINITY);
        sum.add(3.0);
        assert_eq!(sum.value(), f64::NEG_INFINITY);
        sum.add(f64::INFINITY);
        assert!(sum.value().is_nan());
    }

    #[test]
    fn survives_large_and_missing_terms() {
        assert_eq!(log_sum_exp(&[]), f64::NEG_INFINITY);
        assert_eq!(log_sum_exp(&[f64::NEG_INFINITY; 3]), f64::NEG_INFINITY);
        assert!((log_sum_exp(&[1e5, 1e5, f64::NEG_INFINITY]) - 1e5 - 2f64.ln()).abs() < 1e-10);
        assert!((log_mean_exp(&[-4.0, -4.0]) + 4.0).abs() < 1e-15);
    }
}
