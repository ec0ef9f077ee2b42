//! Sums of exponentials, in logs.

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
    fn survives_large_and_missing_terms() {
        assert_eq!(log_sum_exp(&[]), f64::NEG_INFINITY);
        assert_eq!(log_sum_exp(&[f64::NEG_INFINITY; 3]), f64::NEG_INFINITY);
        assert!((log_sum_exp(&[1e5, 1e5, f64::NEG_INFINITY]) - 1e5 - 2f64.ln()).abs() < 1e-10);
        assert!((log_mean_exp(&[-4.0, -4.0]) + 4.0).abs() < 1e-15);
    }
}
