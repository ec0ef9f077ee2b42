//! What a chunk of rows brings to a likelihood.

use crate::data::{Binary, Design, Expr, Recipe, Table};
use crate::kernel::{Kernel, Rows};
use crate::math::Compensated;
use crate::math::counts::{Dispersion, saturated};
use crate::model::cases::{CasePart, Known, UnmergedRows, parts};
use crate::model::merge::{MergeBy, Merged};
use crate::model::multinomial::{ClassRows, Coefficients, by_class};
use crate::model::{Centred, Family, Parameter, Regression};
use crate::{Error, Result};
use libm::lgamma;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The likelihood of some rows, to be put together with that of others.
pub(super) struct Piece {
    /// Observations: see [`observations`].
    pub observations: f64,
    /// Free coefficients.
    pub coefficients: usize,
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
        outcomes: Option<DistinctCounts>,
    },
    /// Rows of several kinds; none if there was no room to hold them.
    Cases {
        parts: Option<Vec<CasePart>>,
        known: Known,
    },
    /// Rows of classes without an order; none if there was no room to hold them.
    Classes {
        rows: Option<Vec<ClassRows>>,
        shape: Coefficients,
    },
}

/// What the pieces of a likelihood have in common.
#[derive(Debug)]
pub(super) struct WholeModel {
    family: Family,
    /// The model's own columns.
    recipe: Recipe,
    /// The value of each coefficient that is held fixed.
    fixed: Vec<Option<f64>>,
    /// Whether the laws of large counts are taken.
    large: bool,
    kernel: Kernel,
}

impl WholeModel {
    /// Of a regression whose coefficients are these.
    pub fn new(regression: &Regression, coefficients: &[Parameter]) -> WholeModel {
        let (family, facts) = (regression.family, regression.response());
        WholeModel {
            family,
            recipe: regression.recipe(),
            fixed: coefficients.iter().map(|p| p.prior.fixed()).collect(),
            large: has_large_counts(family, facts.mean * facts.weight),
            kernel: regression.kernel,
        }
    }

    pub fn family(&self) -> Family {
        self.family
    }

    pub fn columns(&self) -> usize {
        self.recipe.columns.len()
    }
}

/// Why a multinomial model has no offset.
pub(crate) const NO_OFFSET: &str = "a multinomial model has a linear predictor for every class but the first, and an offset does not say which it belongs to; leave offset() out, or use family = \"logistic\" for two classes";

/// Fails at the place of an outcome that the family cannot have.
pub(crate) fn refuse_outcomes(
    family: Family,
    text: &str,
    design: &Design,
    table: &Table,
) -> Result<()> {
    if family == Family::Multinomial && design.offset.is_some() {
        return Err(Error::input(NO_OFFSET));
    }
    // Outcomes of several numbers were looked at when they were put together.
    let outcomes = if design.second.is_some() { &[][..] } else { &design.response };
    for (row, &y) in outcomes.iter().enumerate() {
        if let Some(wanted) = family.refuses(y) {
            let message = format!(
                "the outcome {y} does not fit family = \"{family}\", which needs {wanted}; {}",
                remedy(family, text, outcomes)
            );
            return Err(Error::input_at(table.place(row, Some(text)), message));
        }
    }
    Ok(())
}

/// How many observations each row is: its weight, times the trials of an outcome that counts them. None where every row
/// is one.
pub(crate) fn observations(family: Family, design: &Design) -> Option<Cow<'_, [f64]>> {
    let trials = design.second.as_deref().filter(|_| family.is_binary());
    match (design.weights.as_deref(), trials) {
        (None, None) => None,
        (Some(alone), None) | (None, Some(alone)) => Some(Cow::Borrowed(alone)),
        (Some(weights), Some(trials)) => {
            Some(weights.iter().zip(trials).map(|(w, n)| w * n).collect())
        }
    }
}

impl Piece {
    /// The rows of a table under a model. An outcome that the family cannot have is an error that names
    /// its place.
    pub fn of(whole: &WholeModel, table: &Table) -> Result<Piece> {
        let design = whole.recipe.design(table)?;
        refuse_outcomes(whole.family, &whole.recipe.response.text, &design, table)?;
        Ok(Piece::new(whole.family, design, &whole.fixed, whole.large, whole.kernel))
    }

    /// The rows of a design. `fixed[j]` holds coefficient j, of a multinomial model class after class. `large` is whether
    /// the laws of large counts are taken, which has to be the same for all pieces of a likelihood.
    pub fn new(
        family: Family,
        design: Design,
        fixed: &[Option<f64>],
        large: bool,
        kernel: Kernel,
    ) -> Piece {
        let n = design.response.len();
        let observations = observations(family, &design).map_or(n as f64, |each| each.iter().sum());
        let y = design.response;
        let weights = design.weights.unwrap_or_else(|| vec![1.0; n]);
        let mut offset = design.offset.unwrap_or_else(|| vec![0.0; n]);
        if family == Family::Multinomial {
            let shape = Coefficients::new(design.columns.len(), fixed);
            let columns = design.columns;
            let rows =
                UnmergedRows { columns, offset: vec![0.0; n], weights, y, second: design.second };
            let rows = by_class(&rows, kernel);
            return Piece {
                observations,
                coefficients: fixed.iter().filter(|value| value.is_none()).count(),
                distinct: rows.iter().map(|part| part.rows.counts().len()).sum(),
                body: PieceBody::Classes { rows: Some(rows), shape },
            };
        }
        let mut columns = Vec::new();
        for (column, value) in design.columns.into_iter().zip(fixed) {
            match value {
                None => columns.push(column),
                Some(value) => {
                    offset.iter_mut().zip(column).for_each(|(o, x)| *o += value * x);
                }
            }
        }
        let coefficients = columns.len();
        let mut distinct = n;
        let body = if family == Family::Gaussian {
            let target: Vec<f64> = y.iter().zip(&offset).map(|(y, o)| y - o).collect();
            let all: Vec<&[f64]> = columns.iter().chain([&target]).map(Vec::as_slice).collect();
            PieceBody::Gaussian(Centred::of_columns(&all, &weights, kernel))
        } else {
            if family.has_cases() {
                let rows = UnmergedRows { columns, offset, weights, y, second: design.second };
                let (parts, known) = parts(family, rows, kernel, large);
                distinct = parts.iter().map(|part| part.rows.counts().len()).sum();
                let body = PieceBody::Cases { parts: Some(parts), known };
                return Piece { observations, coefficients, distinct, body };
            }
            if let Some(trials) = design.second {
                let rows = UnmergedRows { columns, offset, weights, y, second: Some(trials) };
                let (rows, constant) = binomial(family, rows, kernel);
                distinct = rows.counts().len();
                let body = PieceBody::Rows { rows: Some(rows), constant, outcomes: None };
                return Piece { observations, coefficients, distinct, body };
            }
            let Constant { mut sum, outcomes, .. } =
                Constant::new(family, &y, Some(&weights), large);
            // With r in it, what a negative binomial's row loses by a mean would be one more function of r.
            let outcome = match family {
                Family::Poisson if large => MergeBy::Counted,
                Family::NegativeBinomial if large => MergeBy::Apart,
                _ => MergeBy::Summed,
            };
            let merged = Merged::new(columns, y, offset, weights, outcome);
            sum.add(-merged.misfit);
            let Merged { columns, offset, count, total, .. } = merged;
            distinct = count.len();
            let build = if large { Rows::of_large_counts } else { Rows::new };
            let rows = Some(build(family, &columns, &offset, &count, &total, kernel));
            PieceBody::Rows { rows, constant: sum.value(), outcomes }
        };
        Piece { observations, coefficients, distinct, body }
    }

    /// Gives the rows up unless there is room for their bytes.
    pub fn keep_if(&mut self, room: &dyn Fn(usize) -> bool) {
        match &mut self.body {
            PieceBody::Rows { rows, .. } => {
                *rows = rows.take().filter(|rows| room(rows.memory()));
            }
            PieceBody::Cases { parts, .. } => {
                let memory = |parts: &Vec<CasePart>| parts.iter().map(|p| p.rows.memory()).sum();
                *parts = parts.take().filter(|parts| room(memory(parts)));
            }
            PieceBody::Classes { rows, .. } => {
                let memory = |parts: &Vec<ClassRows>| parts.iter().map(|p| p.rows.memory()).sum();
                *rows = rows.take().filter(|rows| room(memory(rows)));
            }
            PieceBody::Gaussian(_) => {}
        }
    }

    /// The distinct rows; none of a Gaussian, which does not keep them.
    pub fn into_rows(self) -> Option<Rows> {
        match self.body {
            PieceBody::Rows { rows, .. } => rows,
            _ => None,
        }
    }

    /// Rows of classes without an order.
    pub fn into_classes(self) -> Option<Vec<ClassRows>> {
        match self.body {
            PieceBody::Classes { rows, .. } => rows,
            _ => None,
        }
    }

    /// Rows of several kinds.
    pub fn into_parts(self) -> Option<Vec<CasePart>> {
        match self.body {
            PieceBody::Cases { parts, .. } => parts,
            _ => None,
        }
    }
}

/// Successes out of trials: rows of a logistic or probit that are each shared by all trials, and Σ log of the ways in which
/// successes can be among trials.
fn binomial(family: Family, rows: UnmergedRows, kernel: Kernel) -> (Rows, f64) {
    let UnmergedRows { columns, offset, weights, y, second } = rows;
    let trials = second.unwrap_or_default();
    let mut ways = Compensated::default();
    for ((w, n), k) in weights.iter().zip(&trials).zip(&y) {
        ways.add(w * (lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0)));
    }
    // Rows are merged by columns and offset, whatever is summed: in both cases alike.
    let (again, beside) = (columns.clone(), (offset.clone(), weights.clone()));
    let all = Merged::new(again, trials, beside.0, beside.1, MergeBy::Summed);
    let Merged { columns, offset, total, .. } =
        Merged::new(columns, y, offset, weights, MergeBy::Summed);
    (Rows::new(family, &columns, &offset, &all.total, &total, kernel), ways.value())
}

/// Poisson rows that are a part of others, and their constant.
pub(super) fn poisson(rows: UnmergedRows, kernel: Kernel, large: bool) -> (Rows, f64) {
    let UnmergedRows { columns, offset, weights, y, .. } = rows;
    let Constant { mut sum, .. } = Constant::new(Family::Poisson, &y, Some(&weights), large);
    let outcome = if large { MergeBy::Counted } else { MergeBy::Summed };
    let merged = Merged::new(columns, y, offset, weights, outcome);
    sum.add(-merged.misfit);
    let Merged { columns, offset, count, total, .. } = merged;
    let build = if large { Rows::of_large_counts } else { Rows::new };
    let rows = build(Family::Poisson, &columns, &offset, &count, &total, kernel);
    (rows, sum.value())
}

/// What outcomes add to log-likelihoods, whatever the coefficients are.
#[derive(Debug)]
pub(super) struct Constant {
    sum: Compensated,
    pub value: f64,
    /// Of a negative binomial.
    pub outcomes: Option<DistinctCounts>,
}

impl Constant {
    /// Of rows with these outcomes and weights.
    pub fn new(family: Family, y: &[f64], weights: Option<&[f64]>, large: bool) -> Constant {
        let weight = |i: usize| weights.map_or(1.0, |w| w[i]);
        let term = |y: f64| if large { saturated(y) } else { -lgamma(y + 1.0) };
        let mut sum = Compensated::default();
        if family.is_count() {
            y.iter().enumerate().for_each(|(i, y)| sum.add(weight(i) * term(*y)));
        }
        let outcomes =
            (family == Family::NegativeBinomial).then(|| DistinctCounts::new(y, weight, large));
        Constant { sum, value: sum.value(), outcomes }
    }
}

/// The distinct outcomes of a negative binomial with their counts.
#[derive(Debug, Clone, Default)]
pub(super) struct DistinctCounts {
    counts: BTreeMap<u64, f64>,
    large: bool,
}

impl DistinctCounts {
    fn new(y: &[f64], weight: impl Fn(usize) -> f64, large: bool) -> DistinctCounts {
        let mut counts = BTreeMap::new();
        for (i, y) in y.iter().enumerate() {
            *counts.entry(*y as u64).or_default() += weight(i);
        }
        DistinctCounts { counts, large }
    }

    /// Takes in those of other rows.
    pub fn add(&mut self, others: &DistinctCounts) {
        self.large |= others.large;
        for (y, count) in &others.counts {
            *self.counts.entry(*y).or_default() += count;
        }
    }

    /// Σ log[Γ(y + r)/(Γ(r) r^y)], r = e^a, with its first two derivatives in a. Where counts are large, less
    /// what the rows' and the constant part have of it.
    pub fn expand(&self, a: f64) -> [f64; 3] {
        let dispersion = Dispersion::new(a);
        let mut sums = [Compensated::default(); 3];
        for (&y, &count) in &self.counts {
            let y = y as f64;
            let terms = if self.large { dispersion.saturated(y) } else { dispersion.rising(y) };
            sums.iter_mut().zip(terms).for_each(|(sum, term)| sum.add(count * term));
        }
        sums.map(Compensated::value)
    }
}

/// Whether the counts of all shards together are so many that terms of their size, which cancel, would take
/// digits away that matter: 10⁹ times the rounding of a double is 10⁻⁷. It depends on the model alone, so that
/// all chunks and shards take the same laws.
pub(super) fn has_large_counts(family: Family, total: f64) -> bool {
    family.is_count() && total > 1e9
}

/// What to do about an outcome that the family cannot have.
fn remedy(family: Family, text: &str, outcomes: &[f64]) -> String {
    if family.is_count() {
        return "mend the value, or take family = \"gaussian\" if it is no count".to_string();
    }
    if family == Family::Beta {
        return format!("mend the value, or write it as a share of 1, as in I({text}/100)");
    }
    if !family.is_binary() {
        return "mend the value, leave such rows out, or take family = \"gaussian\"".to_string();
    }
    let whole = Expr::parse(text).ok();
    // A quotient is one of counts, also where some row has more successes than trials, which is said next.
    if let Some(Expr::Binary(Binary::Divide, a, b)) = whole.as_ref().map(Expr::bare) {
        return format!("write counts out of trials as {a}/trials({b}) on the left side");
    }
    if outcomes.iter().all(|y| (0.0..=1.0).contains(y)) {
        return "of shares of so many trials write the number of successes and that of trials, as in successes/trials(n) ~ …; for other shares take family = \"beta\"".to_string();
    }
    let text = whole.map_or(text.to_string(), |expr| expr.bare().to_string());
    // Two values are two classes, whatever they are called: 1 and 2 in many an old file.
    let mut values: Vec<f64> = Vec::new();
    for y in outcomes.iter().filter(|y| y.is_finite()) {
        if !values.contains(y) {
            values.push(*y);
        }
        if values.len() > 2 {
            break;
        }
    }
    values.sort_by(f64::total_cmp);
    match values[..] {
        [first, second] => format!(
            "the values here are {first} and {second}: write what counts as success on the left side, as in I({text} == {second}) ~ …"
        ),
        [only] => format!(
            "the only value here is {only}: write what counts as success on the left side, as in I({text} == {only}) ~ …"
        ),
        // Where success begins nobody knows here: with a number in its place this would run, as another model.
        _ if outcomes.iter().all(|y| *y >= 0.0 && y.fract() == 0.0) => format!(
            "mend the value; of successes out of trials write {text}/trials(n) ~ …, n being the number of trials; of other numbers write from where on they count as success, as in I({text} > limit) ~ …"
        ),
        [_, ..] => format!(
            "mend the value, or write from where on it counts as success on the left side, as in I({text} > limit) ~ …"
        ),
        [] => "mend the value".to_string(),
    }
}
