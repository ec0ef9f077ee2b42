//! How well the numbers are known: draws, weights and chains, with a verdict in plain words.

use super::leading;
use crate::document::compare::{Compare, Model};
use crate::figures::View;
use crate::svg::{Anchor, Canvas, Figure, Ink, SIZE, SMALL};
use crate::text::{fixed, grouped};

/// A model's draws in numbers, and what to think of them.
pub(crate) struct Verdict {
    pub method: String,
    pub draws: String,
    pub worth: String,
    pub k_hat: String,
    pub r_hat: String,
    pub words: String,
    /// 0 fine, 1 look at it, 2 not to be trusted.
    pub grade: usize,
}

pub(crate) fn verdict(model: &Model) -> Verdict {
    let combination = model.combination.as_ref();
    let of_shards =
        |f: &dyn Fn(&crate::document::compare::Shard) -> Option<f64>,
         worst: fn(f64, f64) -> f64| { model.shards.iter().filter_map(f).reduce(worst) };
    let shard_k = of_shards(&|s| s.k_hat, f64::max);
    let shard_ess = of_shards(&|s| s.ess, f64::min);
    let r_hat = of_shards(&|s| s.chains.as_ref()?.r_hat, f64::max);
    let divergences: f64 = model
        .shards
        .iter()
        .filter_map(|s| s.chains.as_ref()?.divergences)
        .filter(|d| *d > 0.0)
        .sum();
    let ess = combination.and_then(|c| c.ess);
    let k_hat = combination.and_then(|c| c.k_hat);
    let mut words: Vec<String> = Vec::new();
    let mut grade = 0;
    let mut say = |bad: usize, text: String| {
        grade = grade.max(bad);
        words.push(text);
    };
    for (ess, of) in [(ess, ""), (shard_ess, " on a shard")] {
        if let Some(ess) = ess.filter(|e| *e < 100.0) {
            say(2, format!("only {} effective draws{of}", grouped(ess)));
        }
    }
    for (k, of) in [(k_hat, ""), (shard_k, " on a shard")] {
        if let Some(k) = k.filter(|k| *k > 0.7) {
            say(2, format!("a few weights dominate{of} (k̂ {})", fixed(k, 2)));
        }
    }
    match r_hat {
        Some(r) if r > 1.05 => say(2, format!("chains have not mixed (R̂ {})", fixed(r, 3))),
        Some(r) if r > 1.01 => say(1, format!("chains mix slowly (R̂ {})", fixed(r, 3))),
        _ => {}
    }
    if divergences > 0.0 {
        say(1, format!("{} divergent steps", grouped(divergences)));
    }
    if let Some(shape) = model.parts.shape_error.filter(|s| *s > 1.0) {
        say(2, format!("shards' posteriors are not normal: off by up to {} nats", fixed(shape, 1)));
    }
    if words.is_empty() {
        words.push(
            match (ess, r_hat, model.log_evidence.se) {
                (None, None, Some(_)) if shard_ess.is_none() => "no draws are needed",
                (_, _, None) => "no error bar: Laplace's approximation",
                (_, Some(_), _) => "draws and chains are fine",
                _ => "weights are even, draws are plenty",
            }
            .to_string(),
        );
    }
    let dash = || "–".to_string();
    Verdict {
        method: combination.map_or_else(|| "normal".into(), |c| c.method.clone()),
        draws: combination.and_then(|c| c.draws).map_or_else(dash, |d| grouped(d as f64)),
        worth: ess.map_or_else(dash, grouped),
        k_hat: k_hat.or(shard_k).map_or_else(dash, |k| fixed(k, 2)),
        r_hat: r_hat.map_or_else(dash, |r| fixed(r, 3)),
        words: words.join("; "),
        grade,
    }
}

pub(crate) fn weights(view: &View, document: &Compare) -> Figure {
    let mut canvas = Canvas::new(view.width);
    let mut y = 6.0;
    let mut bad = 0;
    for i in leading(document) {
        let model = &document.models[i];
        let verdict = verdict(model);
        bad += usize::from(verdict.grade == 2);
        let middle = y + 9.0;
        match verdict.grade {
            0 => {
                canvas.line((2.0, middle), (6.0, middle + 5.0), Ink::Series(2), 2.4);
                canvas.line((6.0, middle + 5.0), (13.0, middle - 5.0), Ink::Series(2), 2.4);
            }
            1 => canvas.point(7.5, middle, 6.0, 4, true),
            _ => canvas.point(7.5, middle, 6.0, 1, true),
        }
        canvas.fitted(24.0, y + 14.0, Anchor::Start, SIZE, &model.name, canvas.width - 24.0);
        let numbers = format!(
            "{}; {} draws worth {}, k̂ {}, R̂ {}",
            verdict.method, verdict.draws, verdict.worth, verdict.k_hat, verdict.r_hat
        );
        let room = canvas.width - 24.0;
        y = canvas.paragraph(24.0, y + 32.0, SMALL, Ink::Text, &verdict.words, room);
        y = canvas.paragraph(24.0, y, SMALL, Ink::Muted, &numbers, room) + 2.0;
    }
    canvas.height = y;
    Figure {
        title: "How well the numbers are known".into(),
        words: format!(
            "Draws, weights and chains of each model with a verdict; {bad} of them are not to be trusted."
        ),
        caption: format!(
            "A tick: fine. A triangle: look at it. A square: not to be trusted. “Worth” is the number of independent draws that they are worth; k̂ over 0.7 and R̂ over 1.05 are too much.{}",
            crate::figures::rows::not_drawn(document.models.len(), "model")
        ),
        canvas,
    }
}
