//! Gaussian models with known σ and normal priors: evidences and posteriors have closed forms.
#![allow(dead_code)]

use consilience::math::{Cholesky, LOG_2PI, Matrix, dot, stream};
use rand::RngExt;
use std::fmt::Write;
use std::path::Path;

/// Rows with an intercept, two predictors and a part, out of which shards are made.
pub struct Data {
    pub path: String,
    pub y: Vec<f64>,
    /// 1, x, z.
    pub columns: Vec<Vec<f64>>,
    pub part: Vec<usize>,
}

impl Data {
    /// y = 1 + x − z/2 + noise, in parts of unequal size.
    pub fn new(folder: &Path, rows: usize, parts: usize) -> Data {
        let mut rng = stream(2, 0, 0, "conjugate data");
        let mut uniform = || rng.random::<f64>() - 0.5;
        let (mut text, mut y, mut part) = ("y,x,z,part\n".to_string(), Vec::new(), Vec::new());
        let mut columns = vec![Vec::new(); 3];
        for i in 0..rows {
            let (x, z, own) = (3.0 * uniform(), 2.0 * uniform(), (i * i + i / 7) % parts);
            let outcome = 1.0 + x - 0.5 * z + 4.0 * uniform() + 0.3 * own as f64;
            writeln!(text, "{outcome},{x},{z},p{own:02}").unwrap();
            y.push(outcome);
            part.push(own);
            columns.iter_mut().zip([1.0, x, z]).for_each(|(c, v)| c.push(v));
        }
        let path = folder.join("conjugate.csv");
        std::fs::write(&path, text).unwrap();
        Data { path: path.to_str().unwrap().into(), y, columns, part }
    }

    /// Outcome and columns of the rows that are wanted, for a model with these columns.
    pub fn rows(&self, columns: &[usize], wanted: impl Fn(usize) -> bool) -> (Vec<f64>, Matrix) {
        let rows: Vec<usize> = (0..self.y.len()).filter(|&i| wanted(self.part[i])).collect();
        let y = rows.iter().map(|&i| self.y[i]).collect();
        let x: Vec<f64> =
            rows.iter().flat_map(|&i| columns.iter().map(move |&j| self.columns[j][i])).collect();
        (y, Matrix::from_rows(rows.len(), columns.len(), x))
    }
}

/// log N(y; 0, σ²I + XVX') for priors N(0, sd²) on the coefficients.
pub fn log_evidence((y, x): &(Vec<f64>, Matrix), sd: &[f64], sigma: f64) -> f64 {
    let mut covariance = Matrix::identity(y.len());
    covariance.scale(sigma * sigma);
    let columns = x.transpose();
    for (j, sd) in sd.iter().enumerate() {
        covariance.add_outer(sd * sd, columns.row(j));
    }
    let factor = Cholesky::new(&covariance).unwrap();
    let z = factor.solve_lower(y);
    -0.5 * (y.len() as f64 * LOG_2PI + factor.log_det() + dot(&z, &z))
}

/// The posterior's mean and covariance.
pub fn posterior((y, x): &(Vec<f64>, Matrix), sd: &[f64], sigma: f64) -> (Vec<f64>, Matrix) {
    let columns = x.transpose();
    let mut precision = columns.product(x);
    precision.scale(1.0 / (sigma * sigma));
    for (j, sd) in sd.iter().enumerate() {
        precision[(j, j)] += 1.0 / (sd * sd);
    }
    let factor = Cholesky::new(&precision).unwrap();
    let pull: Vec<f64> = columns.times(y).iter().map(|v| v / (sigma * sigma)).collect();
    (factor.solve(&pull), factor.inverse())
}
