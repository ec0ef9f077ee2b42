//! What is not believed, whoever says it: questions that no plan asks, and answers that no shard
//! gives. Every reason reads on from the name of a file, or from "the answer".

use crate::data::{Fact, Levels, Moments, Recipe, Request, Variable};
use crate::math::{Cholesky, Matrix};
use crate::model::{Centred, Model};
use crate::question::{Answer, FitOrder, Question, Share, Summary, Survey};
use crate::target::Expansion;

/// A reason to refuse, if there is one.
type Fault = std::result::Result<(), String>;

/// More draws than this are asked for by nobody.
const MOST_DRAWS: usize = 100_000_000;

/// More points than this are expanded at in no round.
const MOST_EXPANSIONS: usize = 100;

fn ensure(fine: bool, reason: &str) -> Fault {
    if fine { Ok(()) } else { Err(reason.into()) }
}

/// Whether a question can be put to rows at all, whoever made it.
pub(crate) fn question(question: &Question) -> Fault {
    if let Some(m) = question.model() {
        model(m)?;
    }
    let dim = question.model().map_or(0, |m| m.dim());
    let finite = |v: &[f64]| v.iter().all(|x| x.is_finite());
    match question {
        Question::Fit { share: s, order, .. } => {
            share(*s)?;
            draws(order)
        }
        Question::Augment { share: s, order, conditionals, .. } => {
            share(*s)?;
            draws(order)?;
            ensure(*conditionals <= MOST_DRAWS, "it asks for no sensible number of conditionals")
        }
        Question::Statistics { recipe: r } | Question::Survey { design: r, .. } => recipe(r),
        Question::Expand { share: s, thetas, .. } => {
            share(*s)?;
            ensure(
                thetas.cols() == dim && finite(thetas.data()),
                "it asks about points that its model does not have",
            )?;
            ensure(thetas.rows() <= MOST_EXPANSIONS, "it asks about more points than anybody does")
        }
        Question::Weigh { share: s, thetas, .. } => {
            share(*s)?;
            ensure(
                thetas.cols() == dim && finite(thetas.data()),
                "it asks about points that its model does not have",
            )
        }
        Question::Describe { requests, .. } => {
            let deep = |r: &Request| matches!(r, Request::Gram { degree, .. } if *degree > 1000);
            ensure(!requests.iter().any(deep), "it asks for polynomials of no sensible degree")
        }
    }
}

fn share(share: Share) -> Fault {
    let fine = match share {
        Share::Equal { shards } => shards > 0,
        Share::Rows { total } => total.is_finite() && total > 0.0,
    };
    ensure(fine, "its shares of the prior are none")
}

fn draws(order: &FitOrder) -> Fault {
    let FitOrder { draws, warmup, chains, power, .. } = *order;
    let most = |n: usize| (1..=MOST_DRAWS).contains(&n);
    ensure(
        most(draws) && warmup <= MOST_DRAWS && (1..=1000).contains(&chains),
        "it asks for no sensible number of draws",
    )?;
    ensure(power.is_finite() && power > 0.0, "it asks for no sensible power of the likelihood")
}

fn model(model: &Model) -> Fault {
    let Some(regression) = model.regression() else { return Ok(()) };
    let extra = usize::from(regression.family.extra().is_some());
    let known = regression.design.columns.len();
    let fits = model.parameters.len() == regression.active.len() + extra
        && regression.active.iter().all(|&j| (j as usize) < known);
    ensure(fits, "its model does not hold together")?;
    recipe(&regression.design)
}

fn recipe(recipe: &Recipe) -> Fault {
    let wrong = "its design does not hold together";
    for part in recipe.columns.iter().flat_map(|c| &c.parts) {
        let columns = match recipe.variables.get(part.variable as usize) {
            Some(Variable::Number(_)) => 1,
            Some(Variable::Factor { levels, .. }) => levels.len(),
            Some(Variable::Poly { basis, .. }) => basis.degree(),
            None => 0,
        };
        ensure((part.column as usize) < columns, wrong)?;
    }
    Ok(())
}

/// Whether this can be an answer to the question.
pub(crate) fn answer(answer: &Answer, question: &Question) -> Fault {
    let d = question.model().map_or(0, |m| m.dim());
    let finite = |v: &[f64]| v.iter().all(|x| x.is_finite());
    match (question, answer) {
        (Question::Describe { requests, .. }, Answer::Description(facts)) => {
            if facts.len() != requests.len() {
                return Err(format!(
                    "it has {} facts about {} requests",
                    facts.len(),
                    requests.len()
                ));
            }
            requests.iter().zip(facts).try_for_each(|(request, found)| fact(request, found))?;
        }
        (Question::Survey { design, units, .. }, Answer::Survey(found)) => {
            survey(found, design.columns.len(), *units)?;
        }
        (Question::Fit { .. }, Answer::Summary(found)) => summary(found, d)?,
        (Question::Augment { conditionals, .. }, Answer::Augmentation(found)) => {
            summary(&found.summary, d)?;
            let size = d * (d + 1) / 2;
            ensure(
                found.means.has_size(*conditionals, d)
                    && found.factors.has_size(*conditionals, size),
                "its conditionals have the wrong size",
            )?;
            let numbers = || found.means.data().iter().chain(found.factors.data());
            ensure(numbers().all(|v| v.is_finite()), "its conditionals are not finite")?;
        }
        (Question::Statistics { recipe }, Answer::Statistics(found)) => {
            let Centred { observations, shifts, factor } = found;
            let size = recipe.columns.len() + 2;
            ensure(
                observations.is_finite() && *observations >= 0.0,
                "its number of rows is negative or infinite",
            )?;
            ensure(factor.has_size(size, size), "its sums of products have the wrong size")?;
            ensure(factor.is_sound(size, size), "its sums of products are not finite")?;
            ensure(shifts.len() == size - 1, "its means are too many or too few")?;
            ensure(finite(shifts), "its means are not finite")?;
        }
        (Question::Expand { thetas, .. }, Answer::Expansions(found)) => {
            ensure(found.len() == thetas.rows(), "it is about more points or fewer")?;
            found.iter().try_for_each(|at| expansion(at, d))?;
        }
        (Question::Weigh { thetas, .. }, Answer::Weights(weights)) => {
            if weights.len() != thetas.rows() {
                return Err(format!(
                    "it has {} log densities for {} points",
                    weights.len(),
                    thetas.rows()
                ));
            }
            ensure(
                !weights.iter().any(|w| w.is_nan()),
                "one of its log densities is not a number",
            )?;
            ensure(!weights.contains(&f64::INFINITY), "one of its log densities is infinite")?;
        }
        _ => return Err(format!("it answers `{}` with something else", question.kind())),
    }
    Ok(())
}

fn expansion(at: &Expansion, d: usize) -> Fault {
    ensure(!at.value.is_nan(), "its log density is not a number")?;
    ensure(at.gradient.len() == d, "its gradient has the wrong length")?;
    ensure(at.hessian.has_size(d, d), "its Hessian has the wrong size")?;
    let numbers = || at.gradient.iter().chain(at.hessian.data());
    ensure(
        !at.value.is_finite() || !numbers().any(|v| v.is_nan()),
        "its gradient or Hessian is not a number",
    )
}

fn fact(request: &Request, fact: &Fact) -> Fault {
    match (request, fact) {
        (Request::Column(_), Fact::Column(column)) => {
            moments(&column.numbers)?;
            levels(&column.levels)
        }
        (Request::Levels(_), Fact::Levels(found)) => levels(found),
        (Request::Moments(_), Fact::Moments(found)) => moments(found),
        (Request::Gram { degree, min, max, .. }, Fact::Gram(gram)) => {
            ensure(
                gram.sums.len() == 2 * *degree as usize + 1,
                "its sums of polynomials are too many or too few",
            )?;
            let finite = |v: &[f64]| v.iter().all(|x| x.is_finite());
            // Between numbers that far apart there are no polynomials, which the schema says better.
            ensure(
                finite(&gram.sums) && finite(&gram.distinct) || !(max - min).is_finite(),
                "its sums of polynomials are not finite",
            )
        }
        _ => Err("it states a fact of another kind than was asked for".into()),
    }
}

fn moments(found: &Moments) -> Fault {
    let Moments { weight, mean, m2, min, max, .. } = *found;
    // Sums of numbers as large as can be are infinite or none, and squares sooner. They need not be of
    // use, and what uses them says so with the column's name.
    let reach = min.abs().max(max.abs());
    let overflows = |sum: f64| !(8.0 * sum).is_finite();
    let finite = [weight, min, max].iter().all(|v| v.is_finite())
        && (mean.is_finite() || overflows(weight * reach))
        && (m2.is_finite() || overflows(weight * reach * reach));
    ensure(finite, "its column sums are not finite")?;
    let negative = weight < 0.0 || m2 < 0.0;
    ensure(!negative && min <= max, "its column sums contradict each other")
}

fn levels(found: &Levels) -> Fault {
    for pair in found.list.windows(2) {
        ensure(pair[0].name != pair[1].name, "it lists a level twice")?;
    }
    let fine = found.list.iter().all(|l| l.weight.is_finite() && l.weight >= 0.0);
    ensure(fine, "it counts a level's rows with a negative or infinite number")?;
    let numbers = found.list.iter().filter_map(|l| l.number);
    ensure(numbers.into_iter().all(f64::is_finite), "a level of its is not a finite number")
}

fn survey(found: &Survey, columns: usize, units: bool) -> Fault {
    let Survey { observations, nonzero, means, squares, offset } = found;
    ensure(
        observations.is_finite() && *observations >= 0.0,
        "its number of rows is negative or infinite",
    )?;
    ensure(nonzero.len() == columns, "it counts rows of more columns or fewer")?;
    ensure(
        nonzero.iter().all(|n| (0.0..=*observations).contains(n)),
        "it counts more rows in a column than there are",
    )?;
    let wanted = if units { columns } else { 0 };
    ensure(
        means.len() == wanted && squares.len() == wanted,
        "its means of columns are too many or too few",
    )?;
    ensure(
        means.iter().chain(squares).all(|v| v.is_finite()),
        "its means of columns are not finite",
    )?;
    ensure(offset.is_finite(), "its mean of the offsets is not finite")?;
    ensure(squares.iter().all(|s| *s >= 0.0), "its squared deviations are negative")
}

fn summary(found: &Summary, d: usize) -> Fault {
    let finite = |v: &[f64]| v.iter().all(|x| x.is_finite());
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
        b.mean.len() == d && finite(&b.mean) && b.covariance.is_sound(d, d)
    };
    ensure(found.batches.iter().all(fine), "a batch of its draws is not sound")?;
    let fine = |s: &crate::estimate::Shape| {
        s.mean.is_finite() && s.variance.is_finite() && s.variance >= 0.0
    };
    ensure(found.shape.as_ref().is_none_or(fine), "what it says of its normal shape is not sound")
}

/// Whether a symmetric matrix has an eigenvalue that is negative beyond rounding. One that is singular
/// passes: too few draws make such covariances, and that is for the combination to judge.
fn indefinite(matrix: &Matrix) -> bool {
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
