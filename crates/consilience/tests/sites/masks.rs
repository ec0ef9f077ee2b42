//! Sites that tell only sums: the bits of plain runs and of threads, answers that look like noise, and what is refused.

use consilience::compare::Comparison;
use consilience::engine::Silent;
use consilience::plan::{Extras, Plan};
use consilience::run::{AnswerFile, Courier, OpenRound, Received, Run, SiteEntry, Stop};
use consilience::site::{Asked, Key, LogEntry, Policy, answer, explain};
use consilience::study::StudyFile;
use consilience::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

const LOGISTIC: &str = "[evidence]\ndraws = 300\n[[model]]\nformula = \"y ~ x\"\nfamily = \"logistic\"\n[[model]]\nformula = \"y ~ x + scale(z)\"\nfamily = \"logistic\"\n";
const GAUSSIAN: &str = "[evidence]\ndraws = 300\nstatistics = false\n[[model]]\nformula = \"z ~ x\"\nfamily = \"gaussian\"\n";
/// Weights, shares by rows, and a column far from 0.
const WEIGHTED: &str = "weights = \"w\"\n[evidence]\ndraws = 300\n[split]\nshare = \"rows\"\n[[model]]\nformula = \"y ~ x + I(z + 10000)\"\nfamily = \"logistic\"\n";
/// Priors that are settled by all rows together, without asking sites for their own peaks.
const GENTLE: &str = "[evidence]\ndraws = 300\nschedule = \"gentle\"\n[prior]\ncoefficients = \"jzs(wide)\"\n[[model]]\nformula = \"y ~ x\"\nfamily = \"logistic\"\n[[model]]\nformula = \"y ~ x + z\"\nfamily = \"logistic\"\n";

fn study(text: &str) -> StudyFile {
    StudyFile::parse(text, Path::new("study.toml")).unwrap()
}

/// A federation of sites with rows and keys of their own.
struct Sites {
    folder: tempfile::TempDir,
    keys: Vec<Key>,
    public: BTreeMap<String, String>,
    policy: Policy,
    /// What each has answered.
    logs: Mutex<Vec<Vec<LogEntry>>>,
    /// All masked bytes that left a site, file by file.
    masked: Mutex<Vec<Vec<u8>>>,
}

impl Sites {
    /// So many, each with some 40 rows in which `x` has this unit.
    fn new(count: usize, unit: f64) -> Sites {
        let folder = tempfile::tempdir().unwrap();
        let mut state = 3u64;
        let mut die = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1u64 << 31) as f64
        };
        for s in 0..count {
            let mut text = String::from("y,x,z,w\n");
            for i in 0..40 + s {
                let (x, z) = (4.0 * die() - 2.0, 10.0 * die());
                let y = u8::from(die() < 1.0 / (1.0 + (-0.8 * x).exp()));
                let w = 1 + i % 4;
                text += &format!("{y},{},{},{w}\n", x * unit, z + x);
            }
            std::fs::write(folder.path().join(format!("s{s}.csv")), text).unwrap();
        }
        let keys: Vec<Key> = (0..count).map(|s| Key::new([s as u8 + 1; 32])).collect();
        let public = keys.iter().enumerate().map(|(s, k)| (format!("s{s}"), k.public())).collect();
        let logs = Mutex::new(vec![Vec::new(); count]);
        let policy = Policy::default();
        Sites { folder, keys, public, policy, logs, masked: Mutex::default() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn entries(&self) -> Vec<SiteEntry> {
        let entry = |(name, key): (&String, &String)| SiteEntry {
            name: name.clone(),
            key: Some(key.clone()),
        };
        self.public.iter().map(entry).collect()
    }

    fn ask(&self, models: &str, folder: &str, random: u8, sums: bool) -> Result<Run> {
        let text = format!("[data]\npath = \"data.csv\"\n{models}");
        let (entries, folder) = (self.entries(), self.path(folder));
        if sums {
            Run::for_sums(study(&text), &entries, &folder, [random; 32])
        } else {
            Run::for_sites(study(&text), &entries, &folder, [random; 32])
        }
    }

    fn threads(&self, models: &str, pattern: &str) -> Comparison {
        let path = self.path(pattern);
        let mut text = format!("[data]\npath = {path:?}\n{models}");
        match text.contains("[split]\n") {
            true => text = text.replace("[split]\n", "[split]\nby = \"file\"\n"),
            false => text += "[split]\nby = \"file\"\n",
        }
        Plan::new(study(&text), 2, &Silent).unwrap().run(&Silent).unwrap()
    }

    /// A site's answer, with changes to how it is asked.
    fn reply(
        &self,
        question: &Path,
        s: usize,
        change: impl Fn(&mut Asked),
    ) -> Result<consilience::site::SiteAnswer> {
        let data = [self.path(&format!("s{s}.csv")).display().to_string()];
        let (site, log) = (format!("s{s}"), self.logs.lock().unwrap()[s].clone());
        let mut asked = Asked {
            question,
            data: &data,
            site: &site,
            policy: &self.policy,
            log: &log,
            key: Some(&self.keys[s]),
            keys: Some(&self.public),
        };
        change(&mut asked);
        answer(&asked)
    }
}

impl Courier for Sites {
    fn fetch(&self, open: &OpenRound) -> Result<()> {
        let mut letters = Vec::new();
        for &s in &open.missing {
            let sent = self.reply(open.question, s, |_| ())?;
            let masked = !sent.entry.sites.is_empty();
            self.logs.lock().unwrap()[s].push(sent.entry);
            let letter = self.path(&format!("{}-s{s}.answer", open.number));
            let file = AnswerFile::parse(&sent.bytes).unwrap();
            // Its last answer is masked, if one is.
            if masked && let Some(count) = file.masked(file.header.asks.len() - 1) {
                let bytes = sent.bytes[sent.bytes.len() - 16 * count..].to_vec();
                self.masked.lock().unwrap().push(bytes);
            }
            std::fs::write(&letter, sent.bytes).unwrap();
            letters.push(letter);
        }
        for (_, received) in open.run.receive(&letters)? {
            assert!(matches!(received, Received::New(_)), "{received:?}");
        }
        Ok(())
    }
}

/// The models of a result but for what single shards say, and what their shares by rows make of the prior.
fn bits(comparison: &Comparison) -> String {
    let mut models = serde_json::to_value(&comparison.models).unwrap();
    for model in models.as_array_mut().unwrap() {
        let model = model.as_object_mut().unwrap();
        assert!(model.contains_key("shards"));
        model.remove("shards");
        model["parts"].as_object_mut().unwrap().remove("log_alpha");
    }
    models.to_string()
}

fn waiting(run: &Run) -> Box<consilience::run::Waiting> {
    match run.coordinate(&Stop, &Silent) {
        Err(Error::Waiting(waiting)) => waiting,
        other => panic!("{other:?}"),
    }
}

fn fault<T: std::fmt::Debug>(result: Result<T>, part: &str) {
    let error = result.unwrap_err();
    assert!(error.to_string().contains(part), "{part}: {error}");
}

#[test]
fn masked_plain_and_threads_have_the_same_bits() {
    for (count, models) in [(3, LOGISTIC), (5, LOGISTIC), (3, GAUSSIAN), (4, WEIGHTED), (3, GENTLE)]
    {
        let mut sites = Sites::new(count, 1.0);
        let threads = sites.threads(models, "s*.csv");
        let masked = sites.ask(models, "masked", 1, true).unwrap();
        let masked = masked.coordinate(&sites, &Silent).unwrap();
        assert_eq!(bits(&masked), bits(&threads), "{count}");
        let alone = |model: &consilience::compare::ModelResult| {
            model.shards.iter().any(|shard| shard.agreement.is_some())
        };
        // Of priors that all rows settle, sites are not compared anywhere.
        let compared = threads.models.iter().all(alone);
        assert!(!masked.models.iter().any(alone) && compared == (models != GENTLE));
        assert_eq!(masked.warnings.iter().filter(|w| w.code == "sums-only").count(), 1);
        assert_eq!(masked.partition.rows, threads.partition.rows);
        // By plain answers of those who have never been asked before: their log would forbid it.
        let plain = sites.ask(models, "plain", 2, false).unwrap();
        let question = waiting(&plain).question;
        let first = sites.reply(&question, 0, |_| ());
        assert!(first.is_ok(), "columns are asked about in plain words, either way");
        sites.logs = Mutex::new(vec![Vec::new(); count]);
        sites.policy = Policy::trusting();
        let plain = plain.coordinate(&sites, &Silent).unwrap();
        assert_eq!(bits(&plain), bits(&threads));
        assert!(plain.warnings.iter().all(|w| w.code != "sums-only"));
    }
}

/// Sites that say nothing about fits of their own, which is what a policy says where it says nothing.
#[test]
fn priors_of_all_coefficients_need_no_fit_of_a_site() {
    for models in [
        GENTLE.to_string(),
        GENTLE.replace("jzs(wide)", "g-prior(n)"),
        GENTLE.replace("logistic", "probit"),
        GENTLE.replace("logistic", "poisson"),
    ] {
        let sites = Sites::new(3, 1.0);
        let run = sites.ask(&models, "run", 1, false).unwrap();
        let found = run.coordinate(&sites, &Silent).unwrap();
        assert_eq!(bits(&found), bits(&sites.threads(&models, "s*.csv")));
        let kinds: Vec<String> =
            sites.logs.lock().unwrap()[0].iter().flat_map(|entry| entry.asks.clone()).collect();
        assert!(kinds.contains(&"expand".to_string()) && !kinds.contains(&"locate".to_string()));
        // As exact as by the sites' own peaks.
        let few = sites.threads(&models.replace("schedule = \"gentle\"\n", ""), "s*.csv");
        for (gentle, few) in found.models.iter().zip(&few.models) {
            let off = gentle.log_evidence - few.log_evidence;
            assert!(off.value.abs() < 4.0 * off.se.unwrap(), "{}: {off:?}", gentle.name);
        }
        let hasty = models.replace("schedule = \"gentle\"\n", "");
        let run = sites.ask(&hasty, "hasty", 2, false).unwrap();
        fault(run.coordinate(&sites, &Silent), "schedule = \"gentle\"");
    }
}

/// What a site says of its design leaves it under masks too; what stays in plain words are facts about columns.
#[test]
fn only_facts_about_columns_are_told_by_single_sites() {
    let sites = Sites::new(3, 1.0);
    let run = sites.ask(LOGISTIC, "run", 1, true).unwrap();
    run.coordinate(&sites, &Silent).unwrap();
    let mut kinds = Vec::new();
    for letter in (1..).map(|round| sites.path(&format!("{round}-s1.answer"))) {
        if !letter.exists() {
            break;
        }
        let file = AnswerFile::parse(&std::fs::read(&letter).unwrap()).unwrap();
        for (k, kind) in file.header.asks.iter().enumerate() {
            assert_eq!(file.masked(k).is_none(), kind == "describe", "{kind}");
            kinds.push(kind.clone());
        }
    }
    for kind in ["describe", "survey", "locate", "weigh"] {
        assert!(kinds.iter().any(|k| k == kind), "{kind}: {kinds:?}");
    }
}

#[test]
fn a_masked_answer_alone_is_noise() {
    let mut sites = Sites::new(3, 1.0);
    let mut both = Vec::new();
    for random in [1, 2] {
        sites.logs = Mutex::new(vec![Vec::new(); 3]);
        let run = sites.ask(LOGISTIC, &format!("run{random}"), random, true).unwrap();
        run.coordinate(&sites, &Silent).unwrap();
        both.push(std::mem::take(&mut *sites.masked.lock().unwrap()));
    }
    assert_eq!(both[0].len(), both[1].len());
    let (mut counts, mut total) = ([0u64; 256], 0);
    for (one, other) in both[0].iter().zip(&both[1]) {
        assert_eq!(one.len(), other.len());
        let differ = |(a, b): (&[u8], &[u8])| a != b;
        assert!(one.chunks(16).zip(other.chunks(16)).all(differ));
        for byte in one.iter().chain(other) {
            counts[usize::from(*byte)] += 1;
            total += 1;
        }
    }
    assert!(total > 20_000, "{total}");
    let mean = f64::from(total) / 256.0;
    let chi2: f64 = counts.iter().map(|c| (*c as f64 - mean).powi(2) / mean).sum();
    // 255 ± 22.6 for noise.
    assert!((120.0..390.0).contains(&chi2), "{chi2}");
    // And in plain words.
    let told = explain(&sites.path("2-s0.answer")).unwrap();
    assert!(told.contains("masked numbers") && !told.contains("the log density at"), "{told}");
    let asked = sites.ask(LOGISTIC, "run1", 1, true).unwrap();
    let file = std::fs::read_dir(asked.folder().join("questions")).unwrap().next().unwrap();
    assert!(explain(&file.unwrap().path()).unwrap().contains("Sums only"));
}

#[test]
fn a_site_believes_nobody_about_the_others() {
    let sites = Sites::new(3, 1.0);
    let run = sites.ask(LOGISTIC, "run", 1, true).unwrap();
    let question = waiting(&run).question;
    let ask = |change: &dyn Fn(&mut Asked)| sites.reply(&question, 0, change);
    assert!(ask(&|_| ()).is_ok());
    fault(ask(&|asked| asked.keys = None), "--keys FILE");
    fault(ask(&|asked| asked.key = None), "--key FILE");
    let other: &'static Key = Box::leak(Box::new(Key::new([2; 32])));
    fault(ask(&|asked| asked.key = Some(other)), "not that of the secret key");
    let change = |name: &str, key: Option<String>| {
        let mut known = sites.public.clone();
        match key {
            Some(key) => known.insert(name.into(), key),
            None => known.remove(name),
        };
        sites.reply(&question, 0, |asked| asked.keys = Some(Box::leak(Box::new(known.clone()))))
    };
    fault(change("s2", Some(Key::new([9; 32]).public())), "another key of the site `s2`");
    fault(change("s1", None), "the site `s1` is not in the file of keys");
    // A coordinator who puts a site of their own in the place of another.
    let mut entries = sites.entries();
    entries[2].key = Some(Key::new([99; 32]).public());
    let text = format!("[data]\npath = \"data.csv\"\n{LOGISTIC}");
    let false_run = Run::for_sums(study(&text), &entries, &sites.path("false"), [5; 32]).unwrap();
    let question = waiting(&false_run).question;
    fault(sites.reply(&question, 0, |_| ()), "another key of the site `s2`");
}

#[test]
fn what_sums_cannot_do_is_refused_when_it_is_asked() {
    let sites = Sites::new(3, 1.0);
    let text = format!("[data]\npath = \"data.csv\"\n{LOGISTIC}");
    let make =
        |entries: &[SiteEntry]| Run::for_sums(study(&text), entries, &sites.path("none"), [1; 32]);
    fault(make(&sites.entries()[..2]), "hide nothing");
    let mut entries = sites.entries();
    entries[1].key = None;
    fault(make(&entries), "the key of `s1` is not known");
    entries[1].key = entries[0].key.clone();
    fault(make(&entries), "`s0` and `s1` have one name or one key");
    entries[1].key = Some("00".repeat(32));
    fault(make(&entries), "no key to share a secret with");
    let normal = LOGISTIC.replace("draws", "combine = \"normal\"\ndraws");
    fault(sites.ask(&normal, "none", 1, true), "combine = \"exact\"");
    let jump = "[select]\noutcome = \"y\"\nfamily = \"logistic\"\nmethod = \"reversible-jump\"\ncandidates = \"x + z\"\n";
    fault(sites.ask(jump, "none", 1, true), "method = \"search\"");
    let mut run = sites.ask(LOGISTIC, "run", 1, true).unwrap();
    let wish = Extras { leave_one_out: true, ..Extras::default() };
    fault(run.deliver(&wish), "only sums over all sites");
    fault(run.leave_out(&["s1".into()]), "hide nothing");
    // Gaussian models do without statistics by themselves.
    let gaussian = GAUSSIAN.replace("statistics = false\n", "");
    let run = sites.ask(&gaussian, "gaussian", 1, true).unwrap();
    assert!(!run.manifest().study.evidence.statistics);
    fault(sites.ask(GAUSSIAN, "gaussian", 1, false), "this run was begun with --sums");
}

#[test]
fn answers_of_another_round_or_run_are_no_terms_of_a_sum() {
    let sites = Sites::new(3, 1.0);
    let run = sites.ask(LOGISTIC, "run", 1, true).unwrap();
    run.coordinate(&sites, &Silent).unwrap();
    let mut rounds: Vec<PathBuf> = std::fs::read_dir(run.folder().join("questions"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    rounds.sort();
    let hash = |path: &PathBuf| {
        path.file_stem().unwrap().to_str().unwrap().split_once('-').unwrap().1.to_string()
    };
    let last = rounds.len() - 1;
    let answer =
        |round: usize| run.folder().join("answers").join(hash(&rounds[round])).join("s0.answer");
    std::fs::copy(answer(last - 1), answer(last)).unwrap();
    let open = waiting(&run);
    assert_eq!((open.round as usize, open.missing.as_slice()), (last + 1, &["s0".to_string()][..]));
    assert!(open.refused[0].contains("it answers another question"), "{:?}", open.refused);
    // Of another run of the same study, as a letter and as a file in its place.
    let other = sites.ask(LOGISTIC, "other", 2, true).unwrap();
    waiting(&other);
    let letter = sites.path("1-s0.answer");
    let received = other.receive(&[letter]).unwrap();
    assert!(matches!(&received[0].1, Received::Refused(_)), "{received:?}");
}

#[test]
fn sums_over_other_sites_must_not_tell_one() {
    let mut sites = Sites::new(5, 1.0);
    let mut run = sites.ask(LOGISTIC, "run", 1, true).unwrap();
    run.coordinate(&sites, &Silent).unwrap();
    // With one site less, the difference of two sums would be its answer.
    run.leave_out(&["s4".into()]).unwrap();
    fault(run.coordinate(&sites, &Silent), "the answers of `s4` alone could be computed");
    // With two less it is the sum of both.
    run.leave_out(&["s3".into()]).unwrap();
    let fewer = run.coordinate(&sites, &Silent).unwrap();
    assert_eq!(bits(&fewer), bits(&sites.threads(LOGISTIC, "s[012].csv")));
    // The plain answers of a study that was answered in sums would tell all of it.
    let plain =
        sites.ask(&LOGISTIC.replace("draws", "statistics = false\ndraws"), "plain", 2, false);
    let plain = plain.unwrap();
    sites.policy.allow = vec!["locate".into()];
    fault(plain.coordinate(&sites, &Silent), "answered before in a run for sums only");
    sites.logs = Mutex::new(vec![Vec::new(); 5]);
    sites.policy.sums_only = true;
    fault(plain.coordinate(&sites, &Silent), "sums_only = true");
    // Unless the site says that it may be.
    let mut again = sites.ask(LOGISTIC, "again", 3, true).unwrap();
    again.coordinate(&sites, &Silent).unwrap();
    again.leave_out(&["s4".into()]).unwrap();
    sites.policy.allow_dropout = true;
    let fewer = again.coordinate(&sites, &Silent).unwrap();
    assert_eq!(bits(&fewer), bits(&sites.threads(LOGISTIC, "s[0123].csv")));
    // The same question with other rows would be under the same masks.
    let last = waiting_file(&again);
    std::fs::copy(sites.path("s1.csv"), sites.path("s0.csv")).unwrap();
    sites.policy.min_rows = 1;
    fault(sites.reply(&last, 0, |_| ()), "under the same masks");
}

/// The last question file of a run.
fn waiting_file(run: &Run) -> PathBuf {
    let files = std::fs::read_dir(run.folder().join("questions")).unwrap();
    files.map(|file| file.unwrap().path()).max().unwrap()
}

#[test]
fn numbers_that_do_not_fit_name_model_and_parameter() {
    let mut sites = Sites::new(3, 1e12);
    sites.policy = Policy::trusting();
    let models = format!("[prior]\ndefault = \"normal(0, 1)\"\n{LOGISTIC}");
    let run = sites.ask(&models, "run", 1, true).unwrap();
    let error = run.coordinate(&sites, &Silent).unwrap_err().to_string();
    assert!(error.contains("`x`") && error.contains("scale(x)"), "{error}");
    assert!(error.contains("y ~ x"), "{error}");
}

#[test]
fn a_choice_among_models_and_other_priors_run_under_masks() {
    for (method, family, outcome) in
        [("search", "logistic", "y"), ("enumerate", "logistic", "y"), ("auto", "gaussian", "z")]
    {
        let mut sites = Sites::new(3, 1.0);
        let candidate = if outcome == "y" { "z" } else { "y" };
        let models = format!(
            "[evidence]\ndraws = 300\nstatistics = false\n[select]\noutcome = \"{outcome}\"\nfamily = \"{family}\"\nmethod = \"{method}\"\ncandidates = \"x + scale({candidate})\"\n"
        );
        let path = sites.path("s*.csv");
        let text = format!("[data]\npath = {path:?}\n[split]\nby = \"file\"\n{models}");
        let threads = Plan::new(study(&text), 2, &Silent).unwrap().select(&Silent).unwrap();
        sites.policy = Policy::trusting();
        let run = sites.ask(&models, "run", 1, true).unwrap();
        let masked = run.select(&[], &sites, &Silent).unwrap();
        assert_eq!(masked.inclusion, threads.inclusion, "{method} {family}");
        assert_eq!(masked.log_normaliser, threads.log_normaliser);
        assert!(masked.warnings.iter().any(|w| w.code == "sums-only"));
    }
    let sites = Sites::new(3, 1.0);
    let mut run = sites.ask(LOGISTIC, "run", 1, true).unwrap();
    let wish = Extras { prior_scales: vec![0.5, 2.0], posterior: true, ..Extras::default() };
    run.deliver(&wish).unwrap();
    let masked = run.coordinate(&sites, &Silent).unwrap();
    let path = sites.path("s*.csv");
    let text = format!("[data]\npath = {path:?}\n[split]\nby = \"file\"\n{LOGISTIC}");
    let mut plan = Plan::new(study(&text), 2, &Silent).unwrap();
    plan.deliver(&wish).unwrap();
    let threads = plan.run(&Silent).unwrap();
    assert_eq!(bits(&masked), bits(&threads));
    let scaled = |comparison: &Comparison| {
        let found = comparison.prior_sensitivity.as_ref().unwrap();
        assert_eq!(found.len(), 3);
        let models = found.iter().flat_map(|s| &s.models);
        models.map(|m| (m.name.clone(), m.log_evidence)).collect::<Vec<_>>()
    };
    assert_eq!(scaled(&masked), scaled(&threads));
}
