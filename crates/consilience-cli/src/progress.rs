//! A progress bar on stderr, where that is a terminal.

use consilience::data::read::Event;
use consilience::engine::{Observer, Progress, Round};
use consilience::run::Work;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::ops::ControlFlow;
use std::time::Duration;

const ANSWERS: &str = "{msg:<22} {bar:30} {pos}/{len} answers  {elapsed} gone, about {eta} left";
const ROWS: &str = "{msg:<22} {bar:30} {pos}/{len} rows  {elapsed} gone, about {eta} left";
const PARTITIONS: &str =
    "{msg:<22} {bar:30} {pos}/{len} partitions  {elapsed} gone, about {eta} left";
const READING: &str = "{spinner} {msg}  {elapsed} gone";

/// How often the time is drawn while files are read.
const TICK: Duration = Duration::from_millis(200);

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is well formed")
}

/// The bar of the round that is under way.
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar that is drawn, unless stderr is no terminal or nobody wants it.
    pub fn new(wanted: bool) -> Bar {
        let target =
            if wanted { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        bar.set_style(style(ANSWERS));
        Bar(bar)
    }

    /// A bar that counts the rows of a file that is written.
    pub fn of_rows(wanted: bool, rows: u64) -> Bar {
        let bar = Bar::new(wanted);
        bar.0.set_style(style(ROWS));
        bar.0.set_message("writing");
        bar.0.set_length(rows);
        bar
    }

    /// So many are done.
    pub fn set(&self, done: u64) {
        self.0.set_position(done);
    }

    /// Begins to count answers that are written here.
    pub fn expect(&self, answers: usize) {
        self.0.reset();
        self.0.set_length(answers as u64);
        self.0.set_message("work");
    }

    /// So many of all partitions of a sweep are done.
    pub fn partitions(&self, done: usize, all: usize) {
        self.0.disable_steady_tick();
        self.0.set_style(style(PARTITIONS));
        self.0.set_message("sweep");
        self.0.set_length(all as u64);
        self.0.set_position(done as u64);
    }

    /// Says something above the bar, or on stderr where there is no bar.
    pub fn note(&self, text: &str) {
        self.0.suspend(|| crate::shell::tell(text));
    }

    /// Takes it off the screen.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// A run that fails leaves no half-drawn bar above its error.
impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Work for Bar {
    fn answered(&self, _: usize, _: Option<u64>) {
        self.0.inc(1);
    }
}

impl Observer for Bar {
    fn round(&self, round: &Round) -> ControlFlow<()> {
        self.0.disable_steady_tick();
        self.0.set_style(style(ANSWERS));
        self.0.reset();
        self.0.set_length(round.answers);
        let Progress { models, done, rounds_left } = round.progress;
        let left = match models {
            0 => String::new(),
            _ => format!(", {done} of {models} models done, about {rounds_left} rounds left"),
        };
        self.0.set_message(format!("round {}: {}{left}", round.number, round.kind));
        ControlFlow::Continue(())
    }

    fn answered(&self) -> ControlFlow<()> {
        self.0.inc(1);
        ControlFlow::Continue(())
    }

    fn found(&self, text: &str) {
        if !self.0.is_hidden() {
            self.note(text);
        }
    }

    fn reading(&self, event: &Event) {
        let message = match event {
            Event::Reading(file) => format!("reading {}", file.display()),
            Event::Copy(file) => {
                format!("reading {}: the converted copy of it is used", file.display())
            }
            Event::Converting(file) => {
                format!(
                    "reading {}, and keeping a converted copy for the next time",
                    file.display()
                )
            }
            Event::NoCopy(file, reason) => {
                self.note(&format!(
                    "note: no converted copy of {} is kept: {reason}; --cache DIR names another folder, --no-cache does without",
                    file.display()
                ));
                format!("reading {}", file.display())
            }
        };
        self.0.set_style(style(READING));
        self.0.set_message(message);
        self.0.enable_steady_tick(TICK);
    }
}
