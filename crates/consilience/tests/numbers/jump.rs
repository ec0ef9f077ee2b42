//! Reversible jump: against evidences that are known, and laws that hold whatever the numbers are.

use crate::common::{Case, spread};
use consilience::combine::{
    JumpMethod, JumpOptions, JumpResult, combine, reversible_jump, subsetting,
};
use consilience::engine::{Session, Silent};
use consilience::fit::{Exploration, ExploreOrder};
use consilience::plan::Plan;
use consilience::question::{Answer, Explore, Question};
use consilience::space::{Candidate, Heredity, ModelPrior, Space, Subset};
use consilience::study::StudyFile;
use std::path::Path;
use std::sync::Arc;

/// log p(y|m) of the models of data/sim2.parquet with intercept and without x1, by which of x2 … x5 they have.
const TRUTH: [(&str, f64); 5] = [
    ("1101", -2411.81326),
    ("1111", -2413.038005),
    ("1011", -2414.949386),
    ("1001", -2415.760183),
    ("0001", -2426.97823),
];

fn model(key: &str) -> Subset {
    key.char_indices().filter(|(_, c)| *c == '1').map(|(t, _)| t).collect()
}

fn exact(a: &str, b: &str) -> f64 {
    let of = |key: &str| TRUTH.iter().find(|(k, _)| *k == key).unwrap().1;
    of(a) - of(b)
}

/// The paper's models 1, 2 and 3.
const PAPER: [(&str, &str); 3] = [("1101", "1011"), ("1101", "1001"), ("1011", "1001")];

fn plan(case: &Case, threads: usize) -> Plan {
    let study = StudyFile::parse(&case.text(), Path::new("study.toml")).unwrap();
    Plan::new(study, threads, &Silent).unwrap()
}

fn sim2(shards: usize, evidence: &str) -> Plan {
    let mut case = Case::new("sim2.parquet", shards);
    case.evidence = evidence.into();
    case.model("y ~ x2 + x3 + x4 + x5", "logistic");
    plan(&case, 2)
}

/// One term per column after the intercept.
fn space(columns: usize) -> Space {
    space_within(columns, columns + 1)
}

/// The same where the family has a parameter of its own.
fn space_within(columns: usize, dim: usize) -> Space {
    let term = |j: usize| Candidate { label: format!("t{j}"), columns: vec![j], parents: vec![] };
    let terms = (1..=columns).map(term).collect();
    Space::new(terms, Heredity::Strong, dim, &ModelPrior::default()).unwrap()
}

fn order(draws: usize, seed: u64) -> ExploreOrder {
    ExploreOrder { draws, warmup: 500, chains: 4, keep: 200, seed }
}

fn options(method: JumpMethod, draws: usize, seed: u64) -> JumpOptions {
    JumpOptions { method, order: order(draws, seed), ..JumpOptions::default() }
}

fn jump(plan: &Plan, space: &Space, options: &JumpOptions) -> JumpResult {
    let session = Session::new(plan.engine(), &Silent);
    reversible_jump(&session, &plan.settings[0], space, options).unwrap()
}

fn explored(plan: &Plan, space: &Space, order: ExploreOrder, shard: usize) -> Exploration {
    let setting = &plan.settings[0];
    let (model, share) = (setting.model.clone(), setting.share);
    let question = Explore { model, share, space: Arc::new(space.clone()), order, pairs: vec![] };
    let question = Question::from(question);
    question.check().unwrap();
    let answer = question.answer(plan.engine().shard(shard)).unwrap();
    answer.check(&question).unwrap();
    let Answer::Explore(found) = answer else { panic!("{answer:?}") };
    *found
}

/// The paper's Bayes factors on one shard, from shares of visits.
#[test]
fn visits_give_the_bayes_factors_of_the_paper() {
    let (plan, space) = (sim2(1, ""), space(4));
    let result = jump(&plan, &space, &options(JumpMethod::Algorithm3, 20_000, 1));
    assert!(result.warnings.is_empty(), "{:?}", result.warnings);
    for (a, b) in PAPER {
        let found = result.log_bayes_factor(&space, &model(a), &model(b)).unwrap();
        let (error, se) = (found.value - exact(a, b), found.se.unwrap());
        println!("{a}/{b}: {error:+.4} ± {se:.4}");
        assert!(se <= 0.15 && error.abs() < 4.0 * se, "{a}/{b}: {error} ± {se}");
    }
    println!("{:?}", result.shards);
}

/// The same from the acceptance probabilities of jumps between two models.
#[test]
fn acceptance_probabilities_give_them_to_a_hundredth() {
    let (plan, space) = (sim2(1, ""), space(4));
    let pairs: Vec<(Subset, Subset)> = PAPER.iter().map(|(a, b)| (model(a), model(b))).collect();
    let far = (model("1101"), model("0001"));
    let pairs = [pairs, vec![far]].concat();
    let options = JumpOptions { pairs, ..options(JumpMethod::Algorithm3, 10_000, 1) };
    let result = jump(&plan, &space, &options);
    for ((a, b), pair) in PAPER.iter().chain(&[("1101", "0001")]).zip(&result.pairs) {
        for found in [pair.accepted, pair.bridged] {
            let (error, se) = (found.value - exact(a, b), found.se.unwrap());
            println!("{a}/{b}: {error:+.5} ± {se:.5}");
            assert!(error.abs() < 0.01 && error.abs() < 4.0 * se + 1e-5, "{a}/{b}: {error} ± {se}");
        }
    }
}

/// On several shards: the union of what they visit, with evidences in the place of shares.
#[test]
fn the_union_is_filled_in() {
    let space = space(4);
    for (combine, tolerance) in [("normal", 0.3), ("exact", 0.02)] {
        for shards in [3, 5, 10] {
            let plan = sim2(shards, &format!("combine = {combine:?}"));
            let result = jump(&plan, &space, &options(JumpMethod::Fill, 1000, 1));
            assert!(result.missing < 0.01, "{}", result.missing);
            for (a, b) in PAPER {
                let found = result.log_bayes_factor(&space, &model(a), &model(b)).unwrap();
                let error = found.value - exact(a, b);
                println!("{combine} S = {shards}, {a}/{b}: {error:+.4} ± {:?}", found.se);
                assert!(error.abs() < tolerance, "{combine} {shards} {a}/{b}: {error}");
            }
            for (key, log_z) in TRUTH {
                let Some(m) = result.models.iter().find(|m| m.model == model(key)) else {
                    continue;
                };
                let error = m.log_posterior.value - space.log_prior(m.model.len()) - log_z;
                assert!(combine != "exact" || error.abs() < 0.05, "{key}: {error}");
            }
        }
    }
}

/// Algorithm 3 itself, as far as it goes: within its own error where shards are few.
#[test]
fn shares_of_several_shards_are_combined_as_the_paper_does() {
    let space = space(4);
    for shards in [3, 5] {
        let plan = sim2(shards, "");
        let result = jump(&plan, &space, &options(JumpMethod::Algorithm3, 10_000, 1));
        for (a, b) in PAPER {
            let found = result.log_bayes_factor(&space, &model(a), &model(b)).unwrap();
            let (error, se) = (found.value - exact(a, b), found.se.unwrap());
            println!("S = {shards}, {a}/{b}: {error:+.4} ± {se:.4}");
            // The normal shape is worth a tenth or two of a nat.
            assert!(error.abs() < 4.0 * se + 0.3, "{shards} {a}/{b}: {error} ± {se}");
        }
    }
}

/// Jumps between two models on several shards: only the overlaps are taken as normal.
#[test]
fn pairs_of_several_shards_are_combined() {
    let space = space(4);
    for shards in [3, 5, 10] {
        let plan = sim2(shards, "");
        let pairs = PAPER.iter().map(|(a, b)| (model(a), model(b))).collect();
        let options = JumpOptions { pairs, ..options(JumpMethod::Algorithm3, 2000, 1) };
        for ((a, b), pair) in PAPER.iter().zip(&jump(&plan, &space, &options).pairs) {
            let (error, se) = (pair.bridged.value - exact(a, b), pair.bridged.se.unwrap());
            println!("S = {shards}, {a}/{b}: {error:+.4} ± {se:.4}");
            assert!(error.abs() < 4.0 * se + 0.3, "{shards} {a}/{b}: {error} ± {se}");
        }
    }
}

/// Outcomes, four numbers and a factor of three levels: 300 rows.
fn small(folder: &Path) -> String {
    let mut state = 7u64;
    let mut uniform = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut text = "y,a,b,c,d,g\n".to_string();
    for i in 0..300 {
        let x: Vec<f64> = (0..4).map(|_| uniform() + uniform() + uniform() - 1.5).collect();
        let level = i % 3;
        let eta = 0.6 * x[0] - 0.4 * x[1] + 0.25 * x[2] + 0.2 * f64::from(level);
        let y = u8::from(uniform() < 1.0 / (1.0 + (-eta).exp()));
        let g = ["u", "v", "w"][level as usize];
        text += &format!("{y},{},{},{},{},{g}\n", x[0], x[1] + 0.5 * x[0], x[2], x[3]);
    }
    let path = folder.join("small.csv");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_string()
}

fn small_plan(folder: &Path, formula: &str, prior: &str, shards: usize, threads: usize) -> Plan {
    let mut case = Case::new(&small(folder), shards);
    case.prior = prior.into();
    case.model(formula, "logistic");
    plan(&case, threads)
}

/// Posterior probabilities of all models by their evidences.
fn enumerated(plan: &Plan, space: &Space) -> Vec<(Subset, f64)> {
    let bits = 0..1usize << space.terms.len();
    let all = bits.map(|b| (0..space.terms.len()).filter(|t| b >> t & 1 == 1).collect());
    let models: Vec<Subset> = all.filter(|m| space.has(m)).collect();
    let settings: Vec<_> =
        models.iter().map(|m| subsetting(&plan.settings[0], space, m).unwrap()).collect();
    let session = Session::new(plan.engine(), &Silent);
    let mut settings = settings;
    // Its own error must not be seen.
    settings.iter_mut().for_each(|s| {
        s.options.draws = 40_000;
        s.options.se_target = 5e-4;
    });
    let evidences = combine(&session, &settings).unwrap();
    let logs = models.iter().zip(&evidences).map(|(m, e)| e.log_z.value + space.log_prior(m.len()));
    let logs: Vec<f64> = logs.collect();
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = logs.iter().map(|l| (l - top).exp()).sum();
    models.into_iter().zip(logs).map(|(m, l)| (m, (l - top).exp() / total)).collect()
}

/// Shares of visits are off by as much as their errors say, over seeds: with normal priors and with Laplace's and t,
/// and where the family has a parameter of its own.
#[test]
fn errors_of_shares_mean_what_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let mixed = "[prior.parameters]\na = \"laplace(0, 0.5)\"\nb = \"student_t(4, 0, 0.7)\"\nc = \"normal(0.3, 0.5)\"";
    for (formula, family, prior, columns, dim) in [
        ("y ~ a + b + c + d", "logistic", "", 4, 5),
        ("y ~ a + b + c + d", "logistic", mixed, 4, 5),
        ("c ~ a + b + d + y", "gaussian", "", 4, 6),
    ] {
        let mut case = Case::new(&small(folder.path()), 1);
        case.prior = prior.into();
        case.model(formula, family);
        let plan = plan(&case, 2);
        let space = space_within(columns, dim);
        let truth = enumerated(&plan, &space);
        assert_eq!(truth.len(), 16);
        let mut scores = Vec::new();
        for seed in 1..=20 {
            let found = explored(&plan, &space, order(2000, seed), 0);
            assert!(found.r_hat.iter().flatten().all(|r| *r < 1.02), "{:?}", found.r_hat);
            let batches = order(2000, seed).batches() as f64;
            for (model, p) in truth.iter().filter(|(_, p)| *p > 0.02) {
                let visited = found.models.iter().find(|v| v.model == *model).unwrap();
                let shares = visited.visits.iter().map(|&v| f64::from(v) * batches / 8000.0);
                let (mean, sd) = spread(&shares.collect::<Vec<f64>>());
                scores.push((mean - p) / (sd / batches.sqrt()));
            }
        }
        let (mean, sd) = spread(&scores);
        println!("{formula} {prior:?}: {} scores, mean {mean:.3}, sd {sd:.3}", scores.len());
        assert!((0.8..1.25).contains(&sd) && mean.abs() < 0.25, "{formula}: {mean} {sd}");
    }
}

/// Bayes factors of pairs, too.
#[test]
fn errors_of_pairs_mean_what_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let plan = small_plan(
        folder.path(),
        "y ~ a + b + c + d",
        "[prior.parameters]\na = \"laplace(0, 0.5)\"",
        1,
        2,
    );
    let space = space(4);
    let truth = enumerated(&plan, &space);
    let of = |model: &Subset| {
        let p = truth.iter().find(|(m, _)| m == model).unwrap().1;
        p.ln() - space.log_prior(model.len())
    };
    let pairs = vec![(model("1000"), model("0110")), (model("1100"), model("0001"))];
    let mut scores = Vec::new();
    for seed in 1..=20 {
        let options =
            JumpOptions { pairs: pairs.clone(), ..options(JumpMethod::Algorithm3, 300, seed) };
        for pair in jump(&plan, &space, &options).pairs {
            let exact = of(&pair.first) - of(&pair.second);
            scores.extend([pair.accepted, pair.bridged].map(|e| (e.value - exact) / e.se.unwrap()));
        }
    }
    let (mean, sd) = spread(&scores);
    println!("{} scores, mean {mean:.3}, sd {sd:.3}", scores.len());
    assert!((0.75..1.25).contains(&sd) && mean.abs() < 0.4, "{mean} {sd}");
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let of = |threads: usize| {
        let plan = small_plan(folder.path(), "y ~ a + b + c + d", "", 3, threads);
        let pairs = vec![(model("1000"), model("0110"))];
        let options = JumpOptions { pairs, ..options(JumpMethod::Algorithm3, 500, 3) };
        let result = jump(&plan, &space(4), &options);
        serde_json::to_string(&result).unwrap()
    };
    let one = of(1);
    assert_eq!(of(2), one);
    assert_eq!(of(5), one);
}

/// Terms in another order: the same probabilities, within their errors; evidences to the last digits.
#[test]
fn the_order_of_terms_changes_nothing_but_the_draws() {
    let folder = tempfile::tempdir().unwrap();
    let of = |formula: &str, method| {
        let plan = small_plan(folder.path(), formula, "", 2, 2);
        jump(&plan, &space(4), &options(method, 4000, 1))
    };
    let turned = |m: &Subset| -> Subset { m.iter().map(|t| 3 - t).collect() };
    for method in [JumpMethod::Algorithm3, JumpMethod::Fill] {
        let (there, back) = (of("y ~ a + b + c + d", method), of("y ~ d + c + b + a", method));
        for model in there.models.iter().take(6) {
            let other = back.models.iter().find(|m| m.model == turned(&model.model)).unwrap();
            let apart = model.log_posterior - other.log_posterior;
            let bound = 4.0 * apart.se.unwrap() + 1e-3;
            assert!(apart.value.abs() < bound, "{}: {apart:?}", model.name);
        }
    }
}

/// An interaction never comes without its main effects, and a factor's columns come and go together.
#[test]
fn no_orphan_is_visited_and_factors_stay_whole() {
    let folder = tempfile::tempdir().unwrap();
    let plan = small_plan(folder.path(), "y ~ a + b + g + a:b", "", 1, 2);
    let names: Vec<String> = plan.settings[0].model.free().map(|p| p.name.clone()).collect();
    assert_eq!(names, ["(Intercept)", "a", "b", "gv", "gw", "a:b"]);
    let term = |label: &str, columns: &[usize], parents: &[usize]| Candidate {
        label: label.into(),
        columns: columns.to_vec(),
        parents: parents.to_vec(),
    };
    let terms = || {
        vec![
            term("a", &[1], &[]),
            term("b", &[2], &[]),
            term("g", &[3, 4], &[]),
            term("a:b", &[5], &[0, 1]),
        ]
    };
    for heredity in [Heredity::Strong, Heredity::Weak, Heredity::None] {
        let space = Space::new(terms(), heredity, 6, &ModelPrior::Uniform).unwrap();
        let found = explored(&plan, &space, order(2000, 1), 0);
        for visited in &found.models {
            assert!(space.allows(&visited.model));
            // Intercept, a column per number, two for the factor.
            let columns = 1 + visited.model.len() + usize::from(visited.model.contains(2));
            assert_eq!(visited.moments.mean.len(), columns);
        }
        let truth = enumerated(&plan, &space);
        assert_eq!(found.distinct, truth.len() as u64, "{heredity:?}");
        let draws = found.draws as f64;
        for (model, p) in truth {
            let visited = found.models.iter().find(|v| v.model == model).unwrap();
            let error = visited.count() as f64 / draws - p;
            assert!(error.abs() < 5.0 * (p / draws).sqrt() + 2e-3, "{model:?}: {error} of {p}");
        }
    }
}

/// Questions that hold no space, and answers that are none.
#[test]
fn what_does_not_hold_together_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let plan = small_plan(folder.path(), "y ~ a + b + c + d", "", 1, 2);
    let setting = &plan.settings[0];
    let good = Explore {
        model: setting.model.clone(),
        share: setting.share,
        space: Arc::new(space(4)),
        order: order(100, 1),
        pairs: vec![(model("1000"), model("0110"))],
    };
    let refused = |change: &dyn Fn(&mut Explore), part: &str| {
        let mut question = good.clone();
        change(&mut question);
        let reason = Question::from(question).check().unwrap_err();
        assert!(reason.contains(part), "{reason}");
    };
    type Change = fn(&mut Space);
    let changes: [(Change, &str); 8] = [
        (|s| s.dim = 6, "not of its model's parameters"),
        (|s| s.terms[1].columns = vec![1], "two terms'"),
        (|s| s.terms[1].columns = vec![9], "no parameter's"),
        (|s| s.terms[1].columns = vec![], "without columns"),
        (|s| s.terms[1].parents = vec![1], "before its parents"),
        (|s| s.terms[1].parents = vec![400], "before its parents"),
        (|s| drop(s.terms.pop()), "a prior over models that is none"),
        (|s| s.terms[0].label = "\u{1b}[31m".into(), "a label that is none"),
    ];
    for (change, part) in changes {
        refused(&|q| change(Arc::make_mut(&mut q.space)), part);
    }
    refused(&|q| q.order.draws = 0, "no sensible number");
    refused(&|q| q.order.chains = 1_000_000, "no sensible number");
    refused(&|q| q.order.keep = usize::MAX, "no sensible number");
    refused(&|q| q.pairs = vec![(model("1000"), model("1000"))], "not there");
    refused(&|q| q.pairs = vec![(model("1000"), [400].into_iter().collect())], "not there");
    let question = Question::from(good);
    let answer = question.answer(plan.engine().shard(0)).unwrap();
    let size = postcard::to_stdvec(&answer).unwrap().len() as u64;
    assert!(size < question.largest_answer(), "{size} of {}", question.largest_answer());
    let wrong = |change: &dyn Fn(&mut Exploration), part: &str| {
        let Answer::Explore(mut found) = answer.clone() else { panic!("{answer:?}") };
        change(&mut found);
        let error = Answer::Explore(found).check(&question).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    wrong(&|a| a.draws += 1, "more draws or fewer");
    wrong(&|a| a.models[0].model = [300].into_iter().collect(), "not there");
    wrong(&|a| a.models[1].model = a.models[0].model, "twice");
    wrong(&|a| a.models[0].visits[0] = u32::MAX, "more than its draws");
    wrong(&|a| a.models[0].visits.truncate(1), "too many or too few");
    wrong(&|a| a.models[0].moments.mean[0] = f64::NAN, "a mean");
    wrong(&|a| a.models[0].moments.covariance[(0, 0)] = -1.0, "not positive definite");
    wrong(&|a| a.r_hat[0] = Some(f64::NAN), "diagnostics");
    wrong(&|a| a.inclusion[0] = 1.5, "shares of draws");
    wrong(&|a| a.moves.add.taken = u64::MAX, "more proposals");
    wrong(&|a| a.pairs.clear(), "more pairs or fewer");
    wrong(&|a| a.pairs[0].bridged.value = f64::INFINITY, "Bayes factor");
}

/// Sizes of models with a gap between them cannot be explored by single steps, and the shard says so.
#[test]
fn a_gap_in_the_prior_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let plan = small_plan(folder.path(), "y ~ a + b + c + d", "", 1, 1);
    let gap = Space::new(space(4).terms, Heredity::None, 5, &"sizes(1, 0, 1)".parse().unwrap());
    let session = Session::new(plan.engine(), &Silent);
    let options = options(JumpMethod::Fill, 100, 1);
    let error = reversible_jump(&session, &plan.settings[0], &gap.unwrap(), &options).unwrap_err();
    assert!(error.to_string().contains("no single step can cross"), "{error}");
    // One size alone goes by swaps.
    let two = Space::new(space(4).terms, Heredity::None, 5, &"sizes(0, 0, 1)".parse().unwrap());
    let found = jump(&plan, &two.unwrap(), &options);
    assert_eq!(found.models.len(), 6);
}
