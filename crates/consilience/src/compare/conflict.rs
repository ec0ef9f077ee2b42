//! Where the data and a prior contradict each other.

use crate::combine::{Evidence, Setting};
use crate::model::{Parameter, Tie};
use crate::{Level, Warning};

/// Further than this from the centre of its prior, in the prior's standard deviations, no parameter was
/// expected: of a thousand draws of a normal prior three are.
const FAR: f64 = 3.0;

/// Cautions where the posterior mean of a parameter is far out in its prior: then the evidence says more
/// about the prior than about the model.
pub(super) fn prior_conflict(setting: &Setting, evidence: &Evidence) -> Option<Warning> {
    let (model, ties) = (&setting.model, setting.joint.of_free(&setting.model));
    // A prior that is tied to others has no centre or width of its own.
    let distance = |((p, mean), tie): ((&Parameter, &f64), &Tie)| match tie {
        Tie::None => (mean - p.prior.centre()).abs() / p.prior.spread(),
        _ => 0.0,
    };
    let distances: Vec<f64> = model.free().zip(&evidence.mean).zip(&ties).map(distance).collect();
    let far = distances.iter().filter(|d| **d > FAR).count();
    let (worst, parameter) =
        distances.iter().zip(model.free()).max_by(|a, b| a.0.total_cmp(b.0))?;
    if far == 0 {
        return None;
    }
    let others = match far - 1 {
        0 => String::new(),
        1 => "; one other parameter is far out too".to_string(),
        n => format!("; {n} other parameters are far out too"),
    };
    let message = format!(
        "the posterior mean of `{}` is {worst:.1} prior standard deviations from the centre of its prior {}{others}",
        parameter.name,
        parameter.prior.rounded()
    );
    let advice = "if it is a matter of units, write the prior per sd, as in \"normal(0, 2.5) per sd\", or the column as scale(x); if not, give a wider prior, or one with heavy tails";
    Some(Warning::new(Level::Caution, "prior-conflict", message, advice).value(*worst))
}
