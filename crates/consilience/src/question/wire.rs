//! How questions about many models travel: a design that models share goes once.
//!
//! These types are the format of files, apart from those that the code computes with. Whoever changes them
//! changes `run::FORMAT` too; the kept files in `tests/corpus` show when that was forgotten.

use super::{Points, checks, room};
use crate::data::Recipe;
use crate::kernel::{Family, Kernel};
use crate::math::{Matrix, Rule};
use crate::model::{Body, Model, Parameter, Regression, Share};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Models, and points of the parameters of each.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct AskedModels {
    designs: Vec<Arc<Recipe>>,
    models: Vec<Asking>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Asking {
    name: String,
    parameters: Vec<Parameter>,
    likelihood: SentPoints,
    share: Share,
    at: ColumnPlaces,
}

/// Points, or how to make them.
#[derive(Debug, Serialize, Deserialize)]
enum ColumnPlaces {
    Listed(Arc<Matrix>),
    Made(Arc<Rule>),
}

#[derive(Debug, Serialize, Deserialize)]
enum SentPoints {
    /// The numbers of a design and of its columns.
    Regression {
        family: Family,
        design: u32,
        active: Vec<u32>,
        kernel: Kernel,
    },
    Foreign(String),
}

impl From<Vec<Points>> for AskedModels {
    fn from(points: Vec<Points>) -> AskedModels {
        let mut designs: Vec<Arc<Recipe>> = Vec::new();
        let mut number = |design: &Arc<Recipe>| {
            // One and the same, not only equal: to compare all of them would take longer than to send them.
            let known = designs.iter().position(|known| Arc::ptr_eq(known, design));
            known.unwrap_or_else(|| {
                designs.push(design.clone());
                designs.len() - 1
            }) as u32
        };
        let models = points
            .into_iter()
            .map(|Points { model, share, thetas, rule }| Asking {
                name: model.name.clone(),
                parameters: model.parameters.clone(),
                likelihood: match &model.body {
                    Body::Regression(r) => SentPoints::Regression {
                        family: r.family,
                        design: number(&r.design),
                        active: r.active.clone(),
                        kernel: r.kernel,
                    },
                    Body::Foreign { likelihood } => SentPoints::Foreign(likelihood.clone()),
                },
                share,
                at: match rule {
                    Some(rule) if rule.is_sound(model.dim()) => ColumnPlaces::Made(rule),
                    _ => ColumnPlaces::Listed(thetas),
                },
            })
            .collect();
        AskedModels { designs, models }
    }
}

impl TryFrom<AskedModels> for Vec<Points> {
    type Error = &'static str;

    fn try_from(asked: AskedModels) -> Result<Vec<Points>, Self::Error> {
        let AskedModels { designs, models } = asked;
        let made = models.iter().map(|asking| match &asking.at {
            ColumnPlaces::Listed(_) => 0,
            // Points and the draws that they are made of are there at once.
            ColumnPlaces::Made(rule) => 2 * rule.numbers().min(1 << 60) as u64,
        });
        if !room::take(made.fold(0, u64::saturating_add)) {
            return Err("rules that make more points than there may be");
        }
        let points = |asking: Asking| {
            let body = match asking.likelihood {
                SentPoints::Regression { family, design, active, kernel } => {
                    let design = designs.get(design as usize).cloned();
                    let design = design.ok_or("a model over a design that is not there")?;
                    Body::Regression(Regression { family, design, active, kernel })
                }
                SentPoints::Foreign(likelihood) => Body::Foreign { likelihood },
            };
            let (name, parameters) = (asking.name, asking.parameters);
            let model = Arc::new(Model { name, parameters, body });
            match asking.at {
                ColumnPlaces::Listed(thetas) => {
                    Ok(Points { model, share: asking.share, thetas, rule: None })
                }
                ColumnPlaces::Made(rule) => {
                    // Points are made of the model's priors, which somebody else may have written.
                    checks::model(&model).map_err(|_| "a model that does not hold together")?;
                    let points = Points::made(model, asking.share, rule);
                    points.ok_or("a rule that makes no points of its model")
                }
            }
        };
        models.into_iter().map(points).collect()
    }
}

/// Gives a question about points this form on its way.
macro_rules! travels_as_asked {
    ($kind:ident) => {
        impl From<$kind> for AskedModels {
            fn from(question: $kind) -> AskedModels {
                question.0.into()
            }
        }

        impl TryFrom<AskedModels> for $kind {
            type Error = &'static str;

            fn try_from(asked: AskedModels) -> Result<$kind, Self::Error> {
                Ok($kind(asked.try_into()?))
            }
        }
    };
}

use super::{Cubic, Expand, Locate, Weigh};
travels_as_asked!(Cubic);
travels_as_asked!(Expand);
travels_as_asked!(Locate);
travels_as_asked!(Weigh);
