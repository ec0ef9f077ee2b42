//! What several kinds of questions check alike.

use crate::data::{Expr, Recipe, Variable};
use crate::fit::{FitOrder, Summary};
use crate::math::{Cholesky, Matrix};
use crate::model::{Model, Share};

/// A reason to refuse, if there is one. It reads on from the name of a file, or from "the answer".
pub type Fault = std::result::Result<(), String>;

/// More draws than this are asked for by nobody; what has room for them is another matter (`room.rs`).
const MOST_DRAWS: usize = 100_000_000;

pub(super) fn ensure(fine: bool, reason: &str) -> Fault {
    if fine { Ok(()) } else { Err(reason.into()) }
}

pub(super) fn finite(values: &[f64]) -> bool {
    values.iter().all(|x| x.is_finite())
}

/// Observations: none or more.
pub(super) fn observations(found: f64) -> Fault {
    ensure(found.is_finite() && found >= 0.0, "its number of rows is negative or infinite")
}

pub(super) fn share(share: Share) -> Fault {
    let fine = match share {
        Share::Equal { shards } => shards > 0,
        Share::Rows { total } => total.is_finite() && total > 0.0,
    };
    ensure(fine, "its shares of the prior are none")
}

pub(super) fn order(order: &FitOrder) -> Fault {
    let FitOrder { draws, warmup, chains, power, .. } = *order;
    let most = |n: usize| (1..=MOST_DRAWS).contains(&n);
    ensure(
        most(draws) && warmup <= MOST_DRAWS && (1..=1000).contains(&chains),
        "it asks for no sensible number of draws",
    )?;
    ensure(power.is_finite() && power > 0.0, "it asks for no sensible power of the likelihood")
}

pub(super) fn model(model: &Model) -> Fault {
    let sound = model.parameters.iter().all(|p| p.prior.is_sound());
    ensure(sound, "the numbers of a prior in it are none")?;
    let Some(regression) = model.regression() else { return Ok(()) };
    let extra = regression.own_count();
    let known = regression.design.columns.len();
    let fits = model.parameters.len() == regression.active.len() + extra
        && regression.active.iter().all(|&j| (j as usize) < known)
        && regression.is_even();
    ensure(fits, "its model does not hold together")?;
    recipe(&regression.design)
}

/// Whether the intervals inside an expression hold together.
pub(super) fn intervals_are_sound(expr: &Expr) -> bool {
    let mut sound = true;
    expr.visit(&mut |part| {
        if let Expr::Cut(_, intervals) = part {
            sound &= intervals.is_sound();
        }
    });
    sound
}

pub(super) fn recipe(recipe: &Recipe) -> Fault {
    let wrong = "its design does not hold together";
    for part in recipe.columns.iter().flat_map(|c| &c.parts) {
        let columns = match recipe.variables.get(part.variable as usize) {
            Some(Variable::Number(_)) => 1,
            Some(Variable::Factor { levels, .. }) => levels.len(),
            Some(Variable::Poly { basis, .. }) => basis.degree(),
            Some(Variable::Spline { basis, .. }) => basis.width(),
            None => 0,
        };
        ensure((part.column as usize) < columns, wrong)?;
    }
    ensure(recipe.effects.as_ref().is_none_or(|effects| effects.is_sound()), wrong)?;
    for variable in &recipe.variables {
        let sound = match variable {
            Variable::Spline { basis, .. } => basis.is_sound(),
            Variable::Factor { expr, .. } => intervals_are_sound(expr),
            Variable::Number(_) | Variable::Poly { .. } => true,
        };
        ensure(sound, wrong)?;
    }
    Ok(())
}

/// A fit of a model with d free parameters.
pub(super) fn summary(found: &Summary, d: usize) -> Fault {
    let words = found.warnings.iter().flat_map(|w| [&w.code, &w.message, &w.advice]);
    let odd = |text: &String| text.contains(char::is_control);
    ensure(
        !words.chain([&found.method]).any(odd),
        "its words hold characters that are no letters",
    )?;
    ensure(found.log_z.value.is_finite(), "its log evidence is not finite")?;
    ensure(
        found.log_z.se.is_none_or(|se| se.is_finite() && se >= 0.0),
        "its standard error is negative or infinite",
    )?;
    ensure(
        found.mean.len() == d && found.mode.len() == d,
        "its mean or mode has the wrong length",
    )?;
    ensure(finite(&found.mean) && finite(&found.mode), "its mean or mode is not finite")?;
    for (matrix, name) in [(&found.covariance, "covariance"), (&found.precision, "precision")] {
        ensure(matrix.has_size(d, d), &format!("its {name} has the wrong size"))?;
        ensure(matrix.is_sound(d, d), &format!("its {name} is not finite"))?;
    }
    let c = &found.covariance;
    let apart = |i: usize, j: usize| {
        (c[(i, j)] - c[(j, i)]).abs() > 1e-6 * (c[(i, i)] * c[(j, j)]).abs().sqrt()
    };
    ensure(!(0..d).any(|i| (0..i).any(|j| apart(i, j))), "its covariance is not symmetric")?;
    ensure(!indefinite(c), "its covariance is not positive definite")?;
    ensure(
        found.effective.is_none_or(|n| n.is_finite() && n > 0.0),
        "its number of effective draws is not positive",
    )?;
    let fine = |b: &crate::estimate::Batch| {
        b.mean.len() == d
            && finite(&b.mean)
            && b.covariance.is_sound(d, d)
            && b.log_z < f64::INFINITY
    };
    ensure(found.batches.iter().all(fine), "a batch of its draws is not sound")?;
    ensure(
        matches!(found.batches.len(), 0 | crate::fit::BATCHES),
        "it has more batches of draws, or fewer, than any fit",
    )?;
    let fine = |s: &crate::estimate::Shape| {
        s.mean.is_finite() && s.variance.is_finite() && s.variance >= 0.0
    };
    ensure(found.shape.as_ref().is_none_or(fine), "what it says of its normal shape is not sound")
}

/// Whether a symmetric matrix has an eigenvalue that is negative beyond rounding. One that is singular
/// passes: too few draws make such covariances, and that is for the combination to judge.
pub(super) fn indefinite(matrix: &Matrix) -> bool {
    let diagonal = matrix.diagonal();
    if diagonal.iter().any(|v| *v < 0.0) {
        return true;
    }
    // Scaled to a unit diagonal, so that the units of the parameters do not matter.
    let scale: Vec<f64> = diagonal.iter().map(|v| if *v > 0.0 { v.sqrt() } else { 1.0 }).collect();
    let n = diagonal.len();
    let mut scaled = Matrix::zeros(n, n);
    for i in 0..n {
        for j in 0..n {
            scaled[(i, j)] = matrix[(i, j)] / (scale[i] * scale[j]);
        }
        scaled[(i, i)] += 1e-6;
    }
    Cholesky::new(&scaled).is_none()
}

/// The first few numbers.
pub(super) fn numbers(values: &[f64]) -> String {
    let shown: Vec<String> = values.iter().take(6).map(f64::to_string).collect();
    match values.len() {
        0 => "none".into(),
        n if n > shown.len() => format!("{}, … ({n} numbers)", shown.join(", ")),
        _ => shown.join(", "),
    }
}
