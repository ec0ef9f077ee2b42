//! Converted copies of large text files.

use super::*;

#[test]
fn a_large_text_file_is_converted_once_and_nobody_can_tell() {
    let folder = Folder::empty();
    // More than 16 MiB of text.
    let run = folder.run(&["simulate", "higgs", "--rows", "70000", "--out", "h.csv"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let study = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/higgs.toml");
    let study = study.to_str().unwrap();
    let compare = |more: &[&str]| {
        let all = ["compare", study, "--data", "h.csv", "--shards", "3", "--json", "-q"];
        let run = folder.run(&[&all, more].concat());
        assert_eq!(run.code, Some(0), "{run:?}");
        let mut json: Value = serde_json::from_str(&run.out).expect("JSON");
        json["seconds"] = Value::Null;
        (json, run.err)
    };
    let copies = || {
        let entries = std::fs::read_dir(folder.path("cache")).into_iter().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let plain = compare(&["--no-cache"]);
    assert_eq!(plain.1, "");
    assert_eq!(compare(&["--cache", "cache"]), plain);
    let made = copies();
    assert_eq!(made.len(), 1);
    assert_eq!(compare(&["--cache", "cache"]), plain);
    assert_eq!(copies(), made);
    assert_eq!(compare(&["--cache", "cache", "--memory", "256MiB"]).0, plain.0);

    // The usual folder is where the system's conventions say.
    let check = |name: &str, value: PathBuf| {
        let mut command = folder.command(&["check", study, "--data", "h.csv", "--shards", "3"]);
        let out = command.env_remove("XDG_CACHE_HOME").env(name, value).output().unwrap();
        assert!(out.status.success());
        String::from_utf8(out.stderr).unwrap()
    };
    assert_eq!(check("XDG_CACHE_HOME", folder.path("xdg")), "");
    assert_eq!(std::fs::read_dir(folder.path("xdg/consilience")).unwrap().count(), 1);
    assert_eq!(check("HOME", folder.path("home")), "");
    assert_eq!(std::fs::read_dir(folder.path("home/.cache/consilience")).unwrap().count(), 1);

    // Where nothing can be written, that is worth a note and no more.
    let (json, err) = compare(&["--cache", "h.csv/cache"]);
    assert_eq!(json, plain.0);
    for word in ["note: no converted copy of h.csv is kept", "h.csv/cache", "--no-cache"] {
        assert!(err.contains(word), "{err}");
    }
    assert_eq!(err.lines().count(), 1, "{err}");
    let both = folder.run(&["check", study, "--cache", "c", "--no-cache"]);
    assert_eq!(both.code, Some(2), "{both:?}");
}
