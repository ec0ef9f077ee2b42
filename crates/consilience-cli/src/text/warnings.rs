//! Warnings below a result: what says the same stands once.

use super::counted;
use super::layout::{WIDTH, wrapped};
use consilience::compare::PartitionReport;
use consilience::{Level, Warning};

/// How shards are called: by their site, file or value of a column, or else by their number.
#[derive(Debug, Clone, Default)]
pub struct ShardNames {
    names: Vec<String>,
    what: Option<&'static str>,
}

impl ShardNames {
    /// Those of a partition.
    pub fn of(partition: &PartitionReport) -> ShardNames {
        let what = match partition.by.as_str() {
            "site" => "site",
            "file" => "file",
            _ => "shard",
        };
        let mut names = partition.names.clone().unwrap_or_default();
        // A number by itself would be taken for the shard's own.
        let numbers = names.iter().all(|name| name.parse::<f64>().is_ok());
        if let Some(column) = partition.by.strip_prefix("column:").filter(|_| numbers) {
            names.iter_mut().for_each(|name| *name = format!("{column} = {name}"));
        }
        ShardNames { names, what: Some(what) }
    }

    /// What a shard is.
    pub fn what(&self) -> &'static str {
        if self.names.is_empty() { "shard" } else { self.what.unwrap_or("shard") }
    }

    /// The name of a shard.
    pub fn name(&self, shard: usize) -> String {
        self.names.get(shard).cloned().unwrap_or_else(|| shard.to_string())
    }
}

/// Warnings, the worst first, about shards that have numbers only.
pub fn list(all: &[(Option<&str>, &Warning)]) -> String {
    list_of(all, &ShardNames::default(), WIDTH)
}

/// Warnings, the worst first; those that say the same of many models, or of many shards, in one entry.
pub fn list_of(all: &[(Option<&str>, &Warning)], names: &ShardNames, width: usize) -> String {
    let mut out = String::new();
    for level in [Level::Unreliable, Level::Caution, Level::Note] {
        let mut groups: Vec<Vec<(Option<&str>, &Warning)>> = Vec::new();
        for &(model, warning) in all.iter().filter(|(_, w)| w.level == level) {
            let same = |g: &&mut Vec<(Option<&str>, &Warning)>| {
                let (_, first) = g[0];
                first.code == warning.code
                    && first.shard.is_some() == warning.shard.is_some()
                    && (first.shard.is_some() || first.message == warning.message)
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.push((model, warning)),
                None => groups.push(vec![(model, warning)]),
            }
        }
        for group in groups {
            out.push('\n');
            out += &entry(&group, names, width);
        }
    }
    out
}

/// The most models or shards that are named in an entry.
const MOST_NAMED: usize = 8;

fn entry(group: &[(Option<&str>, &Warning)], names: &ShardNames, width: usize) -> String {
    let (_, first) = group[0];
    let mut models: Vec<&str> = Vec::new();
    let mut shards: Vec<usize> = Vec::new();
    for (model, warning) in group {
        models.extend(model.filter(|m| !models.contains(m)));
        // The same shard may be spoken of under several priors.
        shards.extend(warning.shard.filter(|s| !shards.contains(s)));
    }
    let several = |all: Vec<String>, what: &str| match &all[..] {
        [] => None,
        [only] => Some(format!("{what} {only}")),
        many => {
            let more = if many.len() > MOST_NAMED { ", …" } else { "" };
            let shown = many[..many.len().min(MOST_NAMED)].join(", ");
            Some(format!("{} ({shown}{more})", counted(many.len(), what)))
        }
    };
    let quoted = models.iter().map(|m| format!("`{m}`")).collect();
    let called = shards.iter().map(|s| names.name(*s)).collect();
    let parts: Vec<String> =
        [several(quoted, "model"), several(called, names.what())].into_iter().flatten().collect();
    let alike = group.iter().all(|(_, w)| w.message == first.message);
    let subject = match (parts.is_empty(), alike) {
        (true, _) => String::new(),
        (false, true) => format!("{}: ", parts.join(", ")),
        (false, false) => format!("{}, the first: ", parts.join(", ")),
    };
    let head = format!("{} [{}] {subject}{}.", first.level, first.code, first.message);
    let advice = format!("  {}.", upper_first(&first.advice));
    format!("{}\n{}\n", wrapped(&head, 2, width), wrapped(&advice, 2, width))
}

/// The text with its first letter in upper case, unless it names code.
fn upper_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |c| c.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn few(shard: usize) -> Warning {
        Warning::new(Level::Caution, "few-rows", format!("has {} rows", 3 + shard), "use fewer")
            .shard(shard)
    }

    #[test]
    fn the_same_warning_of_many_shards_is_one_entry() {
        let warnings: Vec<Warning> = (0..12).map(few).collect();
        let all: Vec<(Option<&str>, &Warning)> = warnings.iter().map(|w| (Some("m"), w)).collect();
        let text = list(&all);
        assert_eq!(
            text,
            "\ncaution [few-rows] model `m`, 12 shards (0, 1, 2, 3, 4, 5, 6, 7, …), the first:\n  has 3 rows.\n  Use fewer.\n"
        );
    }

    #[test]
    fn a_shard_counts_once_whatever_the_priors() {
        let mut wide = few(5);
        wide.message = format!("with priors × 2: {}", wide.message);
        let (own, other) = (few(5), few(6));
        let all = [(Some("m"), &own), (Some("m"), &other), (Some("m"), &wide)];
        let text = list(&all);
        assert!(text.contains("model `m`, 2 shards (5, 6), the first: has 8 rows."), "{text}");
    }

    #[test]
    fn what_many_models_have_in_common_stands_once() {
        let note = Warning::new(Level::Note, "comments", "it is so", "nothing");
        let other = Warning::new(Level::Note, "comments", "it is otherwise", "nothing");
        let all = [(Some("a"), &note), (Some("b"), &note), (Some("c"), &other)];
        let text = list(&all);
        assert_eq!(
            text,
            "\nnote [comments] 2 models (`a`, `b`): it is so.\n  Nothing.\n\nnote [comments] model `c`: it is otherwise.\n  Nothing.\n"
        );
    }

    #[test]
    fn shards_go_by_their_names() {
        let partition = PartitionReport {
            shards: 3,
            rows: 9,
            dropped: 0,
            by: "column:island".into(),
            seed: 1,
            hash: "0".into(),
            names: Some(["Biscoe", "Dream", "Torgersen"].map(String::from).into()),
        };
        let warning = few(1);
        let names = ShardNames::of(&partition);
        let text = list_of(&[(None, &warning)], &names, 80);
        assert!(text.contains("caution [few-rows] shard Dream: has 4 rows."), "{text}");
        let sites = ShardNames::of(&PartitionReport { by: "site".into(), ..partition });
        let text = list_of(&[(None, &warning)], &sites, 80);
        assert!(text.contains("caution [few-rows] site Dream: "), "{text}");
    }
}
