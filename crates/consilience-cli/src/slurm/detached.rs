//! A run that goes on by itself: whether it still does.

use super::cluster::{Slurm, last_jobs, settings_path};
use consilience::run::{Run, Status};
use serde::Serialize;

/// The jobs that a detached run goes on by.
#[derive(Debug, Serialize)]
pub struct Detached {
    /// The job that answers the round.
    pub round: Option<String>,
    /// The job that goes on when that has ended.
    pub step: Option<String>,
    /// Whether one of them is still there; none if Slurm cannot be asked.
    pub goes_on: Option<bool>,
    /// Why it cannot.
    pub unknown: Option<String>,
}

/// What is known of the jobs of a run, if it was left to go on by itself and has not ended.
pub fn detached(run: &Run, status: &Status) -> Option<Detached> {
    if status.finished || status.failure.is_some() || !settings_path(run).is_file() {
        return None;
    }
    let (round, step) = last_jobs(run);
    let (mut goes_on, mut unknown) = (Some(false), None);
    for job in round.iter().chain(&step) {
        match Slurm::is_there(job) {
            Ok(true) => {
                (goes_on, unknown) = (Some(true), None);
                break;
            }
            Ok(false) => {}
            Err(error) => (goes_on, unknown) = (None, Some(error.to_string())),
        }
    }
    // Without the step nobody takes the answers in.
    if goes_on == Some(true)
        && let Some(step) = &step
        && matches!(Slurm::is_there(step), Ok(false))
    {
        goes_on = Some(false);
    }
    Some(Detached { round, step, goes_on, unknown })
}

impl Detached {
    /// In words.
    pub fn told(&self) -> String {
        let job = |name: &str, job: &Option<String>| {
            job.as_ref().map_or(String::new(), |job| format!(" ({name} {job})"))
        };
        let (round, step) = (job("job", &self.round), job("job", &self.step));
        match (self.goes_on, &self.unknown) {
            (Some(true), _) => {
                format!(
                    "The run goes on by itself: its next step{step} waits for the round{round}."
                )
            }
            (Some(false), _) => format!(
                "The run does not go on by itself any more: its next step{step} is not in Slurm's queue, where it was cancelled or failed (see logs/step-*.log). The same compare or select command with --detach has it go on; what was answered is kept."
            ),
            (None, why) => format!(
                "The run was left to go on by itself, but Slurm cannot be asked whether its next step{step} is still there: {}",
                why.as_deref().unwrap_or("it does not answer")
            ),
        }
    }
}
