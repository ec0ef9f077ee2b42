//! Whether shards agree: a heat map of shards by models.

use super::leading;
use crate::document::compare::Compare;
use crate::figures::View;
use crate::svg::scale::{Scale, Tick};
use crate::svg::{Anchor, Canvas, Figure, Ink, Panel, SIZE, SMALL};
use crate::text::{counted, fixed, grouped, width};

/// Steps of surprise, in standard deviations, with shades and words.
const STEPS: [(f64, f64, &str); 4] = [
    (2.0, 0.10, "as chance has it (up to 2)"),
    (3.0, 0.35, "2 to 3"),
    (4.0, 0.65, "3 to 4"),
    (f64::INFINITY, 1.0, "over 4: look at its rows"),
];

/// What stands for shards of which nothing can be said.
const FEW: &str = "too few rows to tell";

/// What a cell shows of its shards.
#[derive(Clone, Copy, PartialEq)]
enum Shown {
    /// No agreement is known.
    Nothing,
    /// All have too few rows.
    FewRows,
    /// The one that agrees the least of those that have enough, and how surprising it is.
    Worst(usize, f64),
}

fn shade(surprise: f64) -> f64 {
    STEPS.iter().find(|s| surprise < s.0).map_or(1.0, |s| s.1)
}

/// What to show of some shards.
fn shown(document: &Compare, model: usize, from: usize, to: usize) -> Shown {
    let all = &document.models[model].shards;
    let shards = all.get(from..to.min(all.len())).unwrap_or(&[]).iter().enumerate();
    let known = || shards.clone().filter_map(|(i, s)| Some((from + i, s.agreement.as_ref()?)));
    let surprises = known().filter_map(|(shard, a)| Some((shard, a.surprise()?)));
    match surprises.max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((shard, surprise)) => Shown::Worst(shard, surprise),
        None if known().any(|(_, a)| a.is_of_few_rows()) => Shown::FewRows,
        None => Shown::Nothing,
    }
}

pub(crate) fn agreement(view: &View, document: &Compare) -> Figure {
    let mut canvas = Canvas::new(view.width);
    let order = leading(document);
    let shards = document.shards().max(1);
    let name = |i: usize| document.models[i].name.as_str();
    let narrow = canvas.is_narrow();
    let left = if narrow {
        0.0
    } else {
        order.iter().map(|i| width(name(*i), SIZE)).fold(0.0, f64::max).min(canvas.width * 0.32)
            + 10.0
    };
    let room = canvas.width - left - 4.0;
    // Cells that can be told apart; a cell of several shards shows the one that agrees the least.
    let cells = shards.min((room / 6.0) as usize).max(1);
    let wide = (room / cells as f64).min(40.0);
    let (tall, above) = (20.0, if narrow { 18.0 } else { 0.0 });
    let bounds = |cell: usize| (cell * shards / cells, (cell + 1) * shards / cells);
    let grid: Vec<Vec<Shown>> = order
        .iter()
        .map(|i| {
            let of = |cell| shown(document, *i, bounds(cell).0, bounds(cell).1);
            (0..cells).map(of).collect()
        })
        .collect();
    let few = grid.iter().flatten().filter(|s| **s == Shown::FewRows).count();
    let top = key(&mut canvas, few > 0) + 6.0;
    let mut alarming = 0;
    for (row, i) in order.iter().enumerate() {
        let y = top + (tall + above + 2.0) * row as f64 + above;
        if narrow {
            canvas.fitted(0.0, y - 5.0, Anchor::Start, SIZE, name(*i), canvas.width);
        } else {
            canvas.fitted(left - 8.0, y + 14.5, Anchor::End, SIZE, name(*i), left - 10.0);
        }
        // What is as chance has it is one band: only what stands out has a mark of its own.
        canvas.rect(left, y, wide * cells as f64, tall, Ink::Series(1), STEPS[0].1);
        // Neighbours of which nothing can be said are one mark, or a page of many models would be large.
        let mut from = 0;
        for run in grid[row].chunk_by(|a, b| a == b && !matches!(a, Shown::Worst(..))) {
            let (x, wide_run) = (left + wide * from as f64, wide * run.len() as f64);
            let words = format!("{}: {FEW}", name(*i));
            match run[0] {
                Shown::FewRows => {
                    canvas.titled(&words, |canvas| neutral(canvas, x, y, wide_run, tall))
                }
                // Where nothing is known, the band is broken.
                Shown::Nothing => canvas.rect(x, y + 3.0, wide_run, tall - 6.0, Ink::Paper, 1.0),
                Shown::Worst(..) => {}
            }
            from += run.len();
        }
        for (cell, shown) in grid[row].iter().enumerate() {
            let x = left + wide * cell as f64;
            let Shown::Worst(shard, surprise) = *shown else { continue };
            if surprise < STEPS[0].0 {
                continue;
            }
            let words = format!(
                "{}, {}: {} standard deviations",
                name(*i),
                view.document.shard(shard),
                fixed(surprise, 1)
            );
            canvas.titled(&words, |canvas| {
                canvas.rect(x + 0.5, y, wide - 1.0, tall, Ink::Series(1), shade(surprise));
                if surprise >= 4.0 {
                    // So that it is seen in grey too.
                    let (a, b) = (x + 1.5, x + wide - 1.5);
                    canvas.line((a, y + 3.0), (b, y + tall - 3.0), Ink::Text, 1.4);
                    canvas.line((a, y + tall - 3.0), (b, y + 3.0), Ink::Text, 1.4);
                }
            });
            alarming += usize::from(surprise >= 4.0);
        }
    }
    let bottom = top + (tall + above + 2.0) * order.len() as f64 + 2.0;
    let panel = Panel { left, right: left + wide * cells as f64, top: bottom - 2.0, bottom };
    let x = Scale::exactly(-0.5, shards as f64 - 0.5, panel.left, panel.right);
    let whole = |t: &Tick| t.value.fract() == 0.0;
    let ticks = x.ticks((room / 70.0) as usize).into_iter().filter(whole);
    let ticks = ticks.map(|t| Tick { label: grouped(t.value), ..t }).collect();
    canvas.height = panel.bottom_axis(&mut canvas, &x, ticks, "shard");
    let several = shards.div_ceil(cells);
    Figure {
        title: "Do the shards agree?".into(),
        words: format!(
            "A heat map of {} by {}: how far each shard's parameters are from the consensus. {} over 4 standard deviations.",
            counted(order.len(), "model"),
            counted(shards, "shard"),
            match alarming {
                0 => "No cell is".into(),
                1 => "1 cell is".into(),
                _ => format!("{} are", counted(alarming, "cell")),
            }
        ) + &match few {
            0 => String::new(),
            _ if few == order.len() * cells => " Every shard has too few rows to tell.".into(),
            1 => " In 1 cell shards have too few rows to tell.".into(),
            _ => format!(" In {} shards have too few rows to tell.", counted(few, "cell")),
        },
        caption: format!(
            "How far a shard's own data pull the parameters away from the consensus, in standard deviations of what chance gives: χ² of a score test, brought to the scale of a normal.{}{}{}",
            if several > 1 {
                format!(
                    " A cell stands for {several} shards and shows the one that agrees the least."
                )
            } else {
                String::new()
            },
            if few > 0 {
                " Where shards have fewer than 50 rows for each free parameter, χ² is large by chance alone and nothing is said."
            } else {
                ""
            },
            crate::figures::rows::not_drawn(document.models.len(), "model")
        ),
        canvas,
    }
}

/// The mark of shards of which nothing can be said: grey, with a line that is seen in print.
fn neutral(canvas: &mut Canvas, x: f64, y: f64, wide: f64, tall: f64) {
    canvas.rect(x, y, wide, tall, Ink::Paper, 1.0);
    canvas.rect(x, y, wide, tall, Ink::Muted, 0.22);
    canvas.line((x, y + tall / 2.0), (x + wide, y + tall / 2.0), Ink::Muted, 1.0);
}

/// What the shades mean.
fn key(canvas: &mut Canvas, few: bool) -> f64 {
    let (mut x, mut y) = (0.0, 13.0);
    let shades = STEPS.iter().map(|(_, shade, words)| (Some(*shade), *words));
    for (shade, words) in shades.chain(few.then_some((None, FEW))) {
        let wide = 22.0 + width(words, SMALL);
        if x > 0.0 && x + wide > canvas.width {
            x = 0.0;
            y += 19.0;
        }
        match shade {
            Some(shade) => canvas.rect(x, y - 11.0, 14.0, 14.0, Ink::Series(1), shade),
            None => neutral(canvas, x, y - 11.0, 14.0, 14.0),
        }
        if shade.is_some_and(|shade| shade >= 1.0) {
            canvas.line((x + 2.0, y - 9.0), (x + 12.0, y + 1.0), Ink::Text, 1.4);
            canvas.line((x + 2.0, y + 1.0), (x + 12.0, y - 9.0), Ink::Text, 1.4);
        }
        canvas.text(x + 20.0, y, Anchor::Start, SMALL, Ink::Text, words);
        x += wide + 16.0;
    }
    y + 10.0
}
