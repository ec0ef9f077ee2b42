//! What one standard deviation is: how priors `per sd` become priors in the parameters' own units.

use crate::data::Moments;
use crate::model::likelihood::link_of_mean;
use crate::model::{Family, Model, Prior, Regression, Tie};
use crate::question::SurveyAnswer;
use crate::study::PriorSpec;
use crate::{Error, Result};
use std::sync::Arc;

/// The scales whose squares and reciprocals are still numbers.
const SCALES: std::ops::RangeInclusive<f64> = 1e-150..=1e150;

/// The model with its priors settled, given what all shards together say about its columns.
pub(super) fn settled(
    model: Arc<Model>,
    written: &[PriorSpec],
    survey: &SurveyAnswer,
) -> Result<Arc<Model>> {
    let Some(regression) = model.regression().filter(|_| written.iter().any(|spec| spec.per_sd))
    else {
        return Ok(model);
    };
    let mut settled = Model::clone(&model);
    let units = Units::new(regression, survey);
    let levels = regression.intercept_columns();
    // The columns that the outcome's level stands in lean on the priors of the others.
    let columns = regression.active.len();
    let others = (0..columns).filter(|j| !levels.contains(j));
    for j in others.chain(columns..written.len()).filter(|&j| written[j].per_sd) {
        settled.parameters[j].prior = match j < columns {
            true => written[j].prior.in_units(0.0, units.of_column(j, written[j].tie)),
            false if j >= columns + regression.family_own_count() => {
                let number = j - columns - regression.family_own_count();
                let unit = units.of_effect(&model.name, number)?;
                written[j].prior.in_units(libm::log(unit), 1.0)
            }
            false => units.of_own_parameter(regression.family, written[j].prior),
        };
    }
    // The lowest cutpoint is a level, of what is below it.
    if let Some(j) = (columns..written.len()).find(|&j| settled.parameters[j].name == "cut")
        && written[j].per_sd
    {
        settled.parameters[j].prior = units.of_cut(&settled, written, written[j].prior);
    }
    // A prior of all coefficients together is about columns around their means, and the intercept's with it.
    let around_means = written.iter().any(|spec| matches!(spec.tie, Tie::Group | Tie::Flat));
    for &j in levels.iter().filter(|&&j| written[j].per_sd) {
        settled.parameters[j].prior = match around_means {
            true => written[j].prior.in_units(units.level, units.outcome),
            false => units.of_level(&settled, written, j, written[j].prior),
        };
    }
    for (parameter, spec) in settled.parameters.iter().zip(written).filter(|(_, s)| s.per_sd) {
        let prior = parameter.prior;
        let scale = prior.scale().unwrap_or(1.0);
        if !(prior.centre().is_finite() && SCALES.contains(&scale)) {
            return Err(Error::input(format!(
                "model `{}`: in the units of the data the prior {spec} of `{}` has the scale {scale:e}, which cannot be computed with; write the column in other units, or as scale(x), or give another prior",
                model.name, parameter.name
            )));
        }
    }
    Ok(Arc::new(settled))
}

/// What a standard deviation is in the data of all shards.
struct Units<'a> {
    regression: &'a Regression,
    /// The moments of each design column.
    columns: Vec<Moments>,
    /// What one unit of the linear predictor is: the outcome's standard deviation in gaussian models.
    outcome: f64,
    /// The outcome's mean on the scale of the linear predictor, less the offsets'; 0 for binary outcomes.
    level: f64,
}

impl<'a> Units<'a> {
    fn new(regression: &'a Regression, survey: &SurveyAnswer) -> Units<'a> {
        let moments = |j| Moments::of_sums(survey.observations, survey.means[j], survey.squares[j]);
        let response = regression.response();
        let mean = match regression.family {
            Family::Logistic | Family::Probit | Family::Beta => 0.0,
            family => link_of_mean(family, response.mean, response.weight),
        };
        let outcome = match regression.family {
            Family::Gaussian | Family::StudentT if response.sd > 0.0 => response.sd,
            _ => 1.0,
        };
        let columns = 0..regression.active.len();
        Units {
            regression,
            columns: columns.map(moments).collect(),
            outcome,
            level: mean - survey.offset,
        }
    }

    /// The unit of a column's coefficient. Indicators of levels are as they are: a level that few rows
    /// have is no reason to expect a large effect. A prior times σ has σ in the place of the outcome's.
    fn of_column(&self, j: usize, tie: Tie) -> f64 {
        let sd = self.columns[j].sd();
        let own = self.is_indicator(j) || sd == 0.0;
        let outcome = if tie == Tie::Sigma { 1.0 } else { self.outcome };
        outcome / if own { 1.0 } else { sd }
    }

    fn is_indicator(&self, j: usize) -> bool {
        self.regression.design.is_indicator(self.regression.column(j))
    }

    /// The unit of an effect of groups: the outcome's of intercepts, and of slopes as that of the column's own
    /// coefficient.
    fn of_effect(&self, model: &str, number: usize) -> Result<f64> {
        let effects = self.regression.design.effects.as_ref();
        let slope = effects.filter(|e| number == 1 || !e.intercept).and_then(|e| e.slope.as_ref());
        let Some(slope) = slope else { return Ok(self.outcome) };
        let name = slope.to_string();
        let own = self.regression.columns().position(|column| column.name == name);
        own.map(|j| self.of_column(j, Tie::None)).ok_or_else(|| {
            Error::input(format!(
                "model `{model}`: the prior of the slopes' standard deviation is per sd of {name}, which is not known because {name} has no coefficient of its own; add {name} to the formula, or give a prior such as normal(-1, 1) for it under [prior.parameters]"
            ))
        })
    }

    /// The prior of the family's own parameter.
    fn of_own_parameter(&self, family: Family, prior: Prior) -> Prior {
        match family {
            Family::Gaussian | Family::StudentT => prior.in_units(libm::log(self.outcome), 1.0),
            _ => prior,
        }
    }

    /// The prior of the outcome's level where all columns are 0: of the intercept, or of a dummy that
    /// stands in for it. What is known about is the level at the columns' means; from there to 0 it is
    /// Σ mean·β further, of which the priors of the βs say how much that may be.
    fn of_level(&self, model: &Model, written: &[PriorSpec], number: usize, prior: Prior) -> Prior {
        let predictor = number / self.regression.width();
        let (origin, square) = self.at_zero(model, written, predictor);
        self.moved(prior, origin, square)
    }

    /// The prior of the lowest cutpoint, which is compared with the predictor: it moves the other way.
    fn of_cut(&self, model: &Model, written: &[PriorSpec], prior: Prior) -> Prior {
        let (origin, square) = self.at_zero(model, written, 0);
        self.moved(prior, -origin, square)
    }

    /// The expected level of a predictor where all columns are 0, and the variance that the others' priors add to it.
    fn at_zero(&self, model: &Model, written: &[PriorSpec], predictor: usize) -> (f64, f64) {
        let (levels, width) = (self.regression.intercept_columns(), self.regression.width());
        let own = predictor * width..(predictor + 1) * width;
        let (mut origin, mut square) = (self.level, 0.0);
        for (j, (column, spec)) in self.columns.iter().zip(written).enumerate() {
            if own.contains(&j) && !levels.contains(&j) && !self.is_indicator(j) {
                let (mean, slope) = (column.mean, model.parameters[j].prior);
                origin -= mean * slope.centre();
                // σ is not known; the outcome's own spread is no less.
                let unit = if spec.tie == Tie::Sigma { self.outcome } else { 1.0 };
                let spread = mean * unit * slope.spread();
                square += spread * spread;
            }
        }
        (origin, square)
    }

    fn moved(&self, prior: Prior, origin: f64, square: f64) -> Prior {
        let there = prior.in_units(origin, self.outcome);
        let spread = there.spread();
        if square == 0.0 {
            there
        } else {
            there.scaled(libm::hypot(spread, square.sqrt()) / spread)
        }
    }
}
