//! The kinds of figures, and which document has which.

mod chart;
pub(crate) mod compare;
mod forest;
mod rows;
mod select;
pub(crate) mod sorted;
mod sweep;

use crate::document::compare::Compare;
use crate::document::{Content, Document};
use crate::svg::{Canvas, Figure, Ink, SIZE};
use crate::{Error, Kind};

/// What a figure is made of, and how wide.
pub(crate) struct View<'a> {
    pub document: &'a Document,
    pub width: f64,
    /// The model that was asked for.
    pub model: Option<usize>,
}

impl View<'_> {
    /// The model that the best is held against: the one asked for, or the next likeliest.
    pub fn other(&self, document: &Compare) -> Option<usize> {
        self.model.filter(|m| *m != document.best()).or_else(|| document.second())
    }
}

/// A figure with nothing in it but a word.
fn empty(mut canvas: Canvas, title: &str) -> Figure {
    let text = "There is nothing to draw here.";
    canvas.text(0.0, 20.0, crate::svg::Anchor::Start, SIZE, Ink::Muted, text);
    canvas.height = 30.0;
    Figure { title: title.into(), words: text.into(), caption: String::new(), canvas }
}

/// All kinds that documents of this sort can have, each with what it shows and what the document lacks for it.
pub(crate) fn all(document: &Document) -> Vec<(Kind, Option<&'static str>)> {
    let kind = |name, shows| Kind { name, shows };
    match &document.content {
        Content::Compare(d) => {
            let needs_two = (d.models.len() < 2).then_some("it needs two models");
            let lacks = |there: bool, why| (!there).then_some(why);
            let parts =
                d.models.iter().all(|m| m.parts.shards.is_some() && m.parts.overlap.is_some());
            let agreements = d.models.iter().flat_map(|m| &m.shards).any(|s| s.agreement.is_some());
            let own = "no shard has an evidence of its own (run with `--local importance`)";
            let shards = d
                .second()
                .is_some_and(|other| !compare::shards_differ(document, d, other).is_empty());
            vec![
                (kind("probabilities", "posterior probabilities of the models"), None),
                (kind("evidence", "log evidences, and a zoom on differences to the best"), None),
                (
                    kind("decomposition", "where the evidence comes from: shards, prior, overlap"),
                    lacks(parts, own),
                ),
                (
                    kind("shards", "what each shard finds on its own"),
                    needs_two.or(lacks(shards, own)),
                ),
                (
                    kind("agreement", "whether the shards agree, shard by model"),
                    lacks(
                        agreements,
                        "the document has no agreement of shards (it takes two or more)",
                    ),
                ),
                (kind("parameters", "parameters of the leading models and their average"), None),
                (
                    kind("prior-scale", "the same under narrower and wider priors"),
                    lacks(
                        d.prior_sensitivity.as_ref().is_some_and(|p| !p.is_empty()),
                        "the document has no `prior_sensitivity` (run with `--prior-scale 0.5,1,2`)",
                    ),
                ),
                (
                    kind("leave-one-out", "what single shards add"),
                    needs_two.or(lacks(
                        d.leave_one_out.as_ref().is_some_and(|l| !l.is_empty()),
                        "the document has no `leave_one_out` (run with `--leave-one-out`)",
                    )),
                ),
                (kind("weights", "draws, weights and chains, with verdicts"), None),
                (
                    kind("bayes-factors", "every model against every other"),
                    needs_two.or(lacks(
                        d.bayes_factors.as_ref().is_some_and(|b| !b.is_empty()),
                        "the document has no `bayes_factors`: there are too many models",
                    )),
                ),
            ]
        }
        Content::Select(d) => {
            let lacks = |there: bool, why| (!there).then_some(why);
            vec![
                (kind("inclusion", "how probable it is that each term belongs in"), None),
                (
                    kind("models", "the likeliest models by their terms"),
                    lacks(!d.models.is_empty(), "no model is listed"),
                ),
                (
                    kind("sizes", "how many terms belong in"),
                    lacks(!d.sizes.is_empty(), "the document has no `sizes`"),
                ),
                (
                    kind("coefficients", "coefficients where they are in, and over all models"),
                    lacks(!d.coefficients.is_empty(), "the document has no `coefficients`"),
                ),
            ]
        }
        Content::Sweep(d) => {
            let lacks = |there: bool, why| (!there).then_some(why);
            let any = |f: &dyn Fn(&crate::document::sweep::GroupModel) -> bool| {
                d.groups.iter().flat_map(|g| &g.models).any(f)
            };
            vec![
                (kind("error", "how far off the log evidence is, partition by partition"), None),
                (
                    kind("rmse", "the root mean square error over the number of shards"),
                    lacks(any(&|m| m.rmse.is_some()), "no group has an `rmse`"),
                ),
                (
                    kind("choices", "how often each method chooses a model"),
                    lacks(!d.groups.is_empty(), "the document has no `groups`"),
                ),
                (
                    kind("bayes-factor", "log Bayes factors over the number of shards"),
                    lacks(
                        any(&|m| m.log_bayes_factor.is_some()),
                        "no group has a `log_bayes_factor`",
                    ),
                ),
                (
                    kind("epsilon", "the errors of shards' evidences and of their overlap"),
                    lacks(
                        any(&|m| m.epsilon1.is_some() || m.epsilon2.is_some()),
                        "no group has `epsilon1` or `epsilon2`",
                    ),
                ),
                (
                    kind("overlap-share", "the overlap's share of the log evidence"),
                    lacks(any(&|m| m.overlap_share.is_some()), "no group has an `overlap_share`"),
                ),
                (
                    kind("time", "CPU seconds on the shards"),
                    lacks(
                        d.times.as_ref().is_some_and(|t| !t.is_empty()),
                        "the document has no `times`",
                    ),
                ),
            ]
        }
    }
}

/// Draws a kind that the document has.
pub(crate) fn draw(view: &View, name: &str) -> Result<Figure, Error> {
    let kinds = all(view.document);
    let there = || kinds.iter().filter(|k| k.1.is_none()).map(|k| k.0.name).collect();
    let lacks = |why| Error::Kind { asked: name.to_string(), there: there(), why };
    match kinds.iter().find(|k| k.0.name == name) {
        None => return Err(lacks(None)),
        Some((_, Some(why))) => return Err(lacks(Some(why))),
        Some((_, None)) => {}
    }
    Ok(match (&view.document.content, name) {
        (Content::Compare(d), "probabilities") => compare::probabilities(view, d),
        (Content::Compare(d), "evidence") => compare::evidence(view, d),
        (Content::Compare(d), "decomposition") => compare::decomposition(view, d),
        (Content::Compare(d), "shards") => compare::shards(view, d),
        (Content::Compare(d), "agreement") => compare::agreement(view, d),
        (Content::Compare(d), "parameters") => compare::parameters(view, d),
        (Content::Compare(d), "prior-scale") => compare::prior_scale(view, d),
        (Content::Compare(d), "leave-one-out") => compare::leave_one_out(view, d),
        (Content::Compare(d), "weights") => compare::weights(view, d),
        (Content::Compare(d), "bayes-factors") => compare::bayes_factors(view, d),
        (Content::Select(d), "inclusion") => select::inclusion(view, d),
        (Content::Select(d), "models") => select::models(view, d),
        (Content::Select(d), "sizes") => select::sizes(view, d),
        (Content::Select(d), "coefficients") => select::coefficients(view, d),
        (Content::Sweep(d), "error") => sweep::error(view, d),
        (Content::Sweep(d), "rmse") => sweep::rmse(view, d),
        (Content::Sweep(d), "choices") => sweep::choices(view, d),
        (Content::Sweep(d), "bayes-factor") => sweep::bayes_factor(view, d),
        (Content::Sweep(d), "epsilon") => sweep::epsilon(view, d),
        (Content::Sweep(d), "overlap-share") => sweep::overlap_share(view, d),
        (Content::Sweep(d), "time") => sweep::time(view, d),
        _ => return Err(lacks(None)),
    })
}
