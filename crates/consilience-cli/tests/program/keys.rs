//! Keys of sites as typed: those that say nothing are refused, those that others can read are warned of.

use crate::{Folder, STUDY, data};

#[test]
fn keys_files_are_looked_at() {
    let folder = Folder::with(STUDY, &data());
    for name in ["leeds", "york"] {
        assert_eq!(folder.run(&["keygen", name]).code, Some(0));
    }
    let ask = ["ask", "s.toml", "--run", "r", "--sites", "leeds,york", "--keys", "keys.toml"];
    let keys = |leeds: &str, york: &str| {
        let text = format!("leeds = \"{}\"\nyork = \"{}\"\n", leeds.trim(), york.trim());
        folder.write("keys.toml", text);
    };
    let (leeds, york) = (folder.read("leeds.pub"), folder.read("york.pub"));
    keys(&leeds, &leeds);
    folder.run(&ask).failed("one key", 2, &["key of `york` is that of `leeds` too"]);
    keys(&"0".repeat(64), &york);
    folder.run(&ask).failed("no key", 2, &["key of `leeds`", "anybody can sign", "keygen"]);
    assert!(!folder.path("r/manifest.json").exists());
    keys(&leeds, &york);
    assert_eq!(folder.run(&ask).code, Some(0));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let question = std::fs::read_dir(folder.path("r/questions")).expect("a folder").next();
        let question = question.expect("a question").expect("a file").path();
        let question = question.to_str().expect("UTF-8");
        let answer =
            ["answer", question, "--data", "d.csv", "--site", "leeds", "--key", "leeds.key"];
        for (mode, part) in [(0o600, ""), (0o640, "its group may"), (0o604, "everybody on this")] {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(folder.path("leeds.key"), permissions).expect("its mode");
            let run = folder.run(&answer);
            assert_eq!(run.code, Some(0), "{run:?}");
            assert_eq!(run.err.contains("warning: leeds.key: "), !part.is_empty(), "{run:?}");
            assert!(run.err.contains(part), "{run:?}");
        }
    }
}
