//! Parameters of the leading models, and what other priors would say.

use crate::document::compare::Compare;
use crate::figures::View;
use crate::figures::chart::{Chart, Series, Upwards};
use crate::figures::forest::{self, Row};
use crate::svg::{Canvas, Figure, Mark, legend};
use crate::text::{counted, probability};

/// At most this many parameters are drawn.
const MOST: usize = 30;

pub(crate) fn parameters(view: &View, document: &Compare) -> Figure {
    let mut canvas = Canvas::new(view.width);
    let models: Vec<usize> = match view.model {
        Some(i) => vec![i],
        None => document.order().into_iter().take(3).collect(),
    };
    let averaged = !document.averages.parameters.is_empty()
        && document.models.len() > 1
        && view.model.is_none();
    let mut names: Vec<&str> = Vec::new();
    for i in &models {
        for p in &document.models[*i].parameters {
            if names.len() < 10 * MOST && !names.contains(&p.name.as_str()) {
                names.push(&p.name);
            }
        }
    }
    let all = names.len();
    names.truncate(MOST);
    let rows: Vec<Row> = names
        .iter()
        .map(|name| {
            let mut items = Vec::new();
            for (series, i) in models.iter().enumerate() {
                if let Some(p) = document.models[*i].parameters.iter().find(|p| p.name == *name) {
                    items.push((series, p.mean, (p.low, p.high)));
                }
            }
            let average = document.averages.parameters.iter().find(|p| p.name == *name && averaged);
            if let Some((mean, sd)) = average.and_then(|p| p.included_mean.zip(p.included_sd)) {
                items.push((6, mean, (mean - 1.96 * sd, mean + 1.96 * sd)));
            }
            Row { name: name.to_string(), items }
        })
        .collect();
    let mut items: Vec<(String, Mark)> = models
        .iter()
        .enumerate()
        .map(|(series, i)| {
            let model = &document.models[*i];
            (format!("{} ({})", model.name, probability(model.probability)), Mark::Point(series))
        })
        .collect();
    if averaged {
        items.push(("average of the models that have it".into(), Mark::Point(6)));
    }
    let top = legend(&mut canvas, 0.0, &items) + 4.0;
    let (end, shared) = forest::draw(&mut canvas, top, &rows, "value of the parameter");
    canvas.height = end;
    Figure {
        title: "Parameters".into(),
        words: format!(
            "Means and 95% intervals of {} of {}.",
            counted(rows.len(), "parameter"),
            counted(models.len(), "model")
        ),
        caption: format!(
            "Means with 95% intervals given all the data.{}{}{}",
            if shared {
                ""
            } else {
                " Units differ: every row has its own scale, and the numbers are the ends of its first interval. An upright line in a row is 0."
            },
            if document.models.len() > models.len() { " Of the likeliest models." } else { "" },
            if all > MOST {
                format!(" The first {MOST} parameters are drawn.")
            } else {
                String::new()
            }
        ),
        canvas,
    }
}

pub(crate) fn prior_scale(view: &View, document: &Compare) -> Figure {
    let mut canvas = Canvas::new(view.width);
    let empty = Vec::new();
    let scales = document.prior_sensitivity.as_ref().unwrap_or(&empty);
    let shown: Vec<usize> = document.order().into_iter().take(6).collect();
    let best = document.best();
    let items: Vec<(String, Mark)> = shown
        .iter()
        .enumerate()
        .map(|(n, i)| (document.models[*i].name.clone(), Mark::Line(n)))
        .collect();
    let end = legend(&mut canvas, 0.0, &items);
    let x: Vec<f64> = scales.iter().map(|s| s.scale).collect();
    let series =
        |value: &dyn Fn(&crate::document::compare::Scaled, usize) -> Option<f64>| -> Vec<Series> {
            let of = |(n, i): (usize, &usize)| Series {
                number: n,
                name: document.models[*i].name.clone(),
                spots: scales.iter().filter_map(|s| Some((s.scale, value(s, *i)?, None))).collect(),
                joined: true,
                marked: true,
            };
            shown.iter().enumerate().map(of).collect()
        };
    let x_name = "scale of the coefficients' priors, times that of the study";
    let probabilities = Chart {
        title: String::new(),
        x_name,
        y_name: "probability of the model",
        x: x.clone(),
        by_ratio: true,
        upwards: Upwards::Share,
        series: series(&|s, i| s.models.get(i).map(|m| m.probability)),
        levels: Vec::new(),
        beside: false,
    };
    let end = probabilities.draw(&mut canvas, end, 170.0);
    let against = Chart {
        y_name: "log evidence less that of the model best at 1 (nats)",
        upwards: Upwards::Linear,
        series: series(&|s, i| {
            Some(s.models.get(i)?.log_evidence.value - s.models.get(best)?.log_evidence.value)
        }),
        levels: vec![0.0],
        ..probabilities
    };
    canvas.height = against.draw(&mut canvas, end + 8.0, 170.0);
    let moved = scales.iter().filter(|s| s.best != document.models[best].name).count();
    let said = match moved {
        0 => "The same model comes first at every scale.".to_string(),
        n => format!("At {} of {} scales another model comes first.", n, scales.len()),
    };
    Figure {
        title: "Does it depend on the priors?".into(),
        words: format!(
            "Lines of model probabilities and log evidences over the scale of the priors. {said}"
        ),
        caption: format!(
            "The same comparison with narrower (left) and wider priors (right) on all coefficients; 1 is the study's own. Below, a line above 0 is ahead of the model that is best at 1. {said}{}",
            if document.models.len() > shown.len() {
                format!(" The likeliest {} models are drawn.", shown.len())
            } else {
                String::new()
            }
        ),
        canvas,
    }
}
