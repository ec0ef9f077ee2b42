//! All models at once: a picture of them at the centre, and draws of model and coefficients that correct it.

use super::Finding;
use super::centre::Centre;
use super::importance::{Pair, Weighed, draw};
use super::picture::Picture;
use super::report::SelectDiagnostics;
use crate::combine::Setting;
use crate::engine::{Progress, Session};
use crate::estimate::Estimate;
use crate::estimate::importance::{LEAST_ESS, MOST_K_HAT};
use crate::math::stream;
use crate::space::{Space, Subset};
use crate::study::Select;
use crate::{Level, Result, Warning};
use libm::exp;
use std::collections::HashSet;

/// Pairs of the first round of draws.
const PAIRS: usize = 1_000;

/// The most pairs of one round, which bounds the size of a question.
const MOST_AT_ONCE: usize = 20_000;

/// The share of pairs that count, below which the centre is moved to where they point.
const POOR: f64 = 0.1;

/// How often that is tried.
const TRIES: usize = 3;

/// The picture's error of single models, in nats, from which on more draws are made whatever their error bars.
const ROUGH: f64 = 0.15;

/// How far the total of all models may be off at the centre, in nats, for draws to mend it.
const FAR: f64 = 1.0;

/// Fewer pairs than this say nothing of a model by itself.
const OWN_PAIRS: usize = 4;

pub(super) fn find(
    session: &Session,
    setting: &Setting,
    space: &Space,
    select: &Select,
) -> Result<Finding> {
    let centre = Centre::new(session, setting);
    let options = &setting.options;
    let tell = |rounds_left: u64| {
        session.progress(Progress { models: 1, done: 0, rounds_left });
    };
    let mut rng = stream(options.seed, setting.model.stream(), u64::MAX, "select");
    tell(9);
    let mut picture = Picture::new(space, &centre, options.rounds)?;
    let mut moves = picture.moves;
    let mut pairs: Vec<Pair> = Vec::new();
    let mut tries = 0;
    loop {
        tell(3);
        picture.refine(&centre)?;
        tell(2);
        pairs.extend(draw(&picture, &centre, PAIRS, &mut rng)?);
        let weighed = Weighed::new(&pairs)?;
        session.found(&worth(&pairs, &weighed));
        let poor = weighed.ess() < POOR * pairs.len() as f64;
        if !poor || tries == TRIES {
            break;
        }
        tries += 1;
        let mean = weighed.mean(&picture);
        picture = picture.from(&centre, mean)?;
        moves += 1 + picture.moves;
        // Draws that another picture made do not go with those to come.
        pairs.clear();
    }
    // More draws, as many as the error bars ask for.
    loop {
        let weighed = Weighed::new(&pairs)?;
        let worst = inclusion(&picture, &weighed).iter().filter_map(|e| e.se).fold(0.0, f64::max);
        let over = (worst / select.se_target) * (worst / select.se_target);
        let for_errors = if over > 1.0 { 1.2 * over * pairs.len() as f64 } else { 0.0 };
        // An error bar from few draws of a rough picture is rough itself.
        let rough = weighed.spread() / ROUGH;
        let wanted = for_errors.max(PAIRS as f64 * (1.0 + rough * rough));
        let most = options.draws.max(PAIRS);
        let more = (wanted as usize).min(most).saturating_sub(pairs.len());
        // A little less than it takes is no reason for another round.
        if pairs.len() >= most || worst <= select.se_target && more < pairs.len() / 4 {
            break;
        }
        pairs.extend(draw(&picture, &centre, more.clamp(100, MOST_AT_ONCE), &mut rng)?);
        session.found(&worth(&pairs, &Weighed::new(&pairs)?));
    }
    let weighed = Weighed::new(&pairs)?;
    Ok(found(&picture, &weighed, select, moves, picture.second_peak(&centre, options.rounds)?))
}

/// What draws are worth so far.
fn worth(pairs: &[Pair], weighed: &Weighed) -> String {
    format!("{} pairs of draws are worth {:.0} of the posterior", pairs.len(), weighed.ess())
}

fn inclusion(picture: &Picture, weighed: &Weighed) -> Vec<Estimate> {
    let of = |t: usize| {
        let own = weighed.probability(picture.inclusion[t], |m| m.contains(t));
        wider(own, picture.weights.errors.inclusion[t])
    };
    (0..picture.space.terms.len()).map(of).collect()
}

/// The same with another error that is independent of its own.
fn wider(estimate: Estimate, error: f64) -> Estimate {
    let se = estimate.se.map(|se| libm::hypot(se, error)).filter(|se| se.is_finite());
    Estimate { se, ..estimate }
}

fn found(
    picture: &Picture,
    weighed: &Weighed,
    select: &Select,
    moves: usize,
    second_peak: Option<usize>,
) -> Finding {
    let space = picture.space;
    let errors = &picture.weights.errors;
    let own_total = weighed.log_total(picture.log_total);
    let spread = weighed.spread();
    let mut heaviest = picture.heaviest();
    heaviest.truncate(select.top);
    let share = |log_weight: f64| exp(log_weight - picture.log_total);
    let mut models: Vec<(Subset, Estimate, Option<Estimate>)> = heaviest
        .iter()
        .map(|&(model, log_weight)| {
            let known = share(log_weight).min(1.0);
            let mut found = weighed.probability(known, |m| *m == model);
            // Where hardly a draw is of the model, what is known of it is the picture, with the picture's error.
            if weighed.pairs_of(&model) < OWN_PAIRS {
                found.se = found.se.map(|se| se.max(known * spread.min(1.0)));
            }
            let log_evidence = evidence(space, &model, found, log_weight, own_total);
            (model, wider(found, found.value * errors.log_total), Some(log_evidence))
        })
        .collect();
    models.sort_by(|a, b| b.1.value.total_cmp(&a.1.value).then(a.0.cmp(&b.0)));
    let listed: HashSet<Subset> = models.iter().map(|m| m.0).collect();
    let inside: f64 = heaviest.iter().map(|(_, log_weight)| share(*log_weight)).sum();
    let outside = weighed.probability((1.0 - inside).clamp(0.0, 1.0), |m| !listed.contains(m));
    let outside = wider(outside, inside.min(1.0) * errors.log_total);
    let inclusion = inclusion(picture, weighed);
    let sizes = (0..=space.terms.len())
        .map(|k| {
            let own = weighed.probability(picture.sizes[k].min(1.0), |m| m.len() == k);
            wider(own, errors.sizes[k])
        })
        .collect();
    let log_normaliser = errors.log_total.is_finite().then(|| wider(own_total, errors.log_total));
    let (ess, k_hat) = (weighed.ess(), weighed.k_hat());
    let warnings = warnings(picture, weighed, &inclusion, select.se_target, second_peak);
    Finding {
        method: "search",
        inclusion,
        sizes,
        models,
        outside,
        unseen: picture.weights.unseen,
        log_normaliser,
        moments: Some(weighed.moments(picture)),
        jumps: Vec::new(),
        diagnostics: SelectDiagnostics {
            models: picture.weights.models,
            pairs: Some(weighed.pairs.len()),
            ess: Some(ess),
            k_hat,
            recentred: Some(moves),
            centres: Some(picture.places.len()),
            nodes: None,
        },
        warnings,
    }
}

/// log p(y|model) from the model's probability.
fn evidence(
    space: &Space,
    model: &Subset,
    probability: Estimate,
    log_weight: f64,
    log_normaliser: Estimate,
) -> Estimate {
    let prior = space.log_prior(model.len());
    let relative = probability.se.map(|se| se / probability.value);
    match relative {
        Some(relative) if probability.value > 0.0 && relative < 1.0 => Estimate {
            value: libm::log(probability.value) + log_normaliser.value - prior,
            se: log_normaliser.se.map(|own| libm::hypot(own, relative)),
        },
        // Where draws say nothing about it, what is known is the approximation.
        _ => Estimate { value: log_weight - prior, se: None },
    }
}

fn warnings(
    picture: &Picture,
    weighed: &Weighed,
    inclusion: &[Estimate],
    se_target: f64,
    second_peak: Option<usize>,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let (pairs, ess, k_hat) = (weighed.pairs.len(), weighed.ess(), weighed.k_hat());
    let advice = "write method = \"enumerate\" under [select] where models are few; otherwise allow more `draws` under [evidence], use priors that hold coefficients nearer to where the data can tell, or fewer candidates";
    let bad = |code: &str, text: String| Warning::new(Level::Unreliable, code, text, advice);
    // Where the centre was moved and it is still poor, rare draws of large weight are to be expected.
    if ess.is_nan() || ess < LEAST_ESS || ess < POOR * pairs as f64 {
        let message = format!(
            "{pairs} pairs of draws are worth only {ess:.0}: the normal approximation that they are made from misses much of the posterior"
        );
        warnings.push(bad("low-ess", message).value(ess));
    }
    if let Some(k_hat) = k_hat.filter(|k| *k > MOST_K_HAT) {
        let message = format!(
            "the weights of draws have a heavy tail (k̂ = {k_hat:.2}, over {MOST_K_HAT}): their error bars may be too small"
        );
        warnings.push(bad("pareto-k", message).value(k_hat));
    }
    let off = weighed.off();
    if off.abs() > FAR {
        let message = format!(
            "the normal approximation that draws are made from is off by {off:.1} nats: models that it takes for unlikely may not be"
        );
        warnings.push(bad("off-centre", message).value(off));
    }
    if let Some(j) = second_peak {
        let message = format!(
            "prior and data want different things of a parameter (number {}), and its heavy-tailed prior gives way to neither: the posterior has several peaks, of which only one is drawn from",
            j + 1
        );
        warnings.push(bad("two-peaks", message).value((j + 1) as f64));
    }
    if !picture.weights.errors.log_total.is_finite() {
        let message = "two chains over the models never met, so that the probabilities of single models are not known; those of terms are".to_string();
        let advice = "ask for terms, not for models; a prior over models that favours small ones, or fewer candidates, makes single models count";
        warnings.push(Warning::new(Level::Caution, "models-diffuse", message, advice));
    }
    let worst = inclusion.iter().filter_map(|e| e.se).fold(0.0, f64::max);
    if worst > se_target {
        let message = format!(
            "an inclusion probability has the standard error {worst:.4}, over se_target = {se_target}, after {pairs} pairs of draws"
        );
        warnings.push(Warning::new(Level::Caution, "se-target", message, advice).value(worst));
    }
    warnings
}
