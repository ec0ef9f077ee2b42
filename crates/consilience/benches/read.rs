//! How fast files of the shape of the UCI HIGGS data set are read: 29 columns of text such as
//! `8.692932128906250000e-01`, plain and compressed, parsed and from their converted copies; and the same
//! rows as Parquet. `cargo bench --workspace --bench read -- ROWS` (a million unless told)

use consilience::data::Table;
use consilience::data::read::{Reader, TextFormat, Wanted};
use consilience::simulate::{self, BLOCK, Format, Simulated, higgs};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A number as C prints it with `%.18e`: an exponent of two digits.
fn spelled(value: f32) -> String {
    let text = format!("{value:.18e}");
    let (digits, exponent) = text.split_once('e').expect("it has an exponent");
    let exponent: i32 = exponent.parse().expect("a number");
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

fn write_text(out: &mut dyn Write, rows: usize) {
    for b in 0..rows.div_ceil(BLOCK) {
        let block = higgs::block(1, b as u64, rows - b * BLOCK);
        for row in 0..block[0].len() {
            let line: Vec<String> = block.iter().map(|column| spelled(column[row])).collect();
            writeln!(out, "{}", line.join(",")).expect("written");
        }
    }
}

/// Seconds of CPU that the process has taken, where the system says so.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(f64::NAN);
    (ticks(11) + ticks(12)) / 100.0
}

/// Reads three times and shows the fastest.
fn show(
    what: &str,
    file: &Path,
    threads: usize,
    bytes: f64,
    cache: Option<&Path>,
    anew: bool,
) -> Table {
    let format = TextFormat {
        columns: Some(higgs::COLUMNS.map(String::from).into()),
        ..TextFormat::default()
    };
    let reader = Reader { cache, ..Reader::new(&format) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    let mut best = (f64::INFINITY, 0.0);
    let mut table = Table::default();
    for _ in 0..3 {
        if let (true, Some(cache)) = (anew, cache) {
            let _ = std::fs::remove_dir_all(cache);
        }
        let (start, before) = (Instant::now(), cpu());
        let files = [file.to_path_buf()];
        table = pool.install(|| reader.table(&files, &Wanted::All)).expect("a table").table;
        best = if start.elapsed().as_secs_f64() < best.0 {
            (start.elapsed().as_secs_f64(), cpu() - before)
        } else {
            best
        };
    }
    let (wall, cpu) = best;
    println!("{what:<34} {threads:>7} {wall:>7.2} {cpu:>7.2} {:>9.0}", bytes / 1e6 / wall);
    table
}

fn main() {
    let rows = std::env::args().find_map(|a| a.parse().ok()).unwrap_or(1_000_000);
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let (plain, gzip, parquet) = (path("h.csv"), path("h.csv.gz"), path("h.parquet"));
    write_text(&mut BufWriter::new(File::create(&plain).expect("a file")), rows);
    let text = std::fs::read(&plain).expect("it was written");
    let mut encoder = GzEncoder::new(File::create(&gzip).expect("a file"), Compression::default());
    encoder.write_all(&text).and_then(|()| encoder.finish().map(drop)).expect("written");
    let out = File::create(&parquet).expect("a file");
    let none = &mut |_| {};
    simulate::write(out, Format::Parquet, Simulated::Higgs, rows as u64, 1, none).expect("written");
    let bytes = text.len() as f64;
    drop(text);

    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let cache = path("cache");
    println!("{rows} rows, {:.0} MB of text; best of three", bytes / 1e6);
    println!("{:<34} {:>7} {:>7} {:>7} {:>9}", "", "threads", "wall-s", "CPU-s", "MB text/s");
    let expected = show("text", &plain, 1, bytes, None, false);
    let check = |table: Table| {
        let same = |name: &String| table.column(name).ok() == expected.column(name).ok();
        assert!(table.names().iter().all(same), "the same table");
    };
    check(show("text", &plain, all, bytes, None, false));
    check(show("text.gz", &gzip, 1, bytes, None, false));
    check(show("text.gz", &gzip, all, bytes, None, false));
    check(show("text, copy made", &plain, all, bytes, Some(&cache), true));
    check(show("text, copy used", &plain, all, bytes, Some(&cache), false));
    check(show("text.gz, copy made", &gzip, all, bytes, Some(&cache), true));
    check(show("text.gz, copy used", &gzip, all, bytes, Some(&cache), false));
    check(show("Parquet", &parquet, all, bytes, None, false));
}
