//! Chromium, driven by its DevTools protocol over two pipes: messages are JSON, each with a NUL behind it.

use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The program, where it can be had.
pub fn chromium() -> Option<PathBuf> {
    let search = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&search)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|path| path.is_file())
}

/// A browser that goes away with this value.
pub struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    last: u64,
    /// Events that came while an answer was awaited.
    events: Vec<Value>,
}

/// A page of it.
pub struct Tab {
    session: String,
}

impl Browser {
    /// Starts one with a new profile in this folder.
    pub fn start(program: &Path, folder: &Path) -> Browser {
        let (input, output) = (folder.join("to"), folder.join("from"));
        for pipe in [&input, &output] {
            assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
        }
        // A shell gives it the pipes as its files 3 and 4, which is where it looks for them.
        let script = "exec \"$0\" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
            --disable-background-networking --disable-component-update --disable-sync --disable-default-apps \
            --disable-extensions --disable-features=Translate,OptimizationHints --hide-scrollbars \
            --user-data-dir=\"$1/profile\" --remote-debugging-pipe about:blank 3<\"$1/to\" 4>\"$1/from\"";
        let child = Command::new("sh")
            .args(["-c", script])
            .arg(program)
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = OpenOptions::new().write(true).open(&input).unwrap();
        let from = BufReader::new(File::open(&output).unwrap());
        Browser { child, to, from, last: 0, events: Vec::new() }
    }

    fn receive(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser has gone");
        serde_json::from_slice(&bytes).unwrap()
    }

    fn ask(&mut self, session: Option<&str>, method: &str, what: Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": what});
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).unwrap();
        loop {
            let answer = self.receive();
            if answer["id"] == json!(self.last) {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    /// An empty page of this size and with these colours.
    pub fn tab(&mut self, width: u32, dark: bool) -> Tab {
        let target =
            self.ask(None, "Target.createTarget", json!({"url": "about:blank"}))["targetId"]
                .clone();
        let answer =
            self.ask(None, "Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        let session = answer["sessionId"].as_str().unwrap().to_string();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.ask(Some(&session), &format!("{domain}.enable"), json!({}));
        }
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.ask(Some(&session), "Emulation.setDeviceMetricsOverride", size);
        let colours = json!({"features": [{"name": "prefers-color-scheme", "value": if dark { "dark" } else { "light" }}]});
        self.ask(Some(&session), "Emulation.setEmulatedMedia", colours);
        Tab { session }
    }

    /// Opens a file; what the page wrote to the console, and what it asked the network for.
    pub fn open(&mut self, tab: &Tab, page: &Path) -> Vec<String> {
        self.events.clear();
        let address = format!("file://{}", page.display());
        self.ask(Some(&tab.session), "Page.navigate", json!({"url": address}));
        while !self.events.iter().any(|e| e["method"] == "Page.loadEventFired") {
            let event = self.receive();
            self.events.push(event);
        }
        // One question more, so that what the page did while it was loaded has come.
        self.evaluate(tab, "1");
        let mut found = Vec::new();
        for event in self.events.drain(..) {
            let what = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Network.requestWillBeSent" => {
                    let asked = what["request"]["url"].as_str().unwrap_or_default();
                    if asked != address && !asked.starts_with("data:") {
                        found.push(format!("a request for {asked}"));
                    }
                }
                "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded" => {
                    found.push(format!("on the console: {what}"));
                }
                _ => {}
            }
        }
        found
    }

    /// What a script finds on the page.
    pub fn evaluate(&mut self, tab: &Tab, script: &str) -> Value {
        let what = json!({"expression": script, "returnByValue": true});
        let answer = self.ask(Some(&tab.session), "Runtime.evaluate", what);
        assert!(answer["exceptionDetails"].is_null(), "{}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// A picture of the whole page, as text in base 64.
    pub fn picture(&mut self, tab: &Tab) -> String {
        let what = json!({"format": "png", "captureBeyondViewport": true});
        self.ask(Some(&tab.session), "Page.captureScreenshot", what)["data"]
            .as_str()
            .unwrap()
            .to_string()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The shell has become the browser, whose other processes end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
