//! Diagnostics of chains of which the truth is known.

use consilience::estimate::ParameterDiagnostics;
use consilience::estimate::chains::{e_bfmi, ess, integrated_autocorrelation};
use consilience::math::ziggurat::normal;
use consilience::math::{Matrix, stream};
use consilience::sample::{Chain, Sample};

/// Stationary chains x' = ρx + √(1 − ρ²)·ε.
fn autoregressive(rho: f64, chains: usize, draws: usize, seed: u64) -> Vec<Vec<f64>> {
    let chain = |c: usize| {
        let mut rng = stream(seed, c as u64, 0, "autoregressive chains");
        let mut x = normal(&mut rng);
        let step = |_| {
            let noise = normal(&mut rng);
            let next = rho * x + (1.0 - rho * rho).sqrt() * noise;
            std::mem::replace(&mut x, next)
        };
        (0..draws).map(step).collect()
    };
    (0..chains).map(chain).collect()
}

fn slices(chains: &[Vec<f64>]) -> Vec<&[f64]> {
    chains.iter().map(Vec::as_slice).collect()
}

fn diagnose(chains: &[Vec<f64>]) -> ParameterDiagnostics {
    ParameterDiagnostics::new(&slices(chains))
}

/// The sample of several parameters, each given by its chains.
fn sample(parameters: &[Vec<Vec<f64>>]) -> Sample {
    let chain = |c: usize| {
        let rows = parameters[0][c].len();
        let values = (0..rows).flat_map(|k| parameters.iter().map(move |p| p[c][k]));
        Chain {
            thetas: Matrix::from_rows(rows, parameters.len(), values.collect()),
            log_density: parameters[0][c].iter().map(|x| -0.5 * x * x).collect(),
            energy: vec![],
            divergences: c,
        }
    };
    Sample { chains: (0..parameters[0].len()).map(chain).collect() }
}

/// ρ_t = ρ^t, so that τ = (1 + ρ)/(1 − ρ); the squares' are ρ^2t. The mean over seeds lies within
/// four of its standard errors and a hundredth for the bias of Geyer's rule.
#[test]
fn autoregressive_chains_have_their_effective_draws() {
    const SEEDS: u64 = 25;
    let (chains, draws) = (4, 4000);
    for rho in [-0.5, 0.0, 0.5, 0.9] {
        let found: Vec<[f64; 3]> = (0..SEEDS)
            .map(|seed| {
                let x = autoregressive(rho, chains, draws, seed);
                let all = diagnose(&x);
                let [mean, square] = [ess(&slices(&x)), all.ess_square].map(Option::unwrap);
                [mean, all.ess_bulk.unwrap(), square].map(|e| e / (chains * draws) as f64)
            })
            .collect();
        let expected = |rho: f64| (1.0 - rho) / (1.0 + rho);
        for (i, expected) in [expected(rho), expected(rho), expected(rho * rho)].iter().enumerate()
        {
            let ratios: Vec<f64> = found.iter().map(|f| f[i] / expected).collect();
            let mean = ratios.iter().sum::<f64>() / SEEDS as f64;
            let variance = ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>();
            let se = (variance / (SEEDS * (SEEDS - 1)) as f64).sqrt();
            assert!((mean - 1.0).abs() < 4.0 * se + 0.01, "ρ = {rho}, {i}: {mean} ± {se}");
            assert!(se < 0.05, "ρ = {rho}, {i}: ± {se}");
        }
    }
}

/// The errors of mean and sd that are reported are those that means and sds have over many samples.
#[test]
fn errors_of_mean_and_sd_are_as_reported() {
    const SEEDS: u64 = 300;
    for rho in [-0.5, 0.7] {
        let (mut mean, mut sd, mut reported) = (0.0, 0.0, [0.0; 2]);
        for seed in 0..SEEDS {
            let x = autoregressive(rho, 4, 500, 1000 + seed);
            let all = diagnose(&x);
            let n = 2000.0;
            let m = x.iter().flatten().sum::<f64>() / n;
            let v = x.iter().flatten().map(|x| (x - m).powi(2)).sum::<f64>() / (n - 1.0);
            mean += m * m;
            sd += (v.sqrt() - 1.0).powi(2);
            reported[0] += all.mcse_mean.unwrap().powi(2);
            reported[1] += all.mcse_sd.unwrap().powi(2);
        }
        // A variance of 300 values is known to 8 %.
        for (true_square, reported) in [mean, sd].iter().zip(reported) {
            assert!((reported / true_square - 1.0).abs() < 0.3, "{reported} {true_square}");
        }
    }
}

#[test]
fn r_hat_tells_good_chains_from_bad() {
    for seed in 0..10 {
        let good = autoregressive(0.5, 4, 1000, seed);
        let r_hat = diagnose(&good).r_hat.unwrap();
        assert!((0.999..1.02).contains(&r_hat), "{r_hat}");
        let (mut shifted, mut scaled, mut drifting) = (good.clone(), good.clone(), good.clone());
        shifted[0].iter_mut().for_each(|x| *x += 1.0);
        scaled[0].iter_mut().for_each(|x| *x *= 3.0);
        for chain in &mut drifting {
            (0..).zip(chain).for_each(|(k, x)| *x += f64::from(k) / 500.0);
        }
        for bad in [shifted, scaled, drifting.clone(), drifting[..1].to_vec()] {
            let found = diagnose(&bad);
            assert!(found.r_hat.unwrap() > 1.05, "{found:?}");
        }
    }
}

/// The bound is n·log10 n; and a long chain that never forgets, all lags of which count, is no more
/// work than another.
#[test]
fn extreme_correlations_are_bounded() {
    let back_and_forth: Vec<f64> = (0..1000).map(|k| f64::from(k % 2) + 1e-3).collect();
    assert_eq!(ess(&[&back_and_forth]), Some(3000.0));
    assert_eq!(integrated_autocorrelation(&[&back_and_forth]), Some(1.0 / 3.0));
    let ramp: Vec<f64> = (0..200_000).map(f64::from).collect();
    assert!(ess(&[&ramp, &ramp]).unwrap() < 10.0);
}

#[test]
fn what_cannot_be_told_is_none() {
    let good = autoregressive(0.0, 2, 100, 1);
    let unknown = diagnose(&[]);
    assert_eq!(unknown.r_hat, None);
    // Not exact in binary: the mean of many may differ from each.
    assert_eq!(diagnose(&vec![vec![0.1; 100]; 4]), unknown);
    assert_eq!(diagnose(&[vec![0.1; 100], vec![0.3; 100]]).r_hat, None);
    assert_eq!(diagnose(&[vec![0.1; 100], vec![0.3; 100]]).ess_bulk, None);
    for wrong in [f64::NAN, f64::INFINITY] {
        let mut bad = good.clone();
        bad[1][50] = wrong;
        assert_eq!(diagnose(&bad), unknown);
    }
    // A power of two: ranks and ties stay what they are.
    let factor = 2_f64.powi(664);
    let huge: Vec<Vec<f64>> = good.iter().map(|c| c.iter().map(|x| x * factor).collect()).collect();
    assert_eq!(diagnose(&huge).r_hat, diagnose(&good).r_hat);
    assert_eq!(diagnose(&huge).mcse_mean, None);
    let short: Vec<Vec<f64>> = good.iter().map(|c| c[..9].to_vec()).collect();
    assert!(diagnose(&short).r_hat.is_some());
    assert_eq!(diagnose(&short).ess_bulk, None);
    let shortest: Vec<Vec<f64>> = good.iter().map(|c| c[..3].to_vec()).collect();
    assert_eq!(diagnose(&shortest), unknown);
    // One chain that is stuck makes itself known, even in the midst of the other.
    let stuck = diagnose(&[good[0].clone(), vec![0.5; 100]]);
    assert!(stuck.r_hat.unwrap() > 1.05 && stuck.ess_square.unwrap() < 30.0, "{stuck:?}");
    // Few distinct values: a tail without draws has no say.
    let coin: Vec<Vec<f64>> =
        good.iter().map(|c| c.iter().map(|&x| f64::from(u8::from(x > 0.0))).collect()).collect();
    let found = diagnose(&coin);
    assert!(found.r_hat.unwrap() < 1.05 && found.ess_tail.unwrap() > 50.0, "{found:?}");
}

#[test]
fn a_sample_is_worth_its_worst_parameter() {
    let [good, slow] = [autoregressive(0.0, 3, 400, 2), autoregressive(0.9, 3, 400, 3)];
    let found = sample(&[good.clone(), slow.clone()]).diagnose();
    let each = [diagnose(&good), diagnose(&slow)];
    assert_eq!(found.parameters, each);
    assert_eq!(found.r_hat, each[1].r_hat.zip(each[0].r_hat).map(|(a, b)| a.max(b)));
    assert_eq!(found.ess_bulk, each[1].ess_bulk);
    assert_eq!(found.ess_tail, each[1].ess_tail);
    assert_eq!(found.ess_square, each[1].ess_square);
    assert_eq!((found.e_bfmi, found.divergences), (None, 3));
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(found, serde_json::from_str(&text).unwrap());

    // A log density that moves slowly, as when chains do not leave their energy.
    let mut sample = sample(&[good.clone(), good.clone()]);
    for (chain, slow) in sample.chains.iter_mut().zip(&slow) {
        chain.log_density.clone_from(slow);
    }
    assert_eq!(sample.diagnose().ess_square, ess(&slices(&slow)));
    assert_eq!(sample.diagnose().ess_bulk, each[0].ess_bulk);

    // A parameter that never moves must not hide behind the others.
    let found = self::sample(&[good, vec![vec![1.0; 400]; 3]]).diagnose();
    assert!(found.parameters[0].r_hat.is_some());
    assert_eq!((found.r_hat, found.ess_bulk, found.ess_square), (None, None, None));
}

/// 2(1 − ρ) for autoregressive energies.
#[test]
fn energies_have_their_fraction() {
    for rho in [0.0, 0.5, 0.95] {
        let energy = &autoregressive(rho, 1, 50_000, 7)[0];
        let found = e_bfmi(energy).unwrap();
        assert!((found / (2.0 * (1.0 - rho)) - 1.0).abs() < 0.1, "ρ = {rho}: {found}");
    }
    assert_eq!(e_bfmi(&[]), None);
    assert_eq!(e_bfmi(&[3.1; 10]), None);
    assert_eq!(e_bfmi(&[1.0, f64::NAN, 2.0]), None);
}
