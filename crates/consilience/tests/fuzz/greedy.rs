//! Small questions that ask for more than any machine has: refused before anything of that size is there.

use crate::body_of;
use crate::through::{Honest, Posed, STUDIES, forged};
use consilience::data::{Expr, Request};
use consilience::math::{Matrix, Rule};
use consilience::model::{Body, Model, Prior};
use consilience::question::Question;
use consilience::run::QuestionFile;
use consilience::site::{Asked, Policy, answer};
use std::sync::Arc;

/// A model with so many columns more, each a copy of its last.
fn widened(model: &Model, more: usize) -> Arc<Model> {
    let mut model = model.clone();
    let Body::Regression(regression) = &mut model.body else { panic!("no regression") };
    let design = Arc::make_mut(&mut regression.design);
    let (column, parameter) = (design.columns[1].clone(), model.parameters[1].clone());
    let first = design.columns.len() as u32;
    design.columns.extend(std::iter::repeat_n(column, more));
    regression.active.extend(first..first + more as u32);
    let at = model.parameters.len().min(1);
    model.parameters.splice(at..at, std::iter::repeat_n(parameter, more));
    Arc::new(model)
}

type Change = fn(&mut Vec<Question>);

const GREEDY: [(&str, usize, &str, Change); 9] = [
    ("2^40 points without coordinates", 0, "weigh", |questions| {
        let Question::Weigh(weigh) = &mut questions[0] else { panic!("{questions:?}") };
        let mut model = Model::clone(&weigh.0[0].model);
        model.parameters.iter_mut().for_each(|p| p.prior = Prior::Fixed { value: 0.0 });
        weigh.0.truncate(1);
        weigh.0[0].model = Arc::new(model);
        (weigh.0[0].thetas, weigh.0[0].rule) = (Arc::new(Matrix::zeros(1 << 40, 0)), None);
    }),
    ("rules that make many points each", 0, "weigh", |questions| {
        let Question::Weigh(weigh) = &mut questions[0] else { panic!("{questions:?}") };
        let mut points = weigh.0[0].clone();
        let Some(Rule::Draws(mut drawing)) = points.rule.as_deref().cloned() else {
            panic!("points that no rule makes")
        };
        drawing.count = (1 << 24) / points.model.dim();
        points.rule = Some(Arc::new(Rule::Draws(drawing)));
        weigh.0 = vec![points; 200];
    }),
    ("the curvature of 60,000 columns", 0, "expand", |questions| {
        let Question::Expand(expand) = &mut questions[0] else { panic!("{questions:?}") };
        let model = widened(&expand.0[0].model, 60_000);
        expand.0.truncate(1);
        (expand.0[0].thetas, expand.0[0].rule) = (Arc::new(Matrix::zeros(1, model.dim())), None);
        expand.0[0].model = model;
    }),
    ("the statistics of 60,000 columns", 3, "statistics", |questions| {
        let Question::Statistics(asked) = &mut questions[0] else { panic!("{questions:?}") };
        let recipe = Arc::make_mut(&mut asked.recipe);
        let column = recipe.columns[0].clone();
        recipe.columns.extend(std::iter::repeat_n(column, 60_000));
    }),
    ("a fit of 60,000 columns", 1, "fit", |questions| {
        let Question::Fit(fit) = &mut questions[0] else { panic!("{questions:?}") };
        fit.model = widened(&fit.model, 60_000);
    }),
    ("10^8 draws", 1, "fit", |questions| {
        let Question::Fit(fit) = &mut questions[0] else { panic!("{questions:?}") };
        fit.order.draws = 100_000_000;
    }),
    ("10^7 draws of 1,000 chains", 2, "augment", |questions| {
        let Question::Augment(augment) = &mut questions[0] else { panic!("{questions:?}") };
        (augment.order.draws, augment.order.chains) = (10_000_000, 1000);
    }),
    ("10^7 conditionals", 2, "augment", |questions| {
        let Question::Augment(augment) = &mut questions[0] else { panic!("{questions:?}") };
        (augment.order.draws, augment.order.chains) = (10_000_000, 1);
        augment.conditionals = 10_000_000;
    }),
    ("10,000 polynomials of degree 1,000", 0, "describe", |questions| {
        let Question::Describe(describe) = &mut questions[0] else { panic!("{questions:?}") };
        let expr = Expr::Column("x".into());
        let gram = |k: u32| {
            let (expr, degree, min, max) = (expr.clone(), 1000, -f64::from(k), 20.0);
            Request::Gram { expr, degree, min, max }
        };
        describe.requests = (0..10_000).map(gram).collect();
    }),
];

#[test]
fn a_site_has_room_for_what_it_answers() {
    let folder = tempfile::tempdir().unwrap();
    let honest: Vec<Honest> = (0..STUDIES.len())
        .map(|i| Honest::new(folder.path().join(i.to_string()), STUDIES[i]))
        .collect();
    for (what, study, kind, change) in GREEDY {
        let honest = &honest[study];
        let asks = |path: &std::path::Path| QuestionFile::read(path).unwrap().header.asks;
        let round = honest.rounds.iter().find(|(q, _)| asks(q).iter().any(|asked| asked == kind));
        let (question, _) = round.unwrap_or_else(|| panic!("{what}: no `{kind}` is asked"));
        let bytes = std::fs::read(question).unwrap();
        let body = &bytes[body_of(&bytes)..];
        let made = forged(&bytes, body, |(_, questions): &mut Posed| {
            let at = questions.iter().position(|q| q.kind() == kind).unwrap();
            questions.swap(0, at);
            change(questions);
        });
        let made = made.unwrap();
        assert!(made.len() < 4 << 20, "{what}: {} bytes are not few", made.len());
        let path = folder.path().join("forged.question");
        std::fs::write(&path, made).unwrap();
        let data = [honest.folder.join("leeds.csv").display().to_string()];
        let (question, policy) = (&path, &Policy::trusting());
        let asked =
            Asked { question, data: &data, site: "leeds", policy, log: &[], key: None, keys: None };
        let error = answer(&asked).unwrap_err();
        assert!(error.is_input(), "{what}: {error}");
        let text = error.to_string();
        let reasons = [
            "more than a site computes",
            "no sensible number of draws",
            "more points",
            "makes no points",
            "cannot be read",
        ];
        assert!(reasons.iter().any(|reason| text.contains(reason)), "{what}: {text}");
        println!("{what}: {text}");
        assert!(consilience::site::explain(&path).is_err(), "{what}");
    }
}
