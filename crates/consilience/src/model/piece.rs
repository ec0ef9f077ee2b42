//! What a chunk of rows brings to a likelihood.

use crate::data::{Design, Table};
use crate::kernel::{Kernel, Rows};
use crate::math::special::log_rising_ratio;
use crate::model::merge::Merged;
use crate::model::{Centred, Family, Model};
use crate::{Error, Result};
use libm::lgamma;
use std::collections::BTreeMap;

/// The likelihood of some rows, to be put together with that of others.
pub(super) struct Piece {
    /// Observations: rows, each counted with its weight.
    pub observations: f64,
    /// Per free coefficient, the observations in which its column is not 0.
    pub nonzero: Vec<f64>,
    /// Distinct rows.
    pub distinct: usize,
    pub body: PieceBody,
}

pub(super) enum PieceBody {
    Gaussian(Centred),
    /// The rows; none if there was no room to hold them.
    Rows {
        rows: Option<Rows>,
        constant: f64,
        outcomes: Option<Outcomes>,
    },
}

impl Piece {
    /// The rows of a table under a model. An outcome that the family cannot have is an error that names
    /// its place.
    pub fn of(model: &Model, table: &Table) -> Result<Piece> {
        let design = model.recipe.design(table)?;
        for (row, &y) in design.response.iter().enumerate() {
            if let Some(wanted) = model.family.refuses(y) {
                let place = table.place(row, Some(&model.recipe.response.text));
                let message = format!(
                    "the outcome {y} does not fit family = \"{}\", which needs {wanted}; {}",
                    model.family,
                    remedy(model.family, &model.recipe.response.text)
                );
                return Err(Error::input_at(place, message));
            }
        }
        let coefficients = &model.parameters[..design.columns.len()];
        let fixed: Vec<Option<f64>> = coefficients.iter().map(|p| p.prior.fixed()).collect();
        Ok(Piece::new(model.family, design, &fixed, model.kernel))
    }

    /// The rows of a design. `fixed[j]` holds coefficient j.
    pub fn new(family: Family, design: Design, fixed: &[Option<f64>], kernel: Kernel) -> Piece {
        let y = design.response;
        let n = y.len();
        let weights = design.weights.unwrap_or_else(|| vec![1.0; n]);
        let mut offset = design.offset.unwrap_or_else(|| vec![0.0; n]);
        let mut columns = Vec::new();
        for (column, value) in design.columns.into_iter().zip(fixed) {
            match value {
                None => columns.push(column),
                Some(value) => {
                    offset.iter_mut().zip(column).for_each(|(o, x)| *o += value * x);
                }
            }
        }
        let counted = |(x, w): (&f64, &f64)| if *x == 0.0 { 0.0 } else { *w };
        let nonzero = columns.iter().map(|c| c.iter().zip(&weights).map(counted).sum()).collect();
        let observations = weights.iter().sum();
        let mut distinct = n;
        let body = if family == Family::Gaussian {
            let target: Vec<f64> = y.iter().zip(&offset).map(|(y, o)| y - o).collect();
            let all: Vec<&[f64]> = columns.iter().chain([&target]).map(Vec::as_slice).collect();
            PieceBody::Gaussian(Centred::of_columns(&all, &weights))
        } else {
            let outcomes =
                (family == Family::NegativeBinomial).then(|| Outcomes::new(&y, &weights));
            let constant = if family.is_count() {
                -y.iter().zip(&weights).map(|(y, w)| w * lgamma(y + 1.0)).sum::<f64>()
            } else {
                0.0
            };
            let Merged { columns, offset, count, total } = Merged::new(columns, y, offset, weights);
            distinct = count.len();
            let rows = Some(Rows::new(family, &columns, &offset, &count, &total, kernel));
            PieceBody::Rows { rows, constant, outcomes }
        };
        Piece { observations, nonzero, distinct, body }
    }

    /// Gives the rows up unless there is room for their bytes.
    pub fn keep_if(&mut self, room: &dyn Fn(usize) -> bool) {
        if let PieceBody::Rows { rows, .. } = &mut self.body {
            *rows = rows.take().filter(|rows| room(rows.memory()));
        }
    }

    /// The distinct rows; none of a Gaussian, which does not keep them.
    pub fn into_rows(self) -> Option<Rows> {
        match self.body {
            PieceBody::Rows { rows, .. } => rows,
            PieceBody::Gaussian(_) => None,
        }
    }
}

/// The distinct outcomes of a negative binomial with their counts.
#[derive(Debug, Default)]
pub(super) struct Outcomes(BTreeMap<u64, f64>);

impl Outcomes {
    fn new(y: &[f64], weights: &[f64]) -> Outcomes {
        let mut counts = BTreeMap::new();
        for (y, w) in y.iter().zip(weights) {
            *counts.entry(*y as u64).or_default() += w;
        }
        Outcomes(counts)
    }

    /// Takes in those of other rows.
    pub fn add(&mut self, others: &Outcomes) {
        for (y, count) in &others.0 {
            *self.0.entry(*y).or_default() += count;
        }
    }

    /// Σ log[Γ(y + r)/(Γ(r) r^y)] with its first two derivatives in r.
    pub fn expand(&self, r: f64) -> (f64, f64, f64) {
        self.0.iter().fold((0.0, 0.0, 0.0), |sum, (&y, &count)| {
            let (value, slope, bend) = log_rising_ratio(y as f64, r);
            (sum.0 + count * value, sum.1 + count * slope, sum.2 + count * bend)
        })
    }
}

/// What to do about an outcome that the family cannot have.
fn remedy(family: Family, text: &str) -> String {
    if family.is_binary() {
        format!("mend the value, or write what counts as success, as in I({text} > 0)")
    } else {
        "mend the value, or take family = \"gaussian\" if it is no count".to_string()
    }
}
