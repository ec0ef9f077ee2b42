//! A progress bar on stderr, where that is a terminal.

use consilience::engine::{Observer, Round};
use consilience::run::Work;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The bar of the round that is under way.
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar that is drawn, unless stderr is no terminal or nobody wants it.
    pub fn new(wanted: bool) -> Bar {
        let target =
            if wanted { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let style = "{msg:<22} {bar:30} {pos}/{len} answers  {elapsed} gone, about {eta} left";
        bar.set_style(ProgressStyle::with_template(style).expect("the template is well formed"));
        Bar(bar)
    }

    /// A bar that counts the rows of a file that is written.
    pub fn of_rows(wanted: bool, rows: u64) -> Bar {
        let bar = Bar::new(wanted);
        let style = "{msg:<22} {bar:30} {pos}/{len} rows  {elapsed} gone, about {eta} left";
        bar.0.set_style(ProgressStyle::with_template(style).expect("the template is well formed"));
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

    /// Says something above the bar, or on stderr where there is no bar.
    pub fn note(&self, text: &str) {
        self.0.suspend(|| eprintln!("{text}"));
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
    fn round(&self, round: &Round) {
        self.0.reset();
        self.0.set_length(round.answers);
        self.0.set_message(format!("round {}: {}", round.number, round.kind));
    }

    fn answered(&self) {
        self.0.inc(1);
    }
}
