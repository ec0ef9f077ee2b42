//! What results of a larger sweep lose to those of a smaller one in the same folder.

use crate::shell::word;
use crate::text::counted;
use consilience::sweep::Document;
use serde::Deserialize;
use std::collections::HashSet;
use std::path::Path;

/// A document of before, as far as it is held against one of now.
#[derive(Deserialize)]
struct Before {
    cells: Vec<Cell>,
    combinations: Vec<String>,
}

/// A partition's name.
#[derive(Deserialize, PartialEq, Eq, Hash)]
struct Cell {
    by: String,
    shards: usize,
    repeat: usize,
}

/// What to say of the document that stands in a file if this one, which takes its place, lacks something that it has.
pub fn by(document: &Document, file: &Path) -> Option<String> {
    // What cannot be read was no result.
    let before: Before = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    let name = |by: &str, shards, repeat| Cell { by: by.to_string(), shards, repeat };
    let now: HashSet<Cell> =
        document.cells.iter().map(|c| name(&c.by, c.shards, c.repeat)).collect();
    let lost = before.cells.iter().filter(|cell| !now.contains(cell)).count();
    let methods: Vec<String> = before
        .combinations
        .iter()
        .filter(|method| !document.combinations.contains(method))
        .map(|method| format!("`{method}`"))
        .collect();
    let lacks = match (lost, methods.is_empty()) {
        (0, true) => return None,
        (0, false) => methods.join(", "),
        (lost, true) => counted(lost, "partition"),
        (lost, false) => format!("{}, and {}", counted(lost, "partition"), methods.join(", ")),
    };
    let kept = file.parent().unwrap_or(Path::new(".")).join("cells");
    // A partition that is computed again, for other combinations, keeps those only.
    let stays = match lost {
        0 => String::new(),
        _ => format!(
            " These partitions stay in {}: a sweep that asks for them again finds them there.",
            word(&kept)
        ),
    };
    Some(format!(
        "note: {} and the tables beside it were of {}; they are replaced by those of {}, which lack {lacks}.{stays}",
        word(file),
        counted(before.cells.len(), "partition"),
        document.cells.len(),
    ))
}
