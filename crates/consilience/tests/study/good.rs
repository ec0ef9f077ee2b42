//! Studies that are right, the defaults, and overrides.

use super::*;
use consilience::model::{Family, Prior};
use consilience::study::{
    ClusterOn, Combine, Data, EvidenceOptions, Kernel, Local, Missing, ModelSpec, Overrides,
    Points, PriorTable, Schedule, ShareRule, Sizes, Split, SplitBy,
};
use consilience::{Error, Level};
use std::path::{Path, PathBuf};

const FULL: &str = r##"
[data]
path = ["../data/*.csv", "b.parquet"]
missing = "error"
weights = "n"
columns = ["late", "n"]
delimiter = ";"
comment = ""
[split]
shards = 50
by = "cluster"
share = "rows"
seed = 18_446_744_073_709_551_615
clusters = 0x10
[prior]
coefficients = "normal(0, 1)"
intercept = "student_t(3, 0, 2.5)"
log_sd = "normal(0, 1)"
log_dispersion = "cauchy(0, 1)"
[prior.parameters]
age = "laplace(0, 2)"
[[model]]
name = " carrier and delay "
formula = "late ~ 0 + dep_delay + carrier"
family = "negative-binomial"
probability = 3
[model.prior]
coefficients = "laplace(1, 2)"
log_dispersion = "fixed(0)"
[model.prior.parameters]
dep_delay = "normal(0, 0.5)"
"carrier UA" = "normal(0, 2)"
[[model]]
formula = """
late ~
  age"""
family = "probit"
probability = 1.0
[evidence]
local = "importance"
combine = "normal"
draws = 200
se_target = 1
points = "sobol"
statistics = false
schedule = "gentle"
rounds = 2
seed = 7
kernel = "portable"
"##;

#[test]
fn everything_that_can_be_said_is_read() {
    let read = file(FULL).unwrap();
    assert_eq!(read.folder, Path::new("folder"));
    let (study, line) = (&read.study, |key: &str| read.lines.line(key).unwrap());
    assert_eq!(
        study.data,
        Data {
            path: vec!["../data/*.csv".into(), "b.parquet".into()],
            missing: Missing::Error,
            weights: Some("n".into()),
            columns: Some(vec!["late".into(), "n".into()]),
            delimiter: Some(';'),
            comment: None,
            na: Vec::new(),
            decimal: '.',
        }
    );
    assert_eq!(
        study.split,
        Split {
            shards: Some(50),
            by: SplitBy::Cluster,
            share: ShareRule::Rows,
            seed: u64::MAX,
            sizes: Sizes::Equal,
            clusters: 16,
            cluster_on: ClusterOn::Scaled,
        }
    );
    assert_eq!(
        study.prior.intercept,
        Some(Prior::StudentT { df: 3.0, mean: 0.0, scale: 2.5 }.into())
    );
    assert_eq!(study.prior.log_dispersion.unwrap().to_string(), "cauchy(0, 1)");
    assert_eq!(line("prior.parameters.age"), 21);
    let [first, second] = &study.models[..] else { panic!("two models") };
    assert_eq!(first.name, "carrier and delay");
    assert_eq!((line("model[0]"), line("model[0].formula")), (22, 24));
    assert_eq!(study.probabilities(), [0.75, 0.25]);
    assert_eq!(first.prior.coefficients, Some(Prior::Laplace { mean: 1.0, scale: 2.0 }.into()));
    let named = first.prior.parameters["carrier UA"];
    assert_eq!(named, Prior::Normal { mean: 0.0, sd: 2.0 }.into());
    assert_eq!(line("model[0].prior.parameters.carrier UA"), 32);
    // The name is the formula on one line; the formula stays as it is.
    assert_eq!((second.name.as_str(), second.formula.as_str()), ("late ~ age", "late ~\n  age"));
    assert_eq!((line("model[1]"), line("model[1].formula")), (33, 34));
    let expected = EvidenceOptions {
        local: Local::Importance,
        combine: Combine::Normal,
        draws: 200,
        warmup: 2_000,
        chains: 1,
        proposals: 1_000,
        points: Points::Sobol,
        statistics: false,
        se_target: 1.0,
        schedule: Schedule::Gentle,
        rounds: 2,
        seed: 7,
        nodes: None,
        kernel: Kernel::Portable,
    };
    assert_eq!(study.evidence, expected);
    // 3 + 1 is not 1: said, with the number.
    let notes = read.notes();
    let [note] = &notes[..] else { panic!("one note: {notes:?}") };
    assert_eq!((note.level, note.value), (Level::Note, Some(4.0)));
    assert_eq!(note.code, "probabilities-normalised");
}

#[test]
fn defaults_are_as_documented() {
    let read = file(&format!("{DATA}{MODEL}")).unwrap();
    let study = &read.study;
    assert_eq!(study.data.path, ["d.csv"]);
    assert_eq!(study.data, Data { path: vec!["d.csv".into()], ..study.data.clone() });
    assert_eq!((study.data.missing, study.data.comment), (Missing::Drop, Some('#')));
    assert_eq!((study.data.weights.as_ref(), study.data.delimiter), (None, None));
    assert_eq!(study.data.columns, None);
    let Split { shards, by, sizes, share, seed, clusters, cluster_on } = study.split.clone();
    assert_eq!((shards, study.split.count(), by), (None, Some(1), SplitBy::Random));
    assert_eq!((share, seed, clusters), (ShareRule::Equal, 1, 10));
    assert_eq!((sizes, cluster_on), (Sizes::Equal, ClusterOn::Scaled));
    let EvidenceOptions {
        local,
        combine,
        draws,
        warmup,
        chains,
        se_target,
        rounds,
        seed,
        kernel,
        ..
    } = study.evidence;
    assert_eq!((warmup, chains), (2_000, 1));
    let EvidenceOptions { proposals, points, statistics, .. } = study.evidence;
    assert_eq!((proposals, points, statistics), (1_000, Points::Plain, true));
    assert_eq!((local, combine, draws), (Local::Auto, Combine::Exact, 10_000));
    assert_eq!((se_target, rounds, seed, kernel), (0.01, 60, 1, Kernel::Auto));
    assert_eq!(study.prior, PriorTable::default());
    assert_eq!((study.models[0].name.as_str(), study.probabilities()), ("y ~ x", vec![1.0]));
    assert_eq!(read.notes(), []);
}

/// `Gamma` is R's spelling: a family is the same in capitals, and so is the study.
#[test]
fn families_are_read_in_any_case() {
    let study = |family: &str| {
        parse(&format!("{DATA}[[model]]\nformula = \"y ~ x\"\nfamily = \"{family}\"\n")).unwrap()
    };
    for (typed, family) in [
        ("Gaussian", Family::Gaussian),
        ("NORMAL", Family::Gaussian),
        ("Gamma", Family::Gamma),
        ("Student-t", Family::StudentT),
        ("NegBin", Family::NegativeBinomial),
        ("ZIP", Family::ZeroInflatedPoisson),
    ] {
        let (read, own) = (study(typed), study(family.name()));
        assert_eq!((read.models[0].family, read.hash()), (family, own.hash()), "{typed}");
    }
    let select = "[select]\noutcome = \"y\"\nfamily = \"Binomial\"\ncandidates = \"a + b\"\n";
    let study = parse(&format!("{DATA}{select}")).unwrap();
    assert_eq!(study.select.map(|select| select.family), Some(Family::Logistic));
}

/// Models go by their formulas, however those are spaced, and by their families where these differ.
#[test]
fn models_without_names_are_told_apart() {
    let names = |models: &[(&str, &str)]| -> Vec<String> {
        let one = |(formula, family): &(&str, &str)| {
            format!("[[model]]\nformula = \"{formula}\"\nfamily = \"{family}\"\n")
        };
        let text = DATA.to_string() + &models.iter().map(one).collect::<String>();
        let study = parse(&text).unwrap();
        // They stay what they are.
        let again: Study = serde_json::from_str(&serde_json::to_string(&study).unwrap()).unwrap();
        assert_eq!(again, study);
        study.models.into_iter().map(|model| model.name).collect()
    };
    assert_eq!(names(&[("y~x+  (1|  h )", "gaussian")]), ["y ~ x + (1 | h)"]);
    assert_eq!(
        names(&[
            ("t ~ x", "weibull"),
            ("t ~ 1", "weibull"),
            ("t~x", "gamma"),
            ("t ~ x", "log-normal")
        ]),
        ["t ~ x (weibull)", "t ~ 1", "t ~ x (gamma)", "t ~ x (log-normal)"]
    );
    let built = Study::new()
        .model("t ~ x", Family::Weibull)
        .model("t ~ x", Family::Gamma)
        .with(ModelSpec::new("t ~ x", Family::Exponential).named("plain"))
        .model("t~x", Family::LogNormal);
    let built: Vec<&str> = built.models.iter().map(|model| &*model.name).collect();
    assert_eq!(built, ["t ~ x (weibull)", "t ~ x (gamma)", "plain", "t ~ x (log-normal)"]);
    // However it is called, what is in memory is what is read back; and a name that is written is another's no more.
    let mut study = Study::new().path("d.csv").model("t ~ x", Family::Weibull);
    study.models.push(ModelSpec::new("t ~ x", Family::LogNormal).named("t ~ x (log-normal)"));
    let again: Study = serde_json::from_str(&serde_json::to_string(&study).unwrap()).unwrap();
    assert_eq!((again.hash(), &again), (study.hash(), &study));
    let named = "[[model]]\nname = \"t ~ x\"\nformula = \"t ~ x\"\nfamily = \"gamma\"\n";
    let unnamed = "[[model]]\nformula = \"t ~ x\"\nfamily = \"weibull\"\n";
    let study = parse(&format!("{DATA}{named}{unnamed}")).unwrap();
    let found: Vec<&str> = study.models.iter().map(|model| &*model.name).collect();
    assert_eq!(found, ["t ~ x", "t ~ x (weibull)"]);
    // Thousands are added as fast as they are named: each formula is parsed once or twice.
    let many = (0..3000).fold(Study::new(), |s, i| s.model(format!("y ~ x{i} + z"), Family::Gamma));
    assert_eq!(many.models.len(), 3000);
    let twice = format!("{DATA}{MODEL}{}", MODEL.replace("y ~ x", "y~x"));
    let error = file(&twice).unwrap_err().to_string();
    assert!(
        error.contains("two models are the same: `y ~ x`, on lines 3 and 6; leave one out"),
        "{error}"
    );
}

#[test]
fn probabilities_are_equal_or_normalised() {
    let study = |ps: [&str; 3]| {
        let model = |(name, p)| format!("{MODEL}name = \"{name}\"\n{p}\n");
        let models: String = ["a", "b", "c"].into_iter().zip(ps).map(model).collect();
        file(&format!("{DATA}{models}")).unwrap()
    };
    let of = |file: &StudyFile| file.study.probabilities();
    let equal = study([""; 3]);
    assert_eq!((of(&equal), equal.notes().len()), (vec![1.0 / 3.0; 3], 0));
    let exact = study(["probability = 0.5", "probability = 0.25", "probability = 0.25"]);
    assert_eq!((of(&exact), exact.notes().len()), (vec![0.5, 0.25, 0.25], 0));
    let nearly = study(["probability = 0.5", "probability = 0.25", "probability = 0.2500000001"]);
    assert_eq!(nearly.notes().len(), 0);
    assert!((of(&nearly).iter().sum::<f64>() - 1.0).abs() < 1e-15);
    let thirds = study(["probability = 0.33"; 3]);
    assert_eq!((of(&thirds), thirds.notes().len()), (vec![1.0 / 3.0; 3], 1));
    // The sum overflows, the probabilities do not.
    let huge = study(["probability = 1e308"; 3]);
    assert_eq!((of(&huge), huge.notes()[0].value), (vec![1.0 / 3.0; 3], None));
}

#[test]
fn shards_are_kept_when_the_data_fix_them() {
    let split = |keys: &str| parse(&format!("[split]\n{keys}\n{DATA}{MODEL}")).unwrap().split;
    assert_eq!(split("by = \"file\"").count(), None);
    let column = split("by = \"column:the site\"\nshards = 4");
    assert_eq!((column.count(), column.shards), (None, Some(4)));
    assert_eq!(column.by, SplitBy::Column("the site".into()));
    assert_eq!(split("by = \"outcome\"\nshards = 4").count(), Some(4));
}

/// A rule that takes the number of shards from the data takes it from the study, unless the caller says it too.
#[test]
fn another_rule_may_fix_the_shards() {
    let text = format!("{DATA}[split]\nshards = 5\n{MODEL}");
    let by = |by: SplitBy, shards| Overrides { by: Some(by), shards, ..Overrides::default() };
    for (overrides, expected) in [
        (by(SplitBy::File, None), None),
        (by(SplitBy::File, Some(2)), Some(2)),
        (by(SplitBy::Outcome, None), Some(5)),
    ] {
        let mut study = file(&text).unwrap();
        study.apply(&overrides).unwrap();
        assert_eq!(study.study.split.shards, expected);
    }
    let mut own = file(&text.replace("shards = 5", "shards = 5\nby = \"file\"")).unwrap();
    own.apply(&by(SplitBy::File, None)).unwrap();
    assert_eq!(own.study.split.shards, Some(5));
}

#[test]
fn unused_clusters_are_noted() {
    let text = format!("{DATA}[split]\nclusters = 5\n{MODEL}");
    let mut study = file(&text).unwrap();
    assert_eq!(study.notes()[0].code, "clusters-unused");
    assert!(study.notes()[0].message.contains("line 4"), "{:?}", study.notes());
    // The note goes when its reason goes.
    study.apply(&Overrides { by: Some(SplitBy::Cluster), ..Overrides::default() }).unwrap();
    assert_eq!((study.notes().len(), study.study.split.clusters), (0, 5));
}

#[test]
fn other_spellings_of_toml_are_the_same_study() {
    let table = parse(&format!("{DATA}{MODEL}")).unwrap();
    let inline = "data.path = ['d.csv']\nmodel = [\n{formula = 'y ~ x', family = 'gaussian'}]";
    let inline = file(inline).unwrap();
    assert_eq!(inline.study, table);
    assert_eq!(inline.lines.line("model[0]"), Some(3));
    // A byte order mark and Windows line ends.
    let windows = format!("\u{feff}{DATA}{MODEL}").replace('\n', "\r\n");
    assert_eq!(parse(&windows).unwrap().models, table.models);
    for (tab, expected) in [("tab", '\t'), ("\\t", '\t'), ("|", '|'), (" ", ' ')] {
        let study = parse(&format!("{DATA}delimiter = \"{tab}\"\n{MODEL}")).unwrap();
        assert_eq!(study.data.delimiter, Some(expected));
    }
}

#[test]
fn overrides_win() {
    let mut read = file(FULL).unwrap();
    let overrides = Overrides {
        data: Some(vec!["mine.csv".into()]),
        shards: Some(3),
        by: Some(SplitBy::Random),
        sizes: Some(Sizes::Multinomial),
        share: Some(ShareRule::Equal),
        split_seed: Some(11),
        seed: Some(12),
        local: Some(Local::Laplace),
        combine: Some(Combine::Exact),
        draws: Some(500),
        warmup: Some(300),
        chains: Some(4),
        se_target: Some(0.5),
        rounds: Some(9),
        kernel: Some(Kernel::Auto),
        home: Some("at/home".into()),
    };
    read.apply(&overrides).unwrap();
    let StudyFile { study, folder, home, .. } = read;
    assert_eq!((study.data.path.join(" "), folder), ("mine.csv".into(), PathBuf::new()));
    assert_eq!(home, Some("at/home".into()));
    assert_eq!(
        (study.split.shards, study.split.by, study.split.seed),
        (Some(3), SplitBy::Random, 11)
    );
    assert_eq!((study.split.share, study.split.sizes), (ShareRule::Equal, Sizes::Multinomial));
    let e = study.evidence;
    assert_eq!((e.seed, e.local, e.combine), (12, Local::Laplace, Combine::Exact));
    assert_eq!((e.warmup, e.chains), (300, 4));
    assert_eq!((e.draws, e.se_target, e.rounds, e.kernel), (500, 0.5, 9, Kernel::Auto));

    let mut same = file(FULL).unwrap();
    same.apply(&Overrides::default()).unwrap();
    assert_eq!(same, file(FULL).unwrap());
}

#[test]
fn overrides_come_before_the_checks_of_the_whole() {
    let path = Path::new("study.toml");
    let data = Overrides { data: Some(vec!["x.csv".into()]), ..Overrides::default() };
    for text in [MODEL.to_string(), format!("[data]\n{MODEL}")] {
        assert!(parse(&text).is_err());
        let read = StudyFile::parse_with(&text, path, &data).unwrap();
        assert_eq!(read.paths().unwrap(), ["x.csv"]);
    }
    let clash = format!("{DATA}[evidence]\nlocal = \"none\"\ncombine = \"normal\"\n{MODEL}");
    let exact = Overrides { combine: Some(Combine::Exact), ..Overrides::default() };
    let read = StudyFile::parse_with(&clash, path, &exact).unwrap();
    assert_eq!(read.study.evidence.local, Local::None);
}

#[test]
fn wrong_overrides_are_refused_and_change_nothing() {
    let text = format!("{DATA}[evidence]\nlocal = \"none\"\n{MODEL}");
    let none = Overrides::default();
    let cases: [(Overrides, &[&str]); 10] = [
        (Overrides { warmup: Some(99), ..none.clone() }, &["`warmup` must be at least 100"]),
        (Overrides { chains: Some(0), ..none.clone() }, &["`chains` must be at least 1"]),
        (Overrides { data: Some(vec![]), ..none.clone() }, &["path is empty"]),
        (Overrides { data: Some(vec![" ".into()]), ..none.clone() }, &["path is empty"]),
        (Overrides { shards: Some(0), ..none.clone() }, &["`shards` must be at least 1"]),
        (Overrides { draws: Some(99), ..none.clone() }, &["`draws`", "at least 200, but is 99"]),
        (Overrides { draws: Some(100_000_001), ..none.clone() }, &["at most 100000000"]),
        (Overrides { rounds: Some(1), ..none.clone() }, &["`rounds` must be at least 2"]),
        (Overrides { se_target: Some(f64::NAN), ..none.clone() }, &["`se_target`", "positive"]),
        // The study's half of the clash has a line.
        (
            Overrides { combine: Some(Combine::Normal), ..none.clone() },
            &["study.toml, line 4: ", "local = \"auto\"", "combine = \"exact\""],
        ),
    ];
    for (overrides, needles) in cases {
        let mut study = file(&text).unwrap();
        let error = study.apply(&overrides).unwrap_err();
        assert!(error.is_input());
        for needle in needles {
            assert!(error.to_string().contains(needle), "{error} lacks {needle}");
        }
        assert_eq!(study, file(&text).unwrap());
    }
}

#[test]
fn names_parse_print_and_serialise_alike() {
    for local in Local::ALL {
        assert_eq!(Local::parse(local.name()).unwrap(), local);
        assert_eq!(serde_json::to_string(&local).unwrap(), format!("\"{local}\""));
    }
    assert_eq!(
        Combine::ALL.map(Combine::name),
        ["exact", "normal", "normal-uncorrected", "cmc-is", "augmented"]
    );
    assert_eq!(ShareRule::ALL.map(ShareRule::name), ["equal", "rows"]);
    assert_eq!(Sizes::ALL.map(Sizes::name), ["equal", "multinomial"]);
    assert_eq!(ClusterOn::ALL.map(ClusterOn::name), ["scaled", "raw"]);
    assert_eq!(Missing::ALL.map(Missing::name), ["drop", "error"]);
    for by in ["random", "outcome", "cluster", "file", "column:a:b"] {
        assert_eq!(SplitBy::parse(by).unwrap().to_string(), by);
    }
    let study = parse(FULL).unwrap();
    let json = serde_json::to_string(&study).unwrap();
    assert_eq!(serde_json::from_str::<Study>(&json).unwrap(), study);
    assert_eq!(Study::from_toml(&study.to_toml()).unwrap(), study);
    let tossed = parse(&format!("{DATA}[split]\nsizes = \"multinomial\"\n{MODEL}")).unwrap();
    assert_eq!(tossed.split.sizes, Sizes::Multinomial);
    assert_eq!(Study::from_toml(&tossed.to_toml()).unwrap(), tossed);
    let least = parse(&format!("{DATA}{MODEL}")).unwrap();
    assert_eq!(Study::from_toml(&least.to_toml()).unwrap(), least);
}

#[test]
fn files_are_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("study.toml");
    std::fs::write(&path, format!("{DATA}{MODEL}")).unwrap();
    let study = StudyFile::read(&path).unwrap();
    assert_eq!(study.lines.place("data").file, Some(path.clone()));
    assert_eq!(study.folder, folder.path());

    let refused = |path: &Path, needle: &str| {
        let error = StudyFile::read(path).unwrap_err();
        assert!(matches!(error, Error::Input { .. }));
        let text = error.to_string();
        assert!(text.contains(needle) && text.contains(path.to_str().unwrap()), "{text}");
    };
    refused(&folder.path().join("none.toml"), "no such file");
    refused(folder.path(), "folder");
    std::fs::write(&path, b"[data]\npath = \"\xff\"").unwrap();
    refused(&path, "line 2: this is not UTF-8");
    std::fs::write(&path, vec![b'#'; (10 << 20) + 1]).unwrap();
    refused(&path, "larger than 10 MiB");
    assert!(parse(&" ".repeat((10 << 20) + 1)).unwrap_err().to_string().contains("10 MiB"));
}
