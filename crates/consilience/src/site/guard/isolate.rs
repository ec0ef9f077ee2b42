//! Whether columns can be combined so that only a few rows are left.
//!
//! If v = Xb is constant but for the rows of a small set A, then answers about X can be made answers about A. A unit
//! vector of the column space that lives on A has Σ_{i∈A} h_i ≥ 1, h being the leverages: so some row of A has
//! h_i ≥ 1/|A|, and only such rows need to be looked at. From each of them rows are taken away, the one first that
//! raises its leverage most; when that reaches 1, the row and those taken away are such a set.

/// How near to 1 a leverage is 1, and how small a rest of a column is none.
const ONE: f64 = 1.0 - 1e-9;
const NOTHING: f64 = 1e-10;

/// The size of a set of at most so many rows outside of which some combination of the columns is constant, if
/// one is found. Such sets are looked for greedily: columns that each show few rows are always found.
pub(super) fn isolated_rows(columns: &[&[f64]], most: usize) -> Option<usize> {
    let n = columns.first()?.len();
    if most == 0 || n <= most {
        return None;
    }
    let basis = basis(columns, n);
    let leverage = leverages(&basis, n);
    let limit = 1.0 / most as f64 - 1e-12;
    let starts = (0..n).filter(|&i| leverage[i] >= limit);
    starts.filter_map(|i| around(&basis, &leverage, i, most)).min()
}

/// An orthonormal basis of the space of the columns and of the constant.
fn basis(columns: &[&[f64]], n: usize) -> Vec<Vec<f64>> {
    let one = 1.0 / (n as f64).sqrt();
    let mut basis = vec![vec![one; n]];
    for column in columns {
        let mean = column.iter().sum::<f64>() / n as f64;
        let mut rest: Vec<f64> = column.iter().map(|x| x - mean).collect();
        let size = norm(&rest);
        if size == 0.0 || !size.is_finite() {
            continue;
        }
        rest.iter_mut().for_each(|x| *x /= size);
        // Twice is enough.
        for _ in 0..2 {
            for known in &basis {
                let along: f64 = known.iter().zip(&rest).map(|(a, b)| a * b).sum();
                rest.iter_mut().zip(known).for_each(|(x, k)| *x -= along * k);
            }
        }
        let left = norm(&rest);
        if left > NOTHING {
            rest.iter_mut().for_each(|x| *x /= left);
            basis.push(rest);
        }
    }
    basis
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn leverages(basis: &[Vec<f64>], n: usize) -> Vec<f64> {
    let mut leverage = vec![0.0; n];
    for column in basis {
        leverage.iter_mut().zip(column).for_each(|(h, q)| *h += q * q);
    }
    leverage
}

/// The size of a set around this row, if one is found.
fn around(basis: &[Vec<f64>], leverage: &[f64], row: usize, most: usize) -> Option<usize> {
    let r = basis.len();
    let q = |i: usize| -> Vec<f64> { basis.iter().map(|column| column[i]).collect() };
    // The inverse of the Gram matrix of the rows that are left.
    let mut inverse: Vec<Vec<f64>> =
        (0..r).map(|a| (0..r).map(|b| f64::from(a == b)).collect()).collect();
    let (own, mut h) = (q(row), leverage.to_vec());
    let mut taken = vec![row];
    let times = |inverse: &[Vec<f64>], x: &[f64]| -> Vec<f64> {
        inverse.iter().map(|line| line.iter().zip(x).map(|(a, b)| a * b).sum()).collect()
    };
    let across = |u: &[f64]| -> Vec<f64> {
        let mut all = vec![0.0; h_len(basis)];
        for (column, u) in basis.iter().zip(u) {
            all.iter_mut().zip(column).for_each(|(sum, q)| *sum += q * u);
        }
        all
    };
    loop {
        if h[row] >= ONE {
            return Some(taken.len());
        }
        if taken.len() == most {
            return None;
        }
        let with_own = across(&times(&inverse, &own));
        let gain = |j: usize| with_own[j] * with_own[j] / (1.0 - h[j]).max(f64::MIN_POSITIVE);
        let others = (0..h.len()).filter(|j| !taken.contains(j));
        let next = others.max_by(|&a, &b| gain(a).total_cmp(&gain(b)))?;
        if h[next] >= ONE {
            // That row alone is such a set, with those taken before it.
            return Some(taken.len());
        }
        let u = times(&inverse, &q(next));
        let (scale, with_next) = (1.0 / (1.0 - h[next]), across(&u));
        h.iter_mut().zip(&with_next).for_each(|(h, c)| *h += scale * c * c);
        for (line, a) in inverse.iter_mut().zip(&u) {
            line.iter_mut().zip(&u).for_each(|(x, b)| *x += scale * a * b);
        }
        taken.push(next);
    }
}

fn h_len(basis: &[Vec<f64>]) -> usize {
    basis.first().map_or(0, Vec::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(n: usize, seed: u64) -> Vec<f64> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed | 1);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..n).map(|_| next() + next() + next()).collect()
    }

    fn ones(n: usize, at: &[usize]) -> Vec<f64> {
        (0..n).map(|i| f64::from(u8::from(at.contains(&i)))).collect()
    }

    #[test]
    fn columns_that_show_few_rows_are_found() {
        let (x, y) = (noise(67, 3), noise(67, 5));
        assert_eq!(isolated_rows(&[&x, &y], 4), None);
        let three = ones(67, &[4, 20, 66]);
        assert_eq!(isolated_rows(&[&x, &three, &y], 4), Some(3));
        assert_eq!(isolated_rows(&[&x, &three, &y], 2), None);
        // All but three, in other units.
        let others: Vec<f64> = three.iter().map(|d| 7.0 - 2.0 * d).collect();
        assert_eq!(isolated_rows(&[&others, &x], 4), Some(3));
        // Two columns of many rows each whose difference has two.
        let (wide, wider) =
            (ones(67, &(0..30).collect::<Vec<_>>()), ones(67, &(0..32).collect::<Vec<_>>()));
        assert_eq!(isolated_rows(&[&x, &wide, &wider], 4), Some(2));
        // A value of a row times the indicator of that row.
        let one: Vec<f64> = ones(67, &[9]).iter().zip(&x).map(|(d, x)| d * x).collect();
        assert_eq!(isolated_rows(&[&x, &y, &one], 4), Some(1));
        // x with three of its values altered.
        let mut altered = x.clone();
        for i in [2, 3, 50] {
            altered[i] += 1.0;
        }
        assert_eq!(isolated_rows(&[&x, &altered], 4), Some(3));
        assert_eq!(isolated_rows(&[&x, &altered], 2), None);
    }

    #[test]
    fn a_group_and_its_slope_show_fewer_rows_than_the_group_has() {
        let x = noise(100, 11);
        let group = ones(100, &[1, 2, 3, 4, 5]);
        let slope: Vec<f64> = group.iter().zip(&x).map(|(d, x)| d * x).collect();
        assert_eq!(isolated_rows(&[&x, &group], 4), None);
        // 1 − x/x₁ within the group is 0 at one of its rows.
        assert_eq!(isolated_rows(&[&x, &group, &slope], 4), Some(4));
    }

    #[test]
    fn polynomials_through_all_values_show_each() {
        let x: Vec<f64> = (0..60).map(|i| f64::from(i % 8)).collect();
        let power = |k: i32| x.iter().map(|x| (x / 8.0).powi(k)).collect::<Vec<f64>>();
        let powers: Vec<Vec<f64>> = (1..8).map(power).collect();
        let columns: Vec<&[f64]> = powers.iter().map(Vec::as_slice).collect();
        assert_eq!(isolated_rows(&columns, 4), None);
        assert_eq!(isolated_rows(&columns, 8), Some(7));
        assert_eq!(isolated_rows(&columns[..4], 8), None);
    }
}
