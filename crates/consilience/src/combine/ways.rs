//! Several combinations of one study side by side, over the same fits, with the votes beside them.

use super::{Baseline, Evidence, Fits, Setting, advised, combine, upsampled, votes};
use crate::engine::{Engine, Observer, Session, Traffic};
use crate::fit::Summary;
use crate::question::Question;
use crate::study::{Combine, Local};
use crate::{Error, Result};

/// Several combinations, and the votes.
#[derive(Debug)]
pub struct Ways {
    /// Per combination, in the order in which they were asked for: every model's evidence, or why there is none.
    pub combinations: Vec<(Combine, Result<Vec<Evidence>>)>,
    /// Votes and upsampled evidences, or why there are none; empty where nobody asked for them.
    pub votes: Result<Vec<Baseline>>,
    /// What passed between the centre and the shards.
    pub traffic: Traffic,
}

/// Combines by each of these methods. Shards fit every model once, whoever needs it. A method that does not get
/// through is no reason to lose the others.
pub(crate) fn ways(
    engine: &dyn Engine,
    observer: &dyn Observer,
    so_far: Traffic,
    settings: &[Setting],
    methods: &[Combine],
    with_votes: bool,
) -> Result<Ways> {
    settings.iter().try_for_each(super::ties::refuse_fits)?;
    let session = Session::resume(engine, observer, so_far).remembering();
    let settings: Vec<Setting> = settings.iter().map(with_fits).collect();
    let votes = match with_votes {
        true => of_its_own(all_votes(&session, &settings))?,
        false => Ok(Vec::new()),
    };
    let mut combinations = Vec::new();
    for &method in methods {
        let settings: Vec<Setting> = settings.iter().map(|s| with_combine(s, method)).collect();
        combinations.push((method, of_its_own(combine(&session, &settings))?));
    }
    Ok(Ways { combinations, votes, traffic: session.traffic() })
}

/// Votes, upsampled evidences, and beside them all combinations that suit the models.
pub(crate) fn baselines(
    engine: &dyn Engine,
    observer: &dyn Observer,
    so_far: Traffic,
    settings: &[Setting],
) -> Result<(Vec<Baseline>, Traffic)> {
    let mut methods = vec![Combine::Normal, Combine::NormalUncorrected, Combine::CmcIs];
    if settings.iter().all(|s| s.model.is_binary() && s.model.has_normal_priors()) {
        methods.push(Combine::Augmented);
    }
    methods.push(Combine::Exact);
    let Ways { combinations, votes, traffic } =
        ways(engine, observer, so_far, settings, &methods, true)?;
    let mut all = votes?;
    for (method, evidences) in combinations {
        all.push(Baseline::of_evidences(method, &evidences?));
    }
    Ok((all, traffic))
}

/// Tells an error that is a finding about a method from one that ends everything.
fn of_its_own<T>(result: Result<T>) -> Result<Result<T>> {
    match result {
        Err(error @ (Error::Numeric { .. } | Error::Input { .. })) => Ok(Err(error)),
        Err(error) => Err(error),
        Ok(found) => Ok(Ok(found)),
    }
}

fn all_votes(session: &Session, settings: &[Setting]) -> Result<Vec<Baseline>> {
    let mut questions: Vec<Question> = settings.iter().map(Setting::fit).collect();
    questions.extend(settings.iter().map(upsampled));
    let answers = session.ask(&questions).map_err(|error| advised(error, settings.iter()))?;
    let fits = answers.into_iter().map(|a| Fits::of(a).map(|f| f.summaries));
    let mut fits: Vec<Vec<Summary>> = fits.collect::<Result<_>>()?;
    let upsampled = fits.split_off(settings.len());
    votes(settings, &fits, Some(&upsampled))
}

/// The same setting with shards that compute their own evidences.
fn with_fits(setting: &Setting) -> Setting {
    let mut setting = setting.clone();
    if setting.options.local == Local::None {
        setting.options.local = Local::Auto;
    }
    setting
}

fn with_combine(setting: &Setting, combine: Combine) -> Setting {
    let mut setting = setting.clone();
    setting.options.combine = combine;
    // What a combination can do without is left out, and Gibbs samplers are told by their own name.
    if matches!(combine, Combine::Exact | Combine::Augmented) {
        setting.options.local = Local::Auto;
    }
    setting
}
