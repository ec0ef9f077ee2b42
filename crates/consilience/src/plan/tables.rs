//! Data that are in memory already: one table that is split, or a table per shard.

use super::gather::{Complete, Gathered, GatheredRows, RowsOf, complete};
use super::outline::Outline;
use super::room::Room;
use crate::data::Tables;
use crate::study::{SplitBy, StudyFile};
use crate::{Error, Place, Result};

impl GatheredRows {
    /// The rows of one table in memory, on this many threads; they stay there. What the study says about files is not
    /// looked at, and of the room only how to stop. Tables that are split already are refused.
    ///
    /// The same rows give the same bits as they do in files.
    pub fn of_tables(
        study: impl Into<StudyFile>,
        tables: Tables,
        threads: usize,
        room: &Room,
    ) -> Result<GatheredRows> {
        if let Tables::Shards(given) = &tables {
            let message = format!(
                "{} tables are given, one per shard, and they are to be split in other ways; give one table with all rows",
                given.len()
            );
            return Err(Error::input(message));
        }
        let study = study.into();
        crate::engine::pool(threads)?.install(|| {
            let (outline, names) = outlined(study, &tables)?;
            let complete = read(&outline, tables, room)?;
            let (files, halt) = (Vec::new(), room.halt.clone());
            Ok(GatheredRows { outline, files, names, complete, thinned: 1, halt })
        })
    }
}

impl Gathered {
    /// The same with data in memory, which stay there: of the room only how to stop is looked at, and nothing of what the
    /// study says about files.
    pub fn of_tables(study: impl Into<StudyFile>, tables: Tables, room: &Room) -> Result<Gathered> {
        let (outline, names) = outlined(study.into(), &tables)?;
        let mut split = outline.study.split.rule();
        let mut by = split.by.to_string();
        if let Tables::Shards(given) = &tables {
            let given = given.len();
            if let Some(wanted) = split.shards.filter(|wanted| *wanted != given) {
                let message = format!(
                    "{given} tables are given, one per shard, and `split.shards` is not {given} but {wanted}; leave it out or say {given}"
                );
                let error = Error::input_at(Place::key("split.shards"), message);
                return Err(outline.lines.locate(error));
            }
            if !matches!(split.by, SplitBy::Random | SplitBy::File) {
                let message = format!(
                    "`split.by` = \"{by}\" does not go with tables that are split already; leave it out, or give one table"
                );
                let error = Error::input_at(Place::key("split.by"), message);
                return Err(outline.lines.locate(error));
            }
            (split.by, by) = (SplitBy::File, "given".to_string());
        }
        let complete = read(&outline, tables, room)?;
        let mut gathered = Gathered::split(outline, complete, &split, by, &Room::default())?;
        if gathered.partition.by == "given" {
            // The names of these tables are ours and tell nobody anything.
            gathered.partition.names = None;
        }
        Ok(Gathered { names, ..gathered })
    }
}

/// A study's formulas over the columns of tables, and the names of all of these.
fn outlined(study: StudyFile, tables: &Tables) -> Result<(Outline, Vec<String>)> {
    let mut names = Vec::new();
    let outline = Outline::new(study, |_| {
        names = tables.names()?;
        Ok(names.clone())
    })?;
    Ok((outline, names))
}

/// The rows of tables that count.
fn read(outline: &Outline, tables: Tables, room: &Room) -> Result<Complete> {
    let unbounded = room.halt.clone().into_iter().fold(Room::default(), Room::until);
    let format = outline.study.data.text_format();
    complete(outline, &unbounded, Place::default(), RowsOf::Study, |rows| {
        rows.take(tables.read(&outline.columns(), &format, room.halt.as_ref())?)?;
        Ok(0)
    })
}
