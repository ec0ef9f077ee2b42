//! The question about spaces of models, damaged, and answers to it: no study of the corpus asks it.

use crate::damage;
use consilience::Result;
use consilience::combine::{JumpMethod, JumpOptions, reversible_jump};
use consilience::engine::{Answered, Engine, Session, Silent};
use consilience::fit::ExploreOrder;
use consilience::math::stream;
use consilience::plan::Plan;
use consilience::question::{Answer, Answers, Explore, Question};
use consilience::space::{Candidate, Heredity, ModelPrior, Space, Subset};
use consilience::study::StudyFile;
use std::sync::Arc;

const ORDER: ExploreOrder = ExploreOrder { draws: 30, warmup: 5, chains: 2, keep: 20, seed: 1 };

fn space() -> Space {
    let term = |label: &str, columns: &[usize], parents: &[usize]| Candidate {
        label: label.into(),
        columns: columns.to_vec(),
        parents: parents.to_vec(),
    };
    let terms = vec![term("x", &[1], &[]), term("g", &[2, 3], &[]), term("x:g", &[4, 5], &[0, 1])];
    Space::new(terms, Heredity::Strong, 6, &ModelPrior::default()).unwrap()
}

fn plan(folder: &std::path::Path) -> Plan {
    let row =
        |i: i32| format!("{},{},{}\n", i * 7 % 5 % 2, i * 3 % 11, ["a", "b", "c"][i as usize % 3]);
    let data = "y,x,g\n".to_string() + &(0..40).map(row).collect::<String>();
    std::fs::write(folder.join("d.csv"), data).unwrap();
    let text = "[data]\npath = \"d.csv\"\n[split]\nshards = 2\n[[model]]\nformula = \"y ~ x * g\"\nfamily = \"logistic\"\n";
    Plan::new(StudyFile::parse(text, &folder.join("s.toml")).unwrap(), 1, &Silent).unwrap()
}

fn question(plan: &Plan) -> Question {
    let pairs = vec![(Subset::EMPTY, [0].into_iter().collect())];
    let (model, share) = (plan.settings[0].model.clone(), plan.settings[0].share);
    Explore { model, share, space: Arc::new(space()), order: ORDER, pairs }.into()
}

fn executions() -> u64 {
    std::env::var("FUZZ_EXECUTIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000) / 5
}

#[test]
fn a_shard_survives_any_space() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    let whole = postcard::to_stdvec(&question(&plan)).unwrap();
    let (mut answered, mut refused) = (0, 0);
    for k in 0..executions() {
        let mut rng = stream(1, k, 0, "spaces");
        let mut bytes = whole.clone();
        damage(&mut bytes, &whole, &mut rng);
        let Ok((question, [])) = postcard::take_from_bytes::<Question>(&bytes) else { continue };
        let _ = question.explain();
        // A question may ask for more than there is time for, which is what the policy is for.
        if question.check().is_err() || question.draws() > 500 {
            refused += 1;
            continue;
        }
        if let Ok(answer) = question.answer(plan.engine().shard(0)) {
            answered += 1;
            answer.check(&question).unwrap();
            let size = postcard::to_stdvec(&answer).unwrap().len() as u64;
            assert!(size <= question.largest_answer());
        }
    }
    println!("{answered} answered, {refused} refused");
    assert!(answered > executions() / 100 && refused > 0, "{answered} {refused}");
}

/// Shards that say this.
struct Liars(Vec<Answer>);

impl Engine for Liars {
    fn shards(&self) -> usize {
        self.0.len()
    }

    fn ask(&self, _: &[Question], _: &Answered) -> Result<Vec<Answers>> {
        Ok(vec![Answers::Each(self.0.clone())])
    }
}

#[test]
fn the_centre_survives_any_exploration() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    let question = question(&plan);
    let honest: Vec<Answer> =
        (0..2).map(|s| question.answer(plan.engine().shard(s)).unwrap()).collect();
    let whole = postcard::to_stdvec(&honest[0]).unwrap();
    let Question::Explore(asked) = &question else { unreachable!() };
    let options = JumpOptions {
        method: JumpMethod::Algorithm3,
        order: ORDER,
        most: 20,
        pairs: asked.pairs.clone(),
    };
    let (mut combined, mut refused) = (0, 0);
    for k in 0..executions() {
        let mut rng = stream(2, k, 0, "explorations");
        let mut bytes = whole.clone();
        damage(&mut bytes, &whole, &mut rng);
        let Ok((answer, [])) = postcard::take_from_bytes::<Answer>(&bytes) else { continue };
        let _ = answer.explain();
        let engine = Liars(vec![answer, honest[1].clone()]);
        let session = Session::new(&engine, &Silent);
        match reversible_jump(&session, &plan.settings[0], &space(), &options) {
            Err(_) => refused += 1,
            Ok(result) => {
                combined += 1;
                let fine = |m: &consilience::combine::JumpModel| {
                    m.log_posterior.value.is_finite()
                        && m.log_posterior.se.is_some_and(f64::is_finite)
                };
                assert!(result.models.iter().all(fine), "{result:?}");
                let sound = |e: consilience::estimate::Estimate| {
                    e.value.is_finite() && e.se.is_some_and(f64::is_finite)
                };
                assert!(result.pairs.iter().all(|p| sound(p.accepted) && sound(p.bridged)));
            }
        }
    }
    println!("{combined} combined, {refused} refused");
    assert!(combined > executions() / 100 && refused > 0, "{combined} {refused}");
}
