//! All models at once: a picture of them at the centre, and draws of model and coefficients that correct it.

use super::Found;
use super::centre::Centre;
use super::importance::{Pair, Weighed, draw};
use super::picture::Picture;
use super::report::SelectDiagnostics;
use crate::combine::Setting;
use crate::engine::{Progress, Session};
use crate::estimate::Estimate;
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

/// Fewer effective pairs than this, or a heavier tail, are no ground for an error bar.
const LEAST_ESS: f64 = 100.0;
const HEAVY: f64 = 0.7;

pub(super) fn find(
    session: &Session,
    setting: &Setting,
    space: &Space,
    select: &Select,
) -> Result<Found> {
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
        let wanted = pairs.len() as f64 * (worst / select.se_target) * (worst / select.se_target);
        let most = options.draws.max(PAIRS);
        if worst <= select.se_target || pairs.len() >= most {
            break;
        }
        // A little more than it takes, so that one round is enough.
        let more = ((1.2 * wanted) as usize).min(most).saturating_sub(pairs.len());
        pairs.extend(draw(&picture, &centre, more.clamp(100, MOST_AT_ONCE), &mut rng)?);
    }
    let weighed = Weighed::new(&pairs)?;
    Ok(found(&picture, &weighed, select, moves))
}

fn inclusion(picture: &Picture, weighed: &Weighed) -> Vec<Estimate> {
    let of = |t: usize| {
        let own = weighed.probability(picture.inclusion[t], |m| m.contains(t));
        within(own + picture.weights.beyond.inclusion[t])
    };
    (0..picture.space.terms.len()).map(of).collect()
}

/// A probability that errors may have carried out of bounds.
fn within(estimate: Estimate) -> Estimate {
    Estimate { value: estimate.value.clamp(0.0, 1.0), ..estimate }
}

fn found(picture: &Picture, weighed: &Weighed, select: &Select, moves: usize) -> Found {
    let space = picture.space;
    let beyond = &picture.weights.beyond;
    let log_normaliser = weighed.log_total(picture.log_total) + beyond.log_total;
    // What is known of models at hand is a share of all.
    let share = exp(-beyond.log_total.value).min(1.0);
    let of_all = |own: Estimate| {
        let doubt = own.value * beyond.log_total.se.unwrap_or(0.0);
        let se = own.se.map(|se| share * libm::hypot(se, doubt));
        Estimate { value: share * own.value, se }
    };
    let mut models: Vec<(Subset, Estimate, Option<Estimate>)> = picture
        .heaviest()
        .into_iter()
        .take(select.top)
        .map(|(model, log_weight)| {
            let known = exp(log_weight - picture.log_total);
            let found = weighed.probability(known, |m| *m == model);
            let own = weighed.log_total(picture.log_total);
            let log_evidence = evidence(space, &model, found, log_weight, own);
            (model, of_all(found), Some(log_evidence))
        })
        .collect();
    models.sort_by(|a, b| b.1.value.total_cmp(&a.1.value).then(a.0.cmp(&b.0)));
    let listed: HashSet<Subset> = models.iter().map(|m| m.0).collect();
    let mut known: f64 = 1.0;
    for (model, log_weight) in picture.heaviest() {
        if listed.contains(&model) {
            known -= exp(log_weight - picture.log_total);
        }
    }
    let inside = of_all(weighed.probability((1.0 - known).min(1.0), |m| listed.contains(m)));
    let outside = within(Estimate { value: 1.0 - inside.value, ..inside });
    let inclusion = inclusion(picture, weighed);
    let sizes = (0..=space.terms.len())
        .map(|k| {
            let own = weighed.probability(picture.sizes[k], |m| m.len() == k);
            within(own + beyond.sizes[k])
        })
        .collect();
    let (ess, k_hat) = (weighed.ess(), weighed.k_hat());
    let warnings = warnings(&inclusion, ess, k_hat, weighed.pairs.len(), select.se_target);
    Found {
        method: "search",
        inclusion,
        sizes,
        models,
        outside,
        unseen: beyond.unseen,
        log_normaliser: Some(log_normaliser),
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
    inclusion: &[Estimate],
    ess: f64,
    k_hat: Option<f64>,
    pairs: usize,
    se_target: f64,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let advice = "allow more `draws` under [evidence]; use priors that hold coefficients nearer to where the data can tell, or fewer candidates";
    if ess < LEAST_ESS {
        let message = format!(
            "{pairs} pairs of draws are worth only {ess:.0}: the normal approximation that they are made from misses much of the posterior"
        );
        warnings.push(Warning::new(Level::Unreliable, "low-ess", message, advice).value(ess));
    }
    if let Some(k_hat) = k_hat.filter(|k| *k > HEAVY) {
        let message = format!(
            "the weights of draws have a heavy tail (k̂ = {k_hat:.2}, over {HEAVY}): their error bars may be too small"
        );
        warnings.push(Warning::new(Level::Unreliable, "pareto-k", message, advice).value(k_hat));
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
