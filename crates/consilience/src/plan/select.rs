//! Running a study with `[select]`.

use super::Plan;
use crate::data::Term;
use crate::engine::{Engine, Observer, Session};
use crate::estimate::Estimate;
use crate::math::Matrix;
use crate::select::{
    Coefficient, Finding, Inclusion, ListedModel, NamedModel, Selection, VERSION, evidences, find,
};
use crate::space::{self, Candidate, Heredity, Quadratic, Space, Subset, Walk};
use crate::study::Select;
use crate::{Error, Place, Result};
use libm::exp;
use std::collections::BTreeSet;

impl<E: Engine> Plan<E> {
    /// Chooses among all models of a study with `[select]`.
    pub fn select(&self, observer: &dyn Observer) -> Result<Selection> {
        self.select_and_name(&[], observer)
    }

    /// The same; beside that the evidences of these models, each named by its terms: `x1 + x2`.
    pub fn select_and_name(&self, named: &[String], observer: &dyn Observer) -> Result<Selection> {
        self.engine.at_the_centre(|| self.look_through(named, observer))
    }

    fn look_through(&self, named: &[String], observer: &dyn Observer) -> Result<Selection> {
        let Some(select) = &self.study.select else {
            return Err(Error::input(
                "this study names its models; `consilience compare` compares them, and a choice among all subsets of terms is made by a study with [select]",
            ));
        };
        let (setting, space) = (&self.settings[0], self.space(select)?);
        let named =
            named.iter().map(|text| model_of(&space, text)).collect::<Result<Vec<Subset>>>()?;
        let session = Session::resume(&self.engine, observer, self.traffic);
        let found = find(&session, setting, &space, select, &named)?;
        let mut answers = Vec::new();
        if !named.is_empty() {
            answers = evidences(&session, setting, &space, &named)?;
        }
        let first = answers.first().map(|e| e.log_z);
        let total = found.log_normaliser.map(|total| total.value);
        let named = named
            .iter()
            .zip(&answers)
            .enumerate()
            .map(|(k, (model, evidence))| NamedModel {
                terms: labels(&space, model),
                log_evidence: evidence.log_z,
                log_bayes_factor: match first {
                    Some(first) if k > 0 => evidence.log_z - first,
                    _ => Estimate::ZERO,
                },
                probability: total.map(|total| {
                    exp(evidence.log_z.value + space.log_prior(model.len()) - total).min(1.0)
                }),
            })
            .collect();
        Ok(self.selection(select, &space, found, named, &session))
    }

    /// The candidates of a study and their models.
    pub fn space(&self, select: &Select) -> Result<Space> {
        let model = &self.settings[0].model;
        let regression = model.regression().ok_or_else(|| {
            Error::numeric("the model with all candidates has no columns to choose from")
        })?;
        // Numbers of the free parameters, by the parameters' own.
        let mut number = 0;
        let free: Vec<Option<usize>> = model
            .parameters
            .iter()
            .map(|p| {
                p.prior.fixed().is_none().then(|| {
                    number += 1;
                    number - 1
                })
            })
            .collect();
        let mut terms: Vec<Candidate> = Vec::new();
        let candidates = || self.terms.iter().filter(|(_, chosen)| *chosen).map(|(term, _)| term);
        for candidate in candidates() {
            let own: Vec<usize> = (0..regression.active.len())
                .filter(|&j| regression.column(j).term == candidate.label)
                .collect();
            if let Some(&held) = own.iter().find(|&&j| free[j].is_none()) {
                let message = format!(
                    "the coefficient `{}` of the candidate `{}` is held fixed by its prior, so that there is nothing to choose; give it another prior, or move the term to `select.always`",
                    model.parameters[held].name, candidate.label
                );
                return Err(Error::input_at(Place::key("select.candidates"), message));
            }
            terms.push(Candidate {
                label: candidate.label.clone(),
                columns: own.iter().filter_map(|&j| free[j]).collect(),
                parents: Vec::new(),
            });
        }
        // A term of a single level has no column, and no model can tell whether it is in.
        let empty: Vec<String> =
            terms.iter().filter(|t| t.columns.is_empty()).map(|t| t.label.clone()).collect();
        if let Some(label) = empty.first() {
            let message = format!(
                "the candidate `{label}` is the same in all rows, so that there is nothing to choose; leave it out"
            );
            return Err(Error::input_at(Place::key("select.candidates"), message));
        }
        let inside = |part: &Term, whole: &Term| {
            part.variables.len() < whole.variables.len()
                && part.variables.iter().all(|v| whole.variables.contains(v))
        };
        for (t, whole) in candidates().enumerate() {
            let always = self.terms.iter().any(|(part, chosen)| !chosen && inside(part, whole));
            // Where one main effect is enough, one that every model has is.
            if select.heredity == Heredity::Weak && always {
                continue;
            }
            let parents = candidates().enumerate().filter(|(_, part)| inside(part, whole));
            terms[t].parents = parents.map(|(o, _)| o).collect();
        }
        Space::new(terms, select.heredity, model.dim(), &select.prior).map_err(in_select)
    }

    fn selection(
        &self,
        select: &Select,
        space: &Space,
        found: Finding,
        named: Vec<NamedModel>,
        session: &Session,
    ) -> Selection {
        let terms = &space.terms;
        let prior = prior_inclusion(space);
        let inclusion: Vec<Inclusion> = terms
            .iter()
            .zip(&found.inclusion)
            .zip(prior)
            .map(|((term, found), prior)| Inclusion {
                term: term.label.clone(),
                probability: found.value,
                se: found.se,
                prior,
            })
            .collect();
        let median: Subset = (0..terms.len()).filter(|&t| found.inclusion[t].value > 0.5).collect();
        let models: Vec<ListedModel> = found
            .models
            .iter()
            .map(|(model, probability, log_evidence)| ListedModel {
                terms: labels(space, model),
                probability: probability.value,
                se: probability.se,
                log_evidence: log_evidence.map(|e| e.value),
                log_evidence_se: log_evidence.and_then(|e| e.se),
            })
            .collect();
        let mut warnings = self.warnings.clone();
        warnings.extend(self.settings[0].warnings.clone());
        warnings.extend(found.warnings);
        Selection {
            version: VERSION,
            method: found.method,
            family: select.family,
            outcome: select.outcome.clone(),
            always: select.always.clone(),
            space: space.models(),
            prior: select.prior.clone(),
            heredity: select.heredity,
            best_model: models.first().map(|m| m.terms.clone()).unwrap_or_default(),
            median_model: labels(space, &median),
            coefficients: match &found.moments {
                Some(moments) => self.coefficients(space, moments, &found.inclusion),
                None => Vec::new(),
            },
            inclusion,
            models,
            outside: found.outside,
            unseen: found.unseen,
            log_normaliser: found.log_normaliser,
            sizes: found.sizes,
            named,
            jumps: found.jumps,
            diagnostics: found.diagnostics,
            warnings,
            partition: self.partition.clone(),
            traffic: session.traffic(),
            provenance: None,
            seconds: None,
        }
    }

    fn coefficients(
        &self,
        space: &Space,
        moments: &[(f64, f64, f64)],
        inclusion: &[Estimate],
    ) -> Vec<Coefficient> {
        let owner = |j: usize| space.terms.iter().position(|t| t.columns.contains(&j));
        let names = self.settings[0].model.free().map(|p| p.name.clone());
        names
            .zip(moments)
            .enumerate()
            .map(|(j, (name, &(weight, first, second)))| {
                let term = owner(j);
                let inclusion = term.map_or(1.0, |t| inclusion[t].value);
                let if_in = (weight > 0.0).then(|| (first / weight, second / weight));
                let (mean, square) =
                    if_in.map_or((0.0, 0.0), |(m, s)| (inclusion * m, inclusion * s));
                Coefficient {
                    name,
                    term: term.map(|t| space.terms[t].label.clone()),
                    inclusion,
                    mean,
                    sd: (square - mean * mean).max(0.0).sqrt(),
                    mean_if_in: if_in.map(|(m, _)| m),
                    sd_if_in: if_in.map(|(m, s)| (s - m * m).max(0.0).sqrt()),
                }
            })
            .collect()
    }
}

/// An error about `[select]` as a whole.
fn in_select(error: Error) -> Error {
    match error {
        Error::Input { place, message } if place == Place::default() => {
            Error::input_at(Place::key("select"), message)
        }
        other => other,
    }
}

fn labels(space: &Space, model: &Subset) -> Vec<String> {
    model.iter().map(|t| space.terms[t].label.clone()).collect()
}

/// Per candidate, how likely it is in before the data; `None` where heredity has rules for too many models.
fn prior_inclusion(space: &Space) -> Vec<Option<f64>> {
    let p = space.terms.len();
    if space.has_rules() {
        // All models where the data say nothing.
        let nothing = Quadratic {
            constant: 0.0,
            precision: Matrix::identity(space.dim),
            slope: vec![0.0; space.dim],
            gain: vec![0.0; space.dim],
        };
        let walk = Walk { top: 1, tolerance: 0.0, most_nodes: 1 << 22 };
        let few = space.models() <= 1e6;
        let sums = few.then(|| space::sum(space, &nothing, &walk).ok().flatten()).flatten();
        return (0..p).map(|t| sums.as_ref().map(|s| s.inclusion[t])).collect();
    }
    let even = (0..=p)
        .map(|k| {
            let models = space.counts()[k];
            if models > 0.0 { models * exp(space.log_prior(k)) * k as f64 } else { 0.0 }
        })
        .sum::<f64>()
        / p.max(1) as f64;
    vec![Some(even); p]
}

/// The model whose terms these are, in any order.
fn model_of(space: &Space, text: &str) -> Result<Subset> {
    let mut model = Subset::EMPTY;
    let text = text.trim();
    if text.is_empty() {
        return Err(Error::input(
            "a model that is named has no terms; write 1 for the one that has only what all have",
        ));
    }
    for label in text.split('+').map(str::trim).filter(|label| *label != "1") {
        let parts = |label: &str| -> BTreeSet<String> {
            label.split(':').map(|part| part.trim().to_string()).collect()
        };
        let term = space.terms.iter().position(|t| parts(&t.label) == parts(label));
        let Some(term) = term else {
            let known = space.terms.iter().map(|t| t.label.as_str());
            let known = crate::error::suggestion(label, known);
            return Err(Error::input(format!("there is no candidate `{label}`{known}")));
        };
        model.insert(term);
    }
    if !space.allows(&model) {
        return Err(Error::input(format!(
            "the model `{text}` has an interaction without its main effects, which heredity = \"{}\" rules out",
            space.heredity
        )));
    }
    Ok(model)
}
