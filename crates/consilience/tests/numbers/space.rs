//! Sums over model spaces, draws of models and chains over them, beside brute force.

use consilience::math::{Cholesky, Matrix, log_sum_exp, stream, ziggurat};
use consilience::space::{
    Candidate, Heredity, ModelPrior, Quadratic, Space, Subset, Sums, Walk, draw, gibbs, sum,
};
use std::collections::HashMap;

const ALL: Walk = Walk { top: 20, tolerance: 0.0, most_nodes: u64::MAX };

/// Terms of these widths and parents, with some parameters that are always in, among the columns.
fn space(widths: &[usize], parents: &[&[usize]], heredity: Heredity, prior: &str) -> Space {
    let mut next = 1;
    let mut terms = Vec::new();
    for (t, &width) in widths.iter().enumerate() {
        let columns = (next..next + width).collect();
        next += width + usize::from(t == 2);
        let parents = parents.get(t).map_or(Vec::new(), |p| p.to_vec());
        terms.push(Candidate { label: format!("x{t}"), columns, parents });
    }
    Space::new(terms, heredity, next, &prior.parse::<ModelPrior>().unwrap()).unwrap()
}

fn quadratic(dim: usize, strength: f64, seed: u64) -> Quadratic {
    let mut rng = stream(seed, 0, 0, "space test");
    let b: Vec<f64> = (0..dim * dim).map(|_| ziggurat::normal(&mut rng)).collect();
    let b = Matrix::from_rows(dim, dim, b);
    let mut precision = b.product(&b.transpose());
    precision.add_scaled(0.5 * dim as f64, &Matrix::identity(dim));
    let factor = Cholesky::new(&precision).unwrap();
    let effects: Vec<f64> = (0..dim).map(|_| strength * ziggurat::normal(&mut rng)).collect();
    let slope = factor.lower().times(&effects);
    let gain = (0..dim).map(|_| 0.5 * ziggurat::normal(&mut rng) + 0.3).collect();
    Quadratic { constant: -1234.5, precision, slope, gain }
}

/// Every model with its log weight.
fn brute(space: &Space, quadratic: &Quadratic) -> Vec<(Subset, f64)> {
    let p = space.terms.len();
    (0..1_usize << p)
        .map(|bits| (0..p).filter(|t| bits >> t & 1 == 1).collect::<Subset>())
        .filter(|model| space.allows(model))
        .filter_map(|model| {
            let normal = quadratic.normal(space, &model)?;
            Some((model, normal.log_z + space.log_prior(model.len())))
        })
        .collect()
}

fn near(a: f64, b: f64, tolerance: f64) {
    assert!(a == b || (a - b).abs() < tolerance * (1.0 + b.abs().min(1.0)), "{a} is not {b}");
}

fn compare(space: &Space, quadratic: &Quadratic, found: &Sums, tolerance: f64) {
    let models = brute(space, quadratic);
    let logs: Vec<f64> = models.iter().map(|m| m.1).collect();
    let total = log_sum_exp(&logs);
    near(found.log_total - total, 0.0, tolerance);
    let roots: Vec<f64> = logs.iter().map(|l| 0.5 * l).collect();
    near(found.log_root - log_sum_exp(&roots), 0.0, tolerance);
    for t in 0..space.terms.len() {
        let share = models.iter().filter(|m| m.0.contains(t)).map(|m| (m.1 - total).exp()).sum();
        near(found.inclusion[t], share, tolerance);
    }
    for (k, size) in found.sizes.iter().enumerate() {
        let share = models.iter().filter(|m| m.0.len() == k).map(|m| (m.1 - total).exp()).sum();
        near(*size, share, tolerance);
    }
    let mut ranked = models.clone();
    ranked.retain(|m| m.1 > f64::NEG_INFINITY);
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    assert_eq!(found.top.len(), ranked.len().min(20));
    for (own, other) in found.top.iter().zip(&ranked) {
        near(own.1 - other.1, 0.0, 100.0 * tolerance);
        let log_weight = models.iter().find(|m| m.0 == own.0).unwrap().1;
        near(own.1 - log_weight, 0.0, 100.0 * tolerance);
    }
}

const PAIRS: [&[usize]; 10] =
    [&[], &[], &[], &[], &[0, 1], &[0, 2], &[1, 2], &[2, 3], &[0, 3], &[4, 5]];

#[test]
fn sums_are_those_of_all_models() {
    let priors = ["uniform", "beta-binomial(1, P)", "bernoulli(0.2)"];
    for (case, p) in [0, 1, 2, 5, 6, 10, 12].into_iter().enumerate() {
        for (seed, strength) in [(1, 1.0), (2, 4.0), (3, 60.0)] {
            let space = space(&vec![1; p], &[], Heredity::None, priors[case % 3]);
            let quadratic = quadratic(space.dim, strength, seed);
            let found = sum(&space, &quadratic, &ALL).unwrap().unwrap();
            assert_eq!(found.visited, (1 << p) as f64);
            assert_eq!(found.log_rest, f64::NEG_INFINITY);
            // Log weights in the tens of thousands have no more digits.
            compare(&space, &quadratic, &found, if strength > 10.0 { 1e-9 } else { 2e-12 });
        }
    }
}

#[test]
fn groups_and_heredity_are_kept() {
    for widths in [vec![1; 10], vec![2, 1, 3, 1, 2, 1, 3, 1, 1, 1]] {
        for heredity in [Heredity::Strong, Heredity::Weak, Heredity::None] {
            for prior in ["beta-binomial(1, P)", "sizes(0, 1, 2, 1, 0, 3)"] {
                let space = space(&widths, &PAIRS, heredity, prior);
                for seed in 1..4 {
                    let quadratic = quadratic(space.dim, 3.0, seed);
                    let found = sum(&space, &quadratic, &ALL).unwrap().unwrap();
                    assert_eq!(found.visited, space.models());
                    compare(&space, &quadratic, &found, 1e-11);
                }
            }
        }
    }
}

#[test]
fn extreme_gains_and_columns_that_are_the_same_do_no_harm() {
    let space = space(&[1; 8], &[], Heredity::None, "uniform");
    let mut quadratic = quadratic(space.dim, 2.0, 5);
    quadratic.gain[2] = -400.0;
    quadratic.gain[4] = 300.0;
    let found = sum(&space, &quadratic, &ALL).unwrap().unwrap();
    compare(&space, &quadratic, &found, 1e-11);

    // Columns 1 and 2 are equal but for a prior.
    let (a, b) = (1, 2);
    for j in 0..space.dim {
        let value = quadratic.precision[(a, j)];
        quadratic.precision[(b, j)] = value;
        quadratic.precision[(j, b)] = value;
    }
    quadratic.slope[b] = quadratic.slope[a];
    quadratic.gain[b] = quadratic.gain[a];
    quadratic.precision[(a, b)] -= 1.0;
    quadratic.precision[(b, a)] -= 1.0;
    quadratic.precision[(b, b)] = quadratic.precision[(a, a)];
    let found = sum(&space, &quadratic, &ALL).unwrap().unwrap();
    compare(&space, &quadratic, &found, 1e-10);
    near(found.inclusion[0], found.inclusion[1], 1e-10);

    // Wholly equal: models with both have no normal approximation, and count for nothing.
    quadratic.precision[(a, b)] = quadratic.precision[(a, a)];
    quadratic.precision[(b, a)] = quadratic.precision[(a, a)];
    let found = sum(&space, &quadratic, &ALL).unwrap().unwrap();
    let models = brute(&space, &quadratic);
    assert_eq!(models.len(), 192);
    compare(&space, &quadratic, &found, 1e-9);
}

#[test]
fn other_names_of_terms_change_nothing() {
    let space = space(&[1; 9], &[], Heredity::None, "beta-binomial(1, P)");
    let quadratic = quadratic(space.dim, 2.0, 8);
    let found = sum(&space, &quadratic, &ALL).unwrap().unwrap();
    let mut terms = space.terms.clone();
    terms.reverse();
    let turned = Space::new(terms, Heredity::None, space.dim, &ModelPrior::default()).unwrap();
    let other = sum(&turned, &quadratic, &ALL).unwrap().unwrap();
    near(found.log_total - other.log_total, 0.0, 1e-12);
    for t in 0..9 {
        near(found.inclusion[t], other.inclusion[8 - t], 1e-12);
    }
    let turn = |model: &Subset| model.iter().map(|t| 8 - t).collect::<Subset>();
    for (a, b) in found.top.iter().zip(&other.top) {
        assert_eq!(turn(&a.0), b.0);
    }
}

#[test]
fn what_is_left_out_is_within_its_bound() {
    // So many terms that bounds are used; the weights are known from the whole walk.
    let mut grouped = vec![1; 22];
    (grouped[1], grouped[6], grouped[20]) = (2, 3, 2);
    for (heredity, widths) in [
        (Heredity::None, vec![1; 21]),
        (Heredity::Strong, vec![1; 22]),
        (Heredity::Strong, grouped.clone()),
        (Heredity::Weak, grouped),
    ] {
        let p = widths.len();
        let pairs: Vec<&[usize]> =
            (0..p).map(|t| if t < 20 { &[][..] } else { &[3, 5][..] }).collect();
        let space = space(&widths, &pairs, heredity, "beta-binomial(1, P)");
        for (seed, strength) in [(1, 0.7), (2, 1.5), (3, 5.0)] {
            let quadratic = quadratic(space.dim, strength, seed);
            let whole = sum(&space, &quadratic, &ALL).unwrap().unwrap();
            for tolerance in [1e-2, 1e-4] {
                let walk = Walk { top: 20, tolerance, most_nodes: u64::MAX };
                let found = sum(&space, &quadratic, &walk).unwrap().unwrap();
                let missing = 1.0 - (found.log_total - whole.log_total).exp();
                let rest = (found.log_rest - whole.log_total).exp();
                assert!(found.visited <= whole.visited);
                assert!(missing <= rest * (1.0 + 1e-9) + 1e-11, "{missing} of {rest}");
                assert!(rest <= tolerance && missing > -1e-11);
                for (a, b) in found.inclusion.iter().zip(&whole.inclusion) {
                    assert!((a - b).abs() <= tolerance);
                }
                assert_eq!(found.top[0].0, whole.top[0].0);
                let positions: Vec<f64> = (0..500).map(|i| (f64::from(i) + 0.5) / 500.0).collect();
                let (by_weight, _) = draw(&space, &quadratic, &found, &positions, &[]);
                let heaviest = by_weight.iter().filter(|m| m.0 == whole.top[0].0).count() as f64;
                let share = (found.top[0].1 - found.log_total).exp();
                assert!((heaviest - 500.0 * share).abs() <= 1.0 + 1e-6, "{heaviest}");
            }
        }
    }
}

#[test]
fn a_walk_gives_up_where_it_may_see_no_more_nodes() {
    let space = space(&[1; 40], &[], Heredity::None, "uniform");
    let quadratic = quadratic(space.dim, 1.0, 1);
    for tolerance in [0.0, 1e-4] {
        let walk = Walk { top: 5, tolerance, most_nodes: 1000 };
        assert!(sum(&space, &quadratic, &walk).unwrap().is_none());
    }
}

#[test]
fn draws_follow_the_weights_and_their_roots() {
    for (widths, heredity) in [(vec![1; 10], Heredity::Weak), (vec![1, 2, 1, 1], Heredity::None)] {
        let space = space(&widths, &PAIRS[..widths.len()], heredity, "beta-binomial(1, P)");
        let quadratic = quadratic(space.dim, 2.0, 4);
        let found = sum(&space, &quadratic, &ALL).unwrap().unwrap();
        let many = 3000;
        let grid: Vec<f64> = (0..many).map(|i| (f64::from(i) + 0.5) / f64::from(many)).collect();
        let (by_weight, by_root) = draw(&space, &quadratic, &found, &grid, &grid);
        let models = brute(&space, &quadratic);
        for (drawn, power, log_total) in
            [(by_weight, 1.0, found.log_total), (by_root, 0.5, found.log_root)]
        {
            assert_eq!(drawn.len(), many as usize);
            let mut counts: HashMap<Subset, f64> = HashMap::new();
            drawn.iter().for_each(|(model, _)| *counts.entry(*model).or_insert(0.0) += 1.0);
            for (model, log_weight) in &models {
                let expected = f64::from(many) * (power * log_weight - log_total).exp();
                let count = counts.remove(model).unwrap_or(0.0);
                assert!((count - expected).abs() <= 1.0 + 1e-6, "{count} for {expected}");
            }
            assert!(counts.is_empty());
            let known: HashMap<Subset, f64> = models.iter().copied().collect();
            drawn
                .iter()
                .for_each(|(model, log_weight)| near(*log_weight - known[model], 0.0, 1e-9));
        }
    }
}

#[test]
fn threads_change_no_bit() {
    let space = space(&[1; 21], &[], Heredity::None, "beta-binomial(1, P)");
    let quadratic = quadratic(space.dim, 1.5, 6);
    for tolerance in [0.0, 1e-4] {
        let walk = Walk { top: 50, tolerance, most_nodes: u64::MAX };
        let of = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let found = sum(&space, &quadratic, &walk).unwrap().unwrap();
                let drawn = draw(&space, &quadratic, &found, &[0.1, 0.7], &[0.2, 0.9]);
                (format!("{found:?}"), drawn)
            })
        };
        let (one, two) = (of(1), of(2));
        assert_eq!(one.0, two.0);
        assert_eq!(one.1, two.1);
    }
}

#[test]
fn chains_agree_with_sums() {
    let mixed = vec![1, 2, 1, 1, 1, 1, 2, 1, 1, 1];
    for (widths, heredity, seeds) in [
        (vec![1; 12], Heredity::None, 1..11),
        (mixed.clone(), Heredity::Strong, 1..4),
        (mixed, Heredity::Weak, 1..4),
    ] {
        let parents = if heredity == Heredity::None { &[][..] } else { &PAIRS[..] };
        let space = space(&widths, parents, heredity, "beta-binomial(1, P)");
        for seed in seeds {
            let quadratic = quadratic(space.dim, 1.2, seed);
            let truth = sum(&space, &quadratic, &ALL).unwrap().unwrap();
            let mut rng = stream(seed, 0, 0, "gibbs");
            let found = gibbs(&space, &quadratic, 40_000, &mut rng).unwrap();
            for (t, (a, b)) in found.inclusion.iter().zip(&truth.inclusion).enumerate() {
                assert!((a - b).abs() < 0.02, "{heredity:?} {seed}: term {t}: {a} is not {b}");
            }
            // Chains flip a term at every step: sizes alternate, and shares of them must not.
            for (k, ((a, se), b)) in found.sizes.iter().zip(&truth.sizes).enumerate() {
                let fine = (a - b).abs() < 5.0 * se + 1e-3;
                assert!(fine, "{heredity:?} {seed}: {k} terms: {a} ± {se} is not {b}");
            }
            let off = (found.log_total - truth.log_total).abs();
            assert!(off < 4.0 * found.log_total_se, "{off} of {}", found.log_total_se);
            assert!(found.models.iter().all(|m| space.allows(&m.0)));
            assert_eq!(found.models[0].0, truth.top[0].0);
            let known: HashMap<Subset, f64> = brute(&space, &quadratic).into_iter().collect();
            found.models.iter().for_each(|m| near(m.1 - known[&m.0], 0.0, 1e-8));
            assert!((0.0..=1.0).contains(&found.unseen) && found.unseen_se.is_finite());
        }
    }
}

#[test]
fn chains_in_spaces_of_few_models() {
    for p in [0, 1, 2] {
        let space = space(&vec![1; p], &[], Heredity::None, "uniform");
        let quadratic = quadratic(space.dim, 1.0, 3);
        let truth = sum(&space, &quadratic, &ALL).unwrap().unwrap();
        let found = gibbs(&space, &quadratic, 4000, &mut stream(1, 0, 0, "few")).unwrap();
        near(found.log_total - truth.log_total, 0.0, 1e-10);
        for (a, b) in found.inclusion.iter().zip(&truth.inclusion) {
            assert!((a - b).abs() < 0.05);
        }
    }
    let space = space(&[1; 4], &[], Heredity::None, "sizes(1, 0, 1)");
    let quadratic = quadratic(space.dim, 1.0, 3);
    assert!(gibbs(&space, &quadratic, 100, &mut stream(1, 0, 0, "few")).is_err());
}
