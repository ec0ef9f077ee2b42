//! Figures of a sweep over partitions.

use super::View;
use super::chart::{Chart, Series, Spot, Upwards};
use crate::document::sweep::{Group, GroupModel, Line, Sweep};
use crate::svg::{Canvas, Figure, Mark, legend};
use crate::text::quoted;

/// At most this many panels below each other.
const MOST_PANELS: usize = 12;

const SHARDS: &str = "number of shards";

/// At most this many models have a panel, unless one is asked for.
const MOST_MODELS: usize = 6;

/// The models that are drawn: the one that was asked for, or those that the reference prefers, the best first.
fn models(view: &View, document: &Sweep) -> Vec<usize> {
    if let Some(model) = view.model {
        return vec![model];
    }
    let value = |m: &usize| document.reference.log_evidence[*m].value;
    let mut all: Vec<usize> = (0..document.models.len()).collect();
    all.sort_by(|a, b| value(b).total_cmp(&value(a)).then(a.cmp(b)));
    all.truncate(MOST_MODELS);
    all
}

/// What to say where not all models are drawn.
fn left_out(view: &View, document: &Sweep) -> String {
    let left = document.models.len().saturating_sub(MOST_MODELS);
    if view.model.is_some() || left == 0 {
        return String::new();
    }
    format!(
        " The {MOST_MODELS} models that the reference prefers are drawn; {left} more are in the table."
    )
}

/// A panel per way to split and model.
fn panels<'a>(
    view: &View,
    document: &'a Sweep,
    skip: Option<usize>,
) -> Vec<(&'a str, usize, String)> {
    let mut models = models(view, document);
    if models.len() > 1 {
        models.retain(|m| Some(*m) != skip);
    }
    let mut out = Vec::new();
    for by in &document.by {
        for model in &models {
            let name = &document.models[*model];
            out.push((by.as_str(), *model, format!("{name}, split by {by}")));
        }
    }
    out.truncate(MOST_PANELS);
    out
}

fn shards(document: &Sweep) -> Vec<f64> {
    document.shards.iter().map(|s| *s as f64).collect()
}

/// Series of methods by a number per group.
fn by_method(
    document: &Sweep,
    by: &str,
    joined: bool,
    value: impl Fn(&Group) -> Option<Spot>,
) -> Vec<Series> {
    let mut out = Vec::new();
    for (number, method) in document.methods().into_iter().enumerate() {
        let groups = document.groups.iter().filter(|g| g.by == by && g.method == method);
        let spots: Vec<Spot> = groups.filter_map(&value).collect();
        if !spots.is_empty() {
            out.push(Series { number, name: method.to_string(), spots, joined, marked: true });
        }
    }
    out
}

/// A legend of the methods that are in some panels.
fn methods(canvas: &mut Canvas, charts: &[Chart], line: bool) -> f64 {
    let mut items: Vec<(String, Mark)> = Vec::new();
    let mut all: Vec<&Series> = charts.iter().flat_map(|c| &c.series).collect();
    all.sort_by_key(|s| s.number);
    for series in all {
        let mark = if line { Mark::Line(series.number) } else { Mark::Point(series.number) };
        if !items.iter().any(|i| i.0 == series.name) {
            items.push((series.name.clone(), mark));
        }
    }
    legend(canvas, 0.0, &items)
}

fn stack(canvas: &mut Canvas, charts: &[Chart], line: bool) {
    let mut end = methods(canvas, charts, line);
    for chart in charts.iter().filter(|c| c.series.iter().any(|s| !s.spots.is_empty())) {
        end = chart.draw(canvas, end + 6.0, 190.0) + 6.0;
    }
    canvas.height = end;
}

/// A spread that shows errors near 0 as well as large ones.
fn for_errors(series: &[Series]) -> Upwards {
    let mut sizes: Vec<f64> = series.iter().flat_map(|s| &s.spots).map(|s| s.1.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let most = sizes.last().copied().unwrap_or(0.0);
    let middle = sizes.get(sizes.len() / 2).copied().unwrap_or(0.0);
    if most > 20.0 * middle.max(0.05) {
        Upwards::SymLog(middle.clamp(0.05, 1.0))
    } else {
        Upwards::Linear
    }
}

pub(crate) fn error(view: &View, document: &Sweep) -> Figure {
    let mut canvas = Canvas::new(view.width);
    let mut bent = false;
    let mut charts = Vec::new();
    for (by, model, title) in panels(view, document, None) {
        let reference = document.reference.log_evidence[model].value;
        let mut series = Vec::new();
        for (number, method) in document.methods().into_iter().enumerate() {
            let cells = document.cells.iter().filter(|c| c.by == by);
            let spot = |cell: &crate::document::sweep::Cell| {
                let combined = cell.combinations.iter().find(|c| c.method == method)?;
                let e = combined.models.get(model)?.log_evidence;
                let less = |(low, high): (f64, f64)| (low - reference, high - reference);
                Some((cell.shards as f64, e.value - reference, e.interval().map(less)))
            };
            let spots: Vec<Spot> = cells.filter_map(spot).collect();
            if !spots.is_empty() {
                series.push(Series {
                    number,
                    name: method.to_string(),
                    spots,
                    joined: false,
                    marked: true,
                });
            }
        }
        let upwards = for_errors(&series);
        bent |= upwards != Upwards::Linear;
        charts.push(Chart {
            title,
            x_name: SHARDS,
            y_name: "log evidence less the reference (nats)",
            x: shards(document),
            by_ratio: true,
            upwards,
            series,
            levels: vec![0.0],
            beside: true,
        });
    }
    stack(&mut canvas, &charts, false);
    Figure {
        title: "How far off the log evidence is".into(),
        words: format!(
            "Points of the error in log evidence over the number of shards, one per partition, by method; {} panels.",
            charts.len()
        ),
        caption: format!(
            "A point is a partition, with the 95% interval that the method itself gives. 0 is the reference ({}).{}",
            document.reference.method,
            if bent {
                " Where errors differ greatly in size, the axis is even near 0 and by powers of ten further out."
            } else {
                ""
            }
        ) + &left_out(view, document),
        canvas,
    }
}

pub(crate) fn rmse(view: &View, document: &Sweep) -> Figure {
    let mut canvas = Canvas::new(view.width);
    let chart = |(by, model, title): (&str, usize, String)| Chart {
        title,
        x_name: SHARDS,
        y_name: "root mean square error (nats)",
        x: shards(document),
        by_ratio: true,
        upwards: Upwards::Log,
        series: by_method(document, by, true, |g| {
            if g.score != "log evidence" {
                return None;
            }
            let rmse = g.models.get(model)?.rmse?;
            (rmse > 0.0).then_some((g.shards as f64, rmse, None))
        }),
        levels: vec![0.1],
        beside: false,
    };
    let charts: Vec<Chart> = panels(view, document, None).into_iter().map(chart).collect();
    stack(&mut canvas, &charts, true);
    Figure {
        title: "Error in log evidence".into(),
        words: "Lines of the root mean square error of the log evidence over the number of shards, by method, on a log scale.".into(),
        caption: "Root mean square error over the repeats. The level line is a tenth of a nat, which hardly ever matters.".to_string()
            + &left_out(view, document),
        canvas,
    }
}

pub(crate) fn choices(view: &View, document: &Sweep) -> Figure {
    let mut canvas = Canvas::new(view.width);
    let best = document.best();
    let model = view.model.unwrap_or(best);
    let chart = |by: &String| Chart {
        title: format!("split by {by}"),
        x_name: SHARDS,
        y_name: "share of partitions",
        x: shards(document),
        by_ratio: true,
        upwards: Upwards::Share,
        series: by_method(document, by, true, |g| {
            let all: u64 = g.chosen.iter().fold(0, |a, b| a.saturating_add(*b));
            let share = *g.chosen.get(model)? as f64 / all as f64;
            (all > 0).then_some((g.shards as f64, share, None))
        }),
        levels: Vec::new(),
        beside: true,
    };
    let charts: Vec<Chart> = document.by.iter().take(MOST_PANELS).map(chart).collect();
    stack(&mut canvas, &charts, true);
    let name = quoted(&document.models[model]);
    let right = if model == best {
        "the model that the reference chooses"
    } else {
        "which the reference does not choose"
    };
    Figure {
        title: format!("How often {name} is chosen"),
        words: format!(
            "Lines of the share of partitions in which {name} is chosen, over the number of shards, by method."
        ),
        caption: format!(
            "The share of partitions in which a method chooses {name}, {right}. Methods stand a little beside each other so that none hides another."
        ),
        canvas,
    }
}

pub(crate) fn bayes_factor(view: &View, document: &Sweep) -> Figure {
    let mut canvas = Canvas::new(view.width);
    let best = document.best();
    let mut charts = Vec::new();
    for (by, model, _) in panels(view, document, Some(best)) {
        let reference = document.reference.log_evidence[best].value
            - document.reference.log_evidence[model].value;
        let series = by_method(document, by, true, |g| {
            if g.score != "log evidence" {
                return None;
            }
            let factor = g.models.get(model)?.log_bayes_factor.as_ref()?;
            let spread = factor.sd.map(|sd| (factor.mean - sd, factor.mean + sd));
            Some((g.shards as f64, factor.mean, spread))
        });
        charts.push(Chart {
            title: format!("against {}, split by {by}", document.models[model]),
            x_name: SHARDS,
            y_name: "log Bayes factor (nats)",
            x: shards(document),
            by_ratio: true,
            upwards: Upwards::Linear,
            series,
            levels: vec![reference, 0.0],
            beside: true,
        });
    }
    stack(&mut canvas, &charts, true);
    Figure {
        title: format!("Log Bayes factor of {}", quoted(&document.models[best])),
        words: "Lines of the mean log Bayes factor over the number of shards, by method, with the reference as a level line.".into(),
        caption: "Means over the repeats with one standard deviation to both sides. Level lines are the reference and 0; below 0 the choice is another.".to_string()
            + &left_out(view, document),
        canvas,
    }
}

pub(crate) fn epsilon(view: &View, document: &Sweep) -> Figure {
    let mut canvas = Canvas::new(view.width);
    let mut charts = Vec::new();
    for (by, model, title) in panels(view, document, None) {
        type Pick = fn(&GroupModel) -> Option<f64>;
        let kinds: [(&str, &str, Pick); 2] =
            [("epsilon1", "ε₁ (nats)", |m| m.epsilon1), ("epsilon2", "ε₂ (nats)", |m| m.epsilon2)];
        for (what, y_name, pick) in kinds {
            let of = |method: &str, pick: Pick| -> Vec<Spot> {
                let groups = document.evidences().filter(|g| g.by == by && g.method == method);
                groups
                    .filter_map(|g| Some((g.shards as f64, pick(g.models.get(model)?)?, None)))
                    .collect()
            };
            let mut series = Vec::new();
            for (number, method) in document.methods().into_iter().enumerate() {
                let (spots, name) = (of(method, pick), method.to_string());
                if spots.is_empty() {
                    continue;
                }
                let same = |l: &&Line| {
                    l.by == by && l.method == method && l.model == model && l.what == what
                };
                if let Some(line) = document.lines.iter().find(same) {
                    let at = |s: f64| (s, line.intercept + line.slope * s, None);
                    let spots = shards(document).into_iter().filter(|s| *s > 1.0).map(at).collect();
                    let name = name.clone();
                    series.push(Series { number, name, spots, joined: true, marked: false });
                }
                series.push(Series { number, name, spots, joined: false, marked: true });
            }
            // The overlap itself, which the second kind of error grows with.
            let methods = document.methods();
            let first =
                methods.iter().map(|m| of(m, |m| m.overlap)).find(|spots| !spots.is_empty());
            if let Some(spots) = first.filter(|_| what == "epsilon2" && !series.is_empty()) {
                let (number, name) = (methods.len(), "log I, estimated".to_string());
                series.push(Series { number, name, spots, joined: true, marked: true });
            }
            if !series.is_empty() && charts.len() < MOST_PANELS {
                charts.push(Chart {
                    title: title.clone(),
                    x_name: SHARDS,
                    y_name,
                    x: shards(document),
                    by_ratio: false,
                    upwards: Upwards::Linear,
                    series,
                    levels: vec![0.0],
                    beside: false,
                });
            }
        }
    }
    stack(&mut canvas, &charts, true);
    Figure {
        title: "The error of the overlap".into(),
        words: "Points of ε₁ and ε₂ over the number of shards, with fitted lines, and the overlap log I.".into(),
        caption: format!(
            "ε₁ is |log I − log Î|, ε₂ is log |I − Î|, both averaged over the partitions; lines are fitted from two shards on. ε₂ grows as log I itself does, whatever the error.{}",
            left_out(view, document)
        ),
        canvas,
    }
}

pub(crate) fn overlap_share(view: &View, document: &Sweep) -> Figure {
    let mut canvas = Canvas::new(view.width);
    let chart = |(by, model, title): (&str, usize, String)| Chart {
        title,
        x_name: SHARDS,
        y_name: "log I as a share of the log evidence, in percent",
        x: shards(document),
        by_ratio: true,
        upwards: Upwards::Linear,
        series: by_method(document, by, true, |g| {
            Some((g.shards as f64, 100.0 * g.models.get(model)?.overlap_share?, None))
        }),
        levels: vec![0.0],
        beside: false,
    };
    let charts: Vec<Chart> = panels(view, document, None).into_iter().map(chart).collect();
    stack(&mut canvas, &charts, true);
    Figure {
        title: "How much of the evidence is in the overlap".into(),
        words: "Lines of the share of the log evidence that the overlap of shards makes up, over the number of shards.".into(),
        caption: "The more shards, the less each finds on its own, and the more hangs on how well their overlap is computed.".to_string()
            + &left_out(view, document),
        canvas,
    }
}

pub(crate) fn time(view: &View, document: &Sweep) -> Figure {
    let mut canvas = Canvas::new(view.width);
    let empty = Vec::new();
    let times = document.times.as_ref().unwrap_or(&empty);
    let chart = |by: &String| {
        let of = |pick: fn(&crate::document::sweep::Time) -> f64| -> Vec<Spot> {
            let mine = times.iter().filter(|t| t.by == *by && pick(t) > 0.0);
            mine.map(|t| (t.shards as f64, pick(t), None)).collect()
        };
        let slowest = Series {
            number: 0,
            name: "the slowest shard".into(),
            spots: of(|t| t.slowest_shard),
            joined: false,
            marked: true,
        };
        let all = Series {
            number: 1,
            name: "all shards together".into(),
            spots: of(|t| t.all_shards),
            joined: false,
            marked: true,
        };
        Chart {
            title: format!("split by {by}"),
            x_name: SHARDS,
            y_name: "CPU time (s)",
            x: shards(document),
            by_ratio: true,
            upwards: Upwards::Log,
            series: [slowest, all].into_iter().filter(|s| !s.spots.is_empty()).collect(),
            levels: Vec::new(),
            beside: true,
        }
    };
    let charts: Vec<Chart> = document.by.iter().take(MOST_PANELS).map(chart).collect();
    stack(&mut canvas, &charts, false);
    Figure {
        title: "Time on the shards".into(),
        words: "Points of CPU seconds over the number of shards: the slowest shard, and all together, on a log scale.".into(),
        caption: "A point is a partition. The slowest shard is what one waits for where every shard has a core of its own; all together is what one core takes.".into(),
        canvas,
    }
}
