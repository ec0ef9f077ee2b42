//! A model's log likelihood at points that somebody names.

use super::Plan;
use crate::engine::{Engine, Observer, Session};
use crate::math::Matrix;
use crate::question::Weigh;
use crate::{Error, Result};
use std::sync::Arc;

impl<E: Engine> Plan<E> {
    /// The log likelihood of all rows at points, each a row with values of the model's free parameters: every constant in
    /// it, and no prior.
    pub fn log_likelihood(
        &self,
        model: &str,
        points: Matrix,
        observer: &dyn Observer,
    ) -> Result<Vec<f64>> {
        let Some(setting) = self.settings.iter().find(|s| s.model.name == model) else {
            let names: Vec<String> =
                self.settings.iter().map(|s| format!("`{}`", s.model.name)).collect();
            let message = format!("there is no model `{model}`; there are {}", names.join(", "));
            return Err(Error::input(message));
        };
        let (dim, found) = (setting.model.dim(), points.cols());
        if found != dim {
            let message = format!(
                "model `{model}`: a point has {found} numbers, and the model has {dim} free parameters"
            );
            return Err(Error::input(message));
        }
        let priors = setting.model.free_priors();
        // Shards answer with their shares of the prior, which make up one.
        let prior = |k: usize| -> f64 {
            priors.iter().zip(points.row(k)).map(|(p, x)| p.log_density(*x)).sum()
        };
        let priors: Vec<f64> = (0..points.rows()).map(prior).collect();
        let asked = Weigh(setting.points(Arc::new(points)));
        let answers = Session::new(&self.engine, observer).ask_one(&asked)?;
        let sums = answers.sum(&asked)?.0;
        let totals = sums.into_iter().next().unwrap_or_default();
        Ok(totals.iter().zip(&priors).map(|(total, prior)| total - prior).collect())
    }
}
