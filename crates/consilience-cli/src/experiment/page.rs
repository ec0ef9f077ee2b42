//! One page about all experiments that were run.

use super::setups::{Experiment, Part};
use super::summary::{self, upper_first};
use crate::plot;
use crate::shell::word;
use crate::sources::Sources;
use consilience::sweep::Document;
use consilience_report::{Chapter, ChapterPart, Extras, report_of_chapters};
use std::path::{Path, PathBuf};

/// An experiment with what came out.
pub struct Found<'a> {
    pub experiment: &'a Experiment,
    /// Of each part.
    pub documents: Vec<Document>,
    /// Where it is kept.
    pub folder: PathBuf,
}

/// What no page may take the place of: whatever stands where data are looked for.
pub fn spared(folders: &[&Path]) -> Sources {
    let inside = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let files: Vec<PathBuf> = inside.flatten().map(|entry| entry.path()).collect();
    Sources::of(files.iter().map(PathBuf::as_path))
}

/// A document as pages and figures take it.
pub fn drawn(document: &Document) -> consilience_report::Document {
    let json = crate::sweep::written(document);
    consilience_report::Document::read(&json).expect("what we wrote can be read")
}

/// What helps to repeat a part.
pub fn about(part: &Part) -> Extras {
    Extras {
        program: Some(format!("consilience {}", env!("CARGO_PKG_VERSION"))),
        study_text: toml::to_string(&part.study.study).ok(),
        ..Extras::default()
    }
}

/// The page.
pub fn of(found: &[Found]) -> String {
    let documents: Vec<Vec<consilience_report::Document>> =
        found.iter().map(|one| one.documents.iter().map(drawn).collect()).collect();
    let chapters: Vec<Chapter> =
        found.iter().zip(&documents).map(|(one, drawn)| chapter(one, drawn)).collect();
    let title = match found {
        [one] => heading(one.experiment),
        _ => {
            let numbers: Vec<String> =
                found.iter().map(|one| one.experiment.number.to_string()).collect();
            format!("Experiments {}", numbers.join(", "))
        }
    };
    report_of_chapters(&chapters, &Extras { title: Some(title), ..plot::of_study(None) })
}

fn heading(experiment: &Experiment) -> String {
    format!("Experiment {}: {}", experiment.number, experiment.title)
}

fn chapter<'a>(found: &Found, drawn: &'a [consilience_report::Document]) -> Chapter<'a> {
    let experiment = found.experiment;
    let all = experiment.parts.iter().zip(&found.documents).zip(drawn);
    let parts = all.map(|((part, document), drawn)| ChapterPart {
        title: upper_first(&part.title),
        says: format!(
            "{} All figures of it: {}",
            summary::size(document),
            word(&found.folder.join(part.name).join("report.html"))
        ),
        document: drawn,
        head: summary::HEAD.map(String::from).to_vec(),
        rows: summary::rows(experiment, document).into_iter().map(Vec::from).collect(),
        figures: part.figures.to_vec(),
        extras: about(part),
    });
    Chapter {
        title: heading(experiment),
        says: format!("{}.", upper_first(&experiment.says)),
        parts: parts.collect(),
    }
}
