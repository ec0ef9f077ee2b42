//! What is done where evidences are not combined but voted on, and the combinations, side by side.

use super::{Baseline, Fits, Setting, combine, upsampled, votes};
use crate::Result;
use crate::engine::{Engine, Observer, Remembering, Session, Traffic};
use crate::fit::Summary;
use crate::question::Question;
use crate::study::{Combine, Local};

/// Votes, upsampled evidences, and the combinations beside them.
pub(crate) fn baselines(
    engine: &dyn Engine,
    observer: &dyn Observer,
    so_far: Traffic,
    settings: &[Setting],
) -> Result<(Vec<Baseline>, Traffic)> {
    let engine = Remembering::new(engine);
    let session = Session::resume(&engine, observer, so_far);
    let settings: Vec<Setting> = settings.iter().map(with_fits).collect();
    let mut questions: Vec<Question> = settings.iter().map(Setting::fit).collect();
    questions.extend(settings.iter().map(upsampled));
    let fits = session.ask(&questions)?.into_iter().map(|a| Fits::of(a).map(|f| f.summaries));
    let mut fits: Vec<Vec<Summary>> = fits.collect::<Result<_>>()?;
    let upsampled = fits.split_off(settings.len());

    let mut all = votes(&settings, &fits, Some(&upsampled))?;
    let mut kinds = vec![Combine::Normal, Combine::NormalUncorrected, Combine::CmcIs];
    if settings.iter().all(|s| s.model.is_binary() && s.model.has_normal_priors()) {
        kinds.push(Combine::Augmented);
    }
    kinds.push(Combine::Exact);
    for kind in kinds {
        let run: Vec<Setting> = settings.iter().map(|s| with_combine(s, kind)).collect();
        all.push(Baseline::of_evidences(kind, &combine(&session, &run)?));
    }
    Ok((all, session.traffic()))
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
