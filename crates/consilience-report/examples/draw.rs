//! Writes everything there is about a document into a folder: every figure as SVG and PNG at two widths, and the page.
//!
//!     cargo run --release -p consilience-report --example draw -- RESULT.json FOLDER

use consilience_report::{Document, Extras, Look, figure, kinds, png, report};
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(result), Some(folder)) = (words.next(), words.next().map(PathBuf::from)) else {
        return Err("draw RESULT.json FOLDER".into());
    };
    let document = Document::read(&std::fs::read_to_string(result)?)?;
    std::fs::create_dir_all(&folder)?;
    for kind in kinds(&document) {
        for (width, name) in [(760.0, "wide"), (360.0, "narrow")] {
            let svg = figure(&document, kind.name, &Look { width, model: None })?;
            let path = folder.join(format!("{}-{name}", kind.name));
            std::fs::write(path.with_extension("png"), png(&svg, 1.0)?)?;
            std::fs::write(path.with_extension("svg"), svg)?;
        }
    }
    std::fs::write(folder.join("page.html"), report(&document, &Extras::default()))?;
    Ok(())
}
