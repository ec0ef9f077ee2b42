//! Pictures and pages of results: `consilience plot`, and `--report`.

use crate::sources::Sources;
use crate::{print, shell};
use clap::Args;
use consilience::run::study_hash;
use consilience::study::Study;
use consilience::{Error, Place, Result, draft};
use consilience_report::{Document, Extras, Look, figure, kinds, png, report};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub const PLOT_HELP: &str = "\
RESULT.json is what compare, select or sweep print with --json, or write with
--out; the folder of --out will do, too.

Kinds of compare:
  probabilities, evidence, decomposition, shards, agreement, parameters,
  prior-scale, leave-one-out, weights, bayes-factors
Kinds of select:
  inclusion, models, sizes, coefficients
Kinds of sweep:
  error, rmse, choices, bayes-factor, epsilon, overlap-share, time
Not every document has all of them: prior-scale needs `compare --prior-scale
0.5,1,2`, leave-one-out needs `compare --leave-one-out`, decomposition and
shards need evidences of single shards (`--local importance`). A kind that is
not there is an error that lists those that are.

Examples:
  consilience compare examples/flights.toml --json > flights.json
  consilience plot flights.json > probabilities.svg
  consilience plot flights.json --kind evidence -o evidence.png
  consilience plot flights.json --kind parameters --model 'one slope' \\
      -o slope.svg --width 500
  consilience plot flights.json --kind all -o figures

All figures with words and tables in one page: `consilience compare STUDY
--report page.html`. docs/report.md shows every kind.";

/// What to draw.
#[derive(Debug, Args)]
pub struct PlotArguments {
    /// The JSON document of compare, select or sweep, the folder it was written to, or - for standard input
    pub result: PathBuf,
    /// What to show [default: probabilities, inclusion or error]; `all` writes every kind into the folder of -o
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    /// The model that the figure is about: of parameters, shards, leave-one-out and the kinds of sweep
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// The file to write, .svg or .png, or with --kind all a folder [default: SVG to standard output]; what is there is replaced
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// How wide it is, in pixels, 300 to 4000; a PNG file has two to each
    #[arg(long, value_name = "PX", default_value_t = 760, value_parser = clap::value_parser!(u32).range(300..=4000))]
    pub width: u32,
}

/// A page to write beside a result.
#[derive(Debug, Args)]
pub struct PageArguments {
    /// Also write a page with figures, tables and words to FILE.html, for a browser: one file without scripts; what is there is replaced
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
}

/// Pixels of a PNG file for each of the picture.
const SHARP: f32 = 2.0;

pub fn run(arguments: &PlotArguments) -> Result<ExitCode> {
    let path = found(&arguments.result)?;
    let document = read(&path)?;
    let sources = Sources::of([path.as_path()]);
    let look = Look { width: f64::from(arguments.width), model: arguments.model.clone() };
    let draw = |kind: &str| {
        figure(&document, kind, &look).map_err(|e| Error::input_at(place(&path), e.to_string()))
    };
    let there = kinds(&document);
    let first = there.first().map_or("", |kind| kind.name);
    match (arguments.kind.as_deref().unwrap_or(first), &arguments.out) {
        ("all", Some(folder)) => {
            draft::make_folder(folder)?;
            let file = |kind: &str| folder.join(format!("{kind}.svg"));
            there.iter().try_for_each(|kind| sources.spare(&file(kind.name)))?;
            for kind in &there {
                draft::write(&file(kind.name), draw(kind.name)?)?;
            }
            let names: Vec<&str> = there.iter().map(|kind| kind.name).collect();
            shell::tell(&format!(
                "Wrote {} figures to {}: {}",
                names.len(),
                folder.display(),
                names.join(", ")
            ));
        }
        ("all", None) => return Err(Error::input("--kind all needs a folder: add -o FOLDER")),
        (kind, None) => print(&draw(kind)?)?,
        (kind, Some(out)) => {
            sources.spare(out)?;
            match ending(out).as_str() {
                "svg" => draft::write(out, draw(kind)?)?,
                "png" => draft::write(out, pixels(&draw(kind)?)?)?,
                _ => {
                    let why = "a figure is written as .svg or .png: name a file with one of these endings";
                    return Err(Error::input_at(Place::file(out), why));
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// How a file's name ends, in small letters.
fn ending(path: &Path) -> String {
    path.extension().and_then(|end| end.to_str()).unwrap_or("").to_lowercase()
}

fn pixels(svg: &str) -> Result<Vec<u8>> {
    png(svg, SHARP).map_err(|error| Error::input(error.to_string()))
}

fn place(path: &Path) -> Place {
    Place::file(if path == Path::new("-") { Path::new("standard input") } else { path })
}

/// What sweeps, comparisons and choices call their documents in a folder.
const DOCUMENTS: [&str; 2] = ["sweep.json", "result.json"];

/// The document that is meant: of a folder that of the result in it.
fn found(path: &Path) -> Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_path_buf());
    }
    let mut inside = DOCUMENTS.iter().map(|name| path.join(name));
    inside.find(|file| file.is_file()).ok_or_else(|| {
        let why = format!(
            "this is a folder, and there is no {} in it: name the JSON document of a result",
            DOCUMENTS.join(" or ")
        );
        Error::input_at(Place::file(path), why)
    })
}

fn read(path: &Path) -> Result<Document> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    let bytes = bytes.map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => Error::input_at(
            place(path),
            "there is no such file: name the JSON document of a result",
        ),
        _ => Error::Io { path: path.to_path_buf(), source },
    })?;
    let text =
        String::from_utf8(bytes).map_err(|_| Error::input_at(place(path), "it is not text"))?;
    Document::read(&text).map_err(|error| Error::input_at(place(path), error.to_string()))
}

impl PageArguments {
    /// A page that cannot be written should be known of before the work, not after it; so should one that would take the
    /// place of what is read.
    pub fn check(&self, sources: &Sources) -> Result<()> {
        let Some(path) = &self.report else { return Ok(()) };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if path.is_dir() || folder.is_some_and(|folder| !folder.is_dir()) {
            let why = "no page can be written there: name a file in a folder that exists";
            return Err(Error::input_at(Place::file(path), why));
        }
        sources.spare(path)?;
        if !["html", "htm"].contains(&ending(path).as_str()) {
            let why = "a page is HTML: name a file that ends in .html";
            return Err(Error::input_at(Place::file(path), why));
        }
        Ok(())
    }

    /// Writes the page, if one was asked for. Shards that are sites have names.
    pub fn write(&self, json: &str, study: Extras) -> Result<()> {
        let Some(path) = &self.report else { return Ok(()) };
        let document = Document::read(json).expect("what we wrote can be read");
        draft::write(path, report(&document, &study))
    }
}

/// What a page says of a study in a file.
pub fn of_file(study: &Study, path: &Path) -> Extras {
    // A pipe has been read, and would never end now.
    let text = path.is_file().then(|| std::fs::read_to_string(path).ok());
    Extras {
        study: Some(path.display().to_string()),
        study_text: text.flatten(),
        ..of_study(Some(study))
    }
}

/// What it says of one that was given otherwise.
pub fn of_study(study: Option<&Study>) -> Extras {
    let words = std::env::args_os().map(|word| shell::word(Path::new(&word)));
    Extras {
        program: Some(format!("consilience {}", env!("CARGO_PKG_VERSION"))),
        command: Some(words.collect::<Vec<_>>().join(" ")),
        study_hash: study.map(study_hash),
        seed: study.map(|study| study.evidence.seed),
        ..Extras::default()
    }
}
