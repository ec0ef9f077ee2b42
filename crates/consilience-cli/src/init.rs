//! A study file for data that has none.

use crate::arguments::InitArguments;
use crate::shell::word;
use consilience::data::Table;
use consilience::data::misread::{Cause, Misread, misread};
use consilience::data::read::{
    ROW_NAMES, TextFormat, Wanted, column_names, find_files, read_table, unreadable_columns,
};
use consilience::draft;
use consilience::study::{Data, Study, StudyFile, template_of};
use consilience::{Error, Place, Result};
use std::path::{Component, Path, PathBuf};

/// Writes the study, and returns what is to be printed: what was written and how to go on, or the
/// study itself if it is for stdout.
pub fn write(arguments: &InitArguments) -> Result<String> {
    let data = text_of(&arguments.data)?;
    let files = find_files(Path::new(""), &[data.to_string()])?;
    let target = match &arguments.out {
        Some(path) if path.as_os_str() == "-" => None,
        Some(path) => Some(path.clone()),
        None => Some(default_target(&arguments.data)),
    };
    if let Some(target) = &target {
        refuse_target(target, &files, arguments.force)?;
    }
    let folder = target.as_deref().map_or(Path::new(""), folder_of);
    let path = path_from(folder, &arguments.data)?;
    let outcome = arguments.outcome.as_deref();
    let mut left_out = unreadable_columns(&files[0])?;
    left_out.retain(|(name, _)| Some(name.as_str()) != outcome);
    let mut wanted = column_names(&files[0], &TextFormat::default())?;
    wanted.retain(|name| !left_out.iter().any(|(other, _)| other == name));
    // Names of rows say nothing, unless they are asked for.
    wanted.retain(|name| name != ROW_NAMES || outcome == Some(ROW_NAMES));
    let mut data = Data { path: vec![text_of(&path)?.to_string()], ..Data::default() };
    let table = read(&files, &wanted, &mut data)?;
    let text = template_of(&table, &data, outcome)?;
    let Some(target) = target else { return Ok(text) };
    let study = StudyFile::parse(&text, &target)?;
    draft::write(&target, &text)?;
    Ok(report(&study.study, &target, &left_out))
}

/// Reads the data, once more if columns of numbers came out as text; says in `data` how.
fn read(files: &[PathBuf], wanted: &[String], data: &mut Data) -> Result<Table> {
    let wanted = Wanted::Named(wanted);
    let table = read_table(files, &data.text_format(), &wanted)?.table;
    let found = misread(&table, false);
    if found.iter().any(|one| one.cause == Cause::DecimalComma) {
        data.decimal = ',';
    }
    // Units and dates leave a column text whatever is missing in it.
    let mended = |one: &&Misread| one.certain && !matches!(one.cause, Cause::Unit | Cause::Date);
    for word in found.iter().filter(mended).flat_map(Misread::words) {
        if !data.na.contains(word) {
            data.na.push(word.clone());
        }
    }
    if *data == (Data { path: data.path.clone(), ..Data::default() }) {
        return Ok(table);
    }
    Ok(read_table(files, &data.text_format(), &wanted)?.table)
}

fn report(study: &Study, target: &Path, left_out: &[(String, String)]) -> String {
    let mut out = format!("{} is written:\n", target.display());
    for model in &study.models {
        let formula = model.formula.split_whitespace().collect::<Vec<_>>().join(" ");
        out += &format!("  {}: {formula} ({})\n", model.name, model.family);
    }
    for (name, kind) in left_out {
        out += &format!(
            "  left out: {name}, whose type {kind} is none of numbers, text and logicals\n"
        );
    }
    let target = word(target);
    out += &format!(
        "\nLook through it: its comments say what was guessed and left out. Then\n  consilience check {target}\n  consilience compare {target}\n"
    );
    out
}

fn text_of(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| {
        let message = "the name is not UTF-8, which a study file cannot hold; rename the file";
        Error::input_at(Place::file(path), message)
    })
}

/// The data's name with another ending, in the working directory.
fn default_target(data: &Path) -> PathBuf {
    // Many files have no name in common that would tell the study from others.
    if !data.exists() {
        return PathBuf::from("study.toml");
    }
    let name = Path::new(data.file_name().unwrap_or_default());
    let compressed = name.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"));
    let name = if compressed { name.with_extension("") } else { name.to_path_buf() };
    name.with_extension("toml")
}

/// What cannot be written to should be known before the data are read.
fn refuse_target(target: &Path, data: &[PathBuf], force: bool) -> Result<()> {
    let wrong = |message: &str| Err(Error::input_at(Place::file(target), message));
    if target.is_dir() {
        return wrong("this is a folder; name the study file to write");
    }
    if !folder_of(target).is_dir() {
        return wrong("there is no such folder; make it first, or name another");
    }
    if target.symlink_metadata().is_ok() {
        let same = |file: &PathBuf| file.canonicalize().ok() == target.canonicalize().ok();
        if data.iter().any(same) {
            return wrong("these are the data; name another file for the study");
        }
        if !force {
            return wrong("this file is there already; --force replaces it, --out names another");
        }
    }
    Ok(())
}

/// The folder that a file is in, as a path that can be looked at.
fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The data's path as seen from a folder: what a study in that folder says.
fn path_from(folder: &Path, data: &Path) -> Result<PathBuf> {
    if data.is_absolute() || folder == Path::new("") {
        return Ok(data.to_path_buf());
    }
    // Where symbolic links lead counts, since `..` goes up from there.
    let real = |path: &Path| {
        path.canonicalize().map_err(|source| Error::Io { path: path.to_path_buf(), source })
    };
    let (folder, here) = (real(folder)?, real(Path::new("."))?);
    if folder == here {
        return Ok(data.to_path_buf());
    }
    // A pattern is no file that could be looked at; it starts from here as it stands.
    let (base, rest) = match data.file_name().filter(|_| data.exists()) {
        Some(name) => (real(folder_of(data))?, Path::new(name)),
        None => (here, data),
    };
    Ok(match relative(&folder, &base) {
        Some(way) => way.join(rest),
        None => base.join(rest),
    })
}

/// The way from one real folder to another; none if they are on different drives.
fn relative(from: &Path, to: &Path) -> Option<PathBuf> {
    let (from, to): (Vec<Component>, Vec<Component>) =
        (from.components().collect(), to.components().collect());
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = from[common..].iter().map(|_| Component::ParentDir);
    (common > 0).then(|| up.chain(to[common..].iter().copied()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_between_folders() {
        let way = |from: &str, to: &str| relative(from.as_ref(), to.as_ref()).unwrap();
        assert_eq!(way("/a/b", "/a/b"), Path::new(""));
        assert_eq!(way("/a/b", "/a/b/c"), Path::new("c"));
        assert_eq!(way("/a/b/c", "/a/d"), Path::new("../../d"));
        assert_eq!(way("/x", "/a/d"), Path::new("../a/d"));
    }

    #[test]
    fn studies_are_named_after_their_data() {
        let folder = tempfile::tempdir().unwrap();
        let target = |name: &str| {
            let data = folder.path().join(name);
            std::fs::write(&data, "").unwrap();
            default_target(&data)
        };
        assert_eq!(target("flights.csv.gz"), Path::new("flights.toml"));
        assert_eq!(target("a.b.parquet"), Path::new("a.b.toml"));
        assert_eq!(default_target("no/*.csv".as_ref()), Path::new("study.toml"));
    }
}
