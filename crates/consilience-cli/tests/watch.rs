//! Sites and a coordinator that watch one folder: nobody carries files.

#![cfg(unix)]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Nothing here takes a tenth of that; what does hangs.
const PATIENCE: Duration = Duration::from_secs(180);

const SITES: [&str; 3] = ["leeds", "york", "hull"];

const MODELS: &str = "\
[[model]]
formula = \"type ~ scale(glu)\"
family = \"logistic\"
[[model]]
formula = \"type ~ scale(glu) + scale(bmi)\"
family = \"logistic\"
[evidence]
schedule = \"gentle\"
draws = 500
";

/// A folder with three sites' data and a study.
struct Trial {
    folder: tempfile::TempDir,
}

/// A program that runs; it does not outlive its test.
struct Running(Option<Child>);

impl Running {
    fn wait(mut self) -> Output {
        let begun = Instant::now();
        loop {
            let child = self.0.as_mut().expect("it is waited for once");
            if child.try_wait().expect("it is ours").is_some() {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "a program does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        self.0.take().expect("it is waited for once").wait_with_output().expect("it ends")
    }

    fn signal(&self, name: &str) {
        let id = self.0.as_ref().expect("it runs").id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn text(output: &Output) -> (Option<i32>, String, String) {
    let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), words(&output.stdout), words(&output.stderr))
}

/// Waits until something is so.
fn until(what: &str, so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < PATIENCE, "waited for {what} in vain");
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl Trial {
    fn new() -> Trial {
        let trial = Trial { folder: tempfile::tempdir().unwrap() };
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/pima_tr.csv");
        let data = std::fs::read_to_string(data).unwrap();
        let (head, rows) = data.split_once('\n').unwrap();
        for (i, site) in SITES.iter().enumerate() {
            let rows = rows.lines().skip(i).step_by(3).map(|row| format!("{row}\n"));
            trial.write(&format!("{site}.csv"), &format!("{head}\n{}", rows.collect::<String>()));
            trial.write(&format!("{site}.toml"), &format!("log = \"{site}.log\"\n"));
        }
        trial.write("s.toml", &format!("[data]\npath = \"none.csv\"\n{MODELS}"));
        std::fs::create_dir(trial.path("shared")).unwrap();
        trial.ok(&["ask", "s.toml", "--run", "r", "--sites", "leeds,york,hull"]);
        trial
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn start(&self, arguments: &[&str]) -> Running {
        let child = Command::new(env!("CARGO_BIN_EXE_consilience"))
            .args(arguments)
            .current_dir(self.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        Running(Some(child.expect("the program starts")))
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        text(&self.start(arguments).wait())
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let (code, out, err) = self.run(arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {out}\n{err}");
        out
    }

    fn site(&self, site: &str, more: &[&str]) -> Running {
        let (data, policy) = (format!("{site}.csv"), format!("{site}.toml"));
        let base = ["answer", "--watch", "shared", "--site", site, "--data", &data];
        let policy = ["--policy", policy.as_str(), "--every", "0.05s"];
        self.start(&[&base[..], &policy, more].concat())
    }

    fn coordinator(&self, more: &[&str]) -> Running {
        let base = ["combine", "r", "--watch", "shared", "--every", "0.05s", "--json"];
        self.start(&[&base[..], more].concat())
    }

    /// The files in the shared folder whose names begin and end so.
    fn shared(&self, begin: &str, end: &str) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.path("shared")).unwrap().map(|e| e.unwrap().path());
        let fits = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with(begin) && name.ends_with(end)
        };
        let mut files: Vec<PathBuf> = files.filter(fits).collect();
        files.sort();
        files
    }

    fn models(&self) -> Value {
        models(&std::fs::read(self.path("r/result.json")).unwrap())
    }

    /// What the same study says of the same files in one place.
    fn pooled(&self, sites: &[&str]) -> Value {
        let paths: Vec<String> = sites.iter().map(|s| format!("\"{s}.csv\"")).collect();
        let study =
            format!("[data]\npath = [{}]\n{MODELS}\n[split]\nby = \"file\"\n", paths.join(", "));
        self.write("pooled.toml", &study);
        models(self.ok(&["compare", "pooled.toml", "--json", "--quiet"]).as_bytes())
    }
}

fn models(json: &[u8]) -> Value {
    serde_json::from_slice::<Value>(json).unwrap()["models"].clone()
}

#[test]
fn three_sites_at_once_and_nobody_types() {
    let trial = Trial::new();
    let sites = SITES.map(|site| trial.site(site, &[]));
    let (code, out, err) = text(&trial.coordinator(&["--timeout", "2m"]).wait());
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("round 1 (describe) is asked of leeds, york, hull"), "{err}");
    assert_eq!(models(out.as_bytes()), trial.pooled(&SITES));
    let asked = trial.shared("0", ".question").len();
    assert!(asked > 2);
    for (name, site) in SITES.iter().zip(sites) {
        let (code, out, err) = text(&site.wait());
        assert_eq!(code, Some(0), "{out}\n{err}");
        assert!(out.contains(&format!("the run is finished: {asked} questions answered")), "{out}");
        // A line for each question and one for the end; the log has each question once.
        assert_eq!(out.lines().count(), asked + 1, "{out}");
        let log = std::fs::read_to_string(trial.path(&format!("{name}.log"))).unwrap();
        assert_eq!(log.lines().count(), asked, "{log}");
        assert_eq!(trial.shared(name, ".answer").len(), asked);
    }
    // Who comes after the end answers nothing.
    let (code, out, _) = text(&trial.site("york", &["--out", "elsewhere"]).wait());
    assert_eq!((code, out.as_str()), (Some(0), "the run is finished: 0 questions answered\n"));
    assert!(std::fs::read_dir(trial.path("elsewhere")).unwrap().next().is_none());
    // Nothing is asked anew, and what ended stays so.
    trial.ok(&["combine", "r", "--watch", "shared", "--timeout", "1s"]);
    assert_eq!(trial.shared("", ".ended").len(), 1);
    // Another run of the same study in the same folder goes another way; what is of no use to it is not refused.
    trial.ok(&["ask", "s.toml", "--run", "again", "--sites", "leeds,york,hull"]);
    let again = ["combine", "again", "--watch", "shared", "--every", "0.05s", "--without", "hull"];
    let again = trial.start(&again);
    until("a question", || trial.shared("", ".ended").is_empty());
    let sites = ["leeds", "york"].map(|site| trial.site(site, &[]));
    let (code, _, err) = text(&again.wait());
    assert_eq!(code, Some(0), "{err}");
    assert!(!err.contains("refused"), "{err}");
    let result = std::fs::read(trial.path("again/result.json")).unwrap();
    assert_eq!(models(&result), trial.pooled(&["leeds", "york"]));
    sites.into_iter().for_each(|site| assert_eq!(text(&site.wait()).0, Some(0)));
}

#[test]
fn a_site_that_is_late_is_named_and_then_waited_for() {
    let trial = Trial::new();
    let sites = ["leeds", "york"].map(|site| trial.site(site, &[]));
    let (code, _, err) = text(&trial.coordinator(&["--timeout", "1s"]).wait());
    assert_eq!(code, Some(4), "{err}");
    assert!(err.contains("sites have answered; missing: "), "{err}");
    let named = err.lines().find(|line| line.contains("missing: ")).unwrap();
    assert!(named.ends_with("hull"), "{err}");
    until("two answers", || trial.shared("", ".answer").len() == 2);
    let coordinator = trial.coordinator(&[]);
    let hull = trial.site("hull", &[]);
    let (code, _, err) = text(&coordinator.wait());
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(trial.models(), trial.pooled(&SITES));
    for site in sites.into_iter().chain([hull]) {
        assert_eq!(text(&site.wait()).0, Some(0));
    }
}

#[test]
fn a_site_that_is_left_out_is_not_waited_for() {
    let trial = Trial::new();
    // Sites write elsewhere than they read.
    std::fs::create_dir(trial.path("back")).unwrap();
    let sites = ["leeds", "york"].map(|site| trial.site(site, &["--out", "back"]));
    let (code, out, err) = text(&trial.coordinator(&["back", "--without", "hull"]).wait());
    assert!(trial.shared("", ".answer").is_empty());
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(models(out.as_bytes()), trial.pooled(&["leeds", "york"]));
    sites.into_iter().for_each(|site| assert_eq!(text(&site.wait()).0, Some(0)));
}

#[test]
fn a_site_is_killed_and_started_again() {
    let trial = Trial::new();
    let others = ["york", "hull"].map(|site| trial.site(site, &[]));
    let coordinator = trial.coordinator(&[]);
    for answers in 1..4 {
        let leeds = trial.site("leeds", &[]);
        until("an answer of leeds", || trial.shared("leeds", ".answer").len() >= answers);
        leeds.signal("KILL");
        assert_eq!(text(&leeds.wait()).0, None);
    }
    let before = trial.shared("leeds", ".answer").len();
    let (code, out, err) = text(&trial.site("leeds", &[]).wait());
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(out.matches(": answered before, ").count(), before, "{out}");
    assert_eq!(text(&coordinator.wait()).0, Some(0));
    assert_eq!(trial.models(), trial.pooled(&SITES));
    others.into_iter().for_each(|site| assert_eq!(text(&site.wait()).0, Some(0)));
    // Each question has one answer, whatever was killed when.
    assert_eq!(trial.shared("leeds", ".answer").len(), trial.shared("0", ".question").len());
}

#[test]
fn other_files_in_the_folder_are_no_matter() {
    let trial = Trial::new();
    // Another study at the same sites, one at other sites, and files that are damaged or nobody's.
    trial.write("other.toml", "[data]\npath = \"none.csv\"\n[[model]]\nformula = \"type ~ age\"\nfamily = \"logistic\"\n[evidence]\nschedule = \"gentle\"\n");
    trial.ok(&["ask", "other.toml", "--run", "other", "--sites", "leeds,york,hull"]);
    trial.ok(&["ask", "other.toml", "--run", "third", "--sites", "bath"]);
    let question = |run: &str| {
        let mut files = std::fs::read_dir(trial.path(run).join("questions")).unwrap();
        files.next().unwrap().unwrap().path()
    };
    let put = |run: &str| {
        let from = question(run);
        std::fs::copy(&from, trial.path("shared").join(from.file_name().unwrap())).unwrap();
    };
    put("third");
    trial.write("shared/notes.txt", "hello");
    trial.write("shared/damaged.question", "consilience question 4\n{");
    trial.write("shared/damaged.answer", "no answer");
    trial.write("shared/x.ended", "{}");
    std::fs::create_dir(trial.path("shared/folder.question")).unwrap();
    // The other run's first answers are there too.
    put("other");
    let sites = SITES.map(|site| trial.site(site, &[]));
    let coordinator = trial.coordinator(&["--timeout", "2m"]);
    let other = ["combine", "other", "--watch", "shared", "--every", "0.05s", "--quiet"];
    let other = trial.start(&other);
    let (code, _, err) = text(&coordinator.wait());
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(err.matches("damaged.answer: this is no answer file").count(), 1, "{err}");
    assert!(!err.contains("another study"), "{err}");
    assert_eq!(trial.models(), trial.pooled(&SITES));
    let (code, _, err) = text(&other.wait());
    assert_eq!(code, Some(0), "{err}");
    for site in sites {
        // Each waits until both runs that ask it are finished.
        let (code, out, err) = text(&site.wait());
        assert_eq!(code, Some(0), "{out}\n{err}");
        assert!(out.contains("the run is finished: ") && out.contains(", 1 damaged"), "{out}");
        assert_eq!(err.matches("passed over; it is not for").count(), 1, "{err}");
        assert_eq!(err.matches("damaged.question: ").count(), 1, "{err}");
    }
    assert_eq!(trial.shared("", ".ended").len(), 3);
}

#[test]
fn a_question_that_is_half_copied_is_tried_again() {
    let trial = Trial::new();
    let from =
        std::fs::read_dir(trial.path("r/questions")).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read(&from).unwrap();
    std::fs::write(trial.path("shared/copy.question"), &whole[..whole.len() / 2]).unwrap();
    let once = text(&trial.site("leeds", &["--once"]).wait());
    assert_eq!(once.0, Some(2), "{once:?}");
    assert!(once.2.contains("cut short") && once.1.contains("0 questions answered, 1 damaged"));
    let site = trial.site("leeds", &[]);
    std::fs::write(trial.path("shared/copy.question"), &whole).unwrap();
    until("the answer", || trial.shared("leeds", ".answer").len() == 1);
    // The same question under its own name is not another.
    std::fs::write(trial.path("shared").join(from.file_name().unwrap()), &whole).unwrap();
    site.signal("INT");
    let (code, out, _) = text(&site.wait());
    assert_eq!(code, Some(4));
    assert!(out.ends_with("ended by Ctrl-C: 1 question answered\n"), "{out}");
    let (code, out, _) = text(&trial.site("leeds", &["--once"]).wait());
    assert_eq!((code, out.matches("answered before").count()), (Some(0), 1), "{out}");
    assert_eq!(std::fs::read_to_string(trial.path("leeds.log")).unwrap().lines().count(), 1);
}

#[test]
fn what_the_policy_forbids_is_refused_once() {
    let trial = Trial::new();
    trial.write("hull.toml", "forbid = [\"expand\"]\nlog = \"hull.log\"\n");
    let sites = SITES.map(|site| trial.site(site, &["--for", "150s"]));
    let coordinator = trial.coordinator(&[]);
    for site in ["leeds-0003", "york-0003"] {
        until("two answers", || trial.shared(site, ".answer").len() == 1);
    }
    // Killed like anything else, it goes on where it was.
    drop(coordinator);
    let (code, _, err) = text(&trial.coordinator(&["--timeout", "2s"]).wait());
    assert_eq!(code, Some(4), "{err}");
    assert!(err.contains("round 3 (expand): 2 of 3 sites have answered; missing: hull"), "{err}");
    assert!(err.contains("--without SITE"), "{err}");
    sites.iter().for_each(|site| site.signal("INT"));
    let codes = sites.map(|site| text(&site.wait()));
    assert_eq!(codes.each_ref().map(|(code, ..)| *code), [Some(4), Some(4), Some(2)]);
    let (_, out, err) = &codes[2];
    assert!(out.contains("2 questions answered, 1 refused"), "{out}");
    assert_eq!(err.matches("round 3 (expand): refused: the policy forbids it").count(), 1, "{err}");
}

#[test]
fn a_run_that_fails_is_known_to_those_who_watch() {
    let trial = Trial::new();
    // A third class of the outcome, which only the coordinator sees together with the others.
    let rows = std::fs::read_to_string(trial.path("hull.csv")).unwrap();
    let maybe = rows.replace("Yes", "Maybe");
    assert_ne!(rows, maybe);
    trial.write("hull.csv", &maybe);
    let sites = SITES.map(|site| trial.site(site, &["--for", "150s"]));
    let (code, _, err) = text(&trial.coordinator(&[]).wait());
    assert_eq!(code, Some(2), "{err}");
    for site in sites {
        let (code, out, _) = text(&site.wait());
        assert_eq!(code, Some(3), "{out}");
        assert!(out.contains("the run has failed at the coordinator"), "{out}");
    }
}

#[test]
fn folders_among_the_answers_are_looked_into_while_it_waits() {
    let trial = Trial::new();
    std::fs::create_dir(trial.path("mail")).unwrap();
    // Nothing can arrive where nobody looks: it does not wait.
    let (code, _, err) = trial.run(&["combine", "r", "--wait"]);
    assert_eq!(code, Some(4), "{err}");
    assert!(err.contains("missing: leeds, york, hull"), "{err}");
    // Here the questions are seen where they are made.
    let combine = trial.start(&["combine", "r", "mail", "--wait", "--timeout", "2m"]);
    let sites = SITES.map(|site| {
        let (data, policy) = (format!("{site}.csv"), format!("{site}.toml"));
        trial.start(&[
            "answer",
            "--watch",
            "r/questions",
            "--out",
            "mail",
            "--site",
            site,
            "--data",
            &data,
            "--policy",
            &policy,
            "--every",
            "0.05s",
            "--for",
            "10m",
        ])
    });
    let (code, _, err) = text(&combine.wait());
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(trial.models(), trial.pooled(&SITES));
    // Nobody told these that it is over.
    for site in sites {
        site.signal("INT");
        assert_eq!(text(&site.wait()).0, Some(4));
    }
}

#[test]
fn what_cannot_be_watched_is_said_at_once() {
    let trial = Trial::new();
    let leeds = ["--site", "leeds", "--data", "leeds.csv"];
    let wrong = |arguments: &[&str], part: &str| {
        let (code, out, err) = trial.run(arguments);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?}: {err}");
        assert!(err.contains(part), "{arguments:?}: {err}");
    };
    wrong(&[&["answer"], &leeds[..]].concat(), "<QUESTION>");
    wrong(&[&["answer", "q", "--watch", "shared"], &leeds[..]].concat(), "cannot be used with");
    wrong(&[&["answer", "q", "--for", "1h"], &leeds[..]].concat(), "are for --watch DIR");
    wrong(&[&["answer", "q", "--every", "1s"], &leeds[..]].concat(), "are for --watch DIR");
    wrong(&[&["answer", "--watch", "none"], &leeds[..]].concat(), "no such folder to watch");
    let policy = ["answer", "--watch", "shared", "--policy", "none.toml"];
    let (code, _, err) = trial.run(&[&policy, &leeds[..]].concat());
    assert_eq!(code, Some(3), "{err}");
    wrong(&["answer", "--watch", "shared", "--site", "a b", "--data", "x"], "a site's name");
    wrong(&["answer", "--watch", "shared", "--for", "soon"], "30s, 5m, 2h or 3d");
    wrong(&["combine", "r", "--timeout", "1s"], "--wait or --watch");
    wrong(&["combine", "r", "--watch", "none"], "no such folder to watch");
    trial.write("here.toml", &format!("[data]\npath = \"leeds.csv\"\n{MODELS}"));
    trial.ok(&["split", "here.toml", "--run", "here"]);
    wrong(&["combine", "here", "--watch", "shared"], "--watch is for runs of sites");
    let (code, _, err) = trial.run(&["combine", "here", "--wait", "--timeout", "0.3s"]);
    assert_eq!(code, Some(4), "{err}");
    assert!(err.contains("no more is waited for: 0.3s (--timeout)"), "{err}");
}
