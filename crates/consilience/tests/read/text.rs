//! Text files: delimiters, quotes, comments, and what can be wrong with them.

use crate::{Dir, gzip, names, read, refused, values};
use consilience::Error;
use consilience::data::read::{ReadTable, TextFormat, Wanted, column_names, read_table};

fn read_text(name: &str, content: impl AsRef<[u8]>) -> Result<ReadTable, Error> {
    let dir = Dir::new();
    read(&[dir.write(name, content)])
}

fn read_as(format: &TextFormat, content: &str) -> Result<ReadTable, Error> {
    let dir = Dir::new();
    read_table(&[dir.write("t.csv", content)], format, &Wanted::All)
}

#[test]
fn delimiters_are_guessed_or_given() {
    for (name, content) in [
        ("t.csv", "a,b\n1,x\n"),
        ("t.csv", "a;b\n1;x\n"),
        ("t.txt", "a|b\n1|x\n"),
        ("t.txt", "a\tb\n1\tx\n"),
        ("t.tsv", "a\tb\n1\tx\n"),
        ("t.csv", "\u{feff}\"a\" , b\r\n1, \"x\"\r\n"),
        ("t.csv", "a,b\n1,x"),
    ] {
        let table = read_text(name, content).expect("a table").table;
        assert_eq!(table.names(), ["a", "b"], "{content:?}");
        assert_eq!(values(&table, "a"), "1", "{content:?}");
        assert_eq!(values(&table, "b"), "'x'", "{content:?}");
    }
    // Commas in a header do not outvote the tab of a .tsv file.
    let table = read_text("t.tsv", "a,b,c\td\n1\t2\n").expect("a table").table;
    assert_eq!(table.names(), ["a,b,c", "d"]);
    let format = TextFormat { delimiter: Some(':'), ..TextFormat::default() };
    let table = read_as(&format, "a,b:c\n1:2\n").expect("a table").table;
    assert_eq!(table.names(), ["a,b", "c"]);
}

#[test]
fn impossible_formats_are_refused() {
    for delimiter in ['"', '\n', 'x', '5', '.', '-', '¦', '#'] {
        let format = TextFormat { delimiter: Some(delimiter), ..TextFormat::default() };
        refused(read_as(&format, "a\n1\n"), &["cannot be the"]);
    }
    let format = TextFormat { comment: Some('"'), ..TextFormat::default() };
    refused(read_as(&format, "a\n1\n"), &["cannot be the comment"]);
}

#[test]
fn the_format_has_defaults_on_the_wire() {
    let format: TextFormat = serde_json::from_str("{}").expect("a format");
    assert_eq!(format, TextFormat::default());
    let columns = Some(vec!["a".to_string()]);
    let format =
        TextFormat { delimiter: Some(';'), comment: None, columns, ..TextFormat::default() };
    let json = serde_json::to_string(&format).expect("JSON");
    assert_eq!(serde_json::from_str::<TextFormat>(&json).expect("a format"), format);
}

#[test]
fn columns_can_be_named_from_outside() {
    let columns = Some(vec!["y".to_string(), "x".to_string()]);
    let format = TextFormat { columns, ..TextFormat::default() };
    for (content, first_line) in
        [("1,a\n2,b\n", 1), ("# no header\n1,a\n\n2,b", 2), ("y, x\n1,a\n2,b\n", 2)]
    {
        let table = read_as(&format, content).expect(content).table;
        assert_eq!(table.names(), ["y", "x"], "{content}");
        assert_eq!((values(&table, "y"), values(&table, "x")), ("1 2".into(), "'a' 'b'".into()));
        assert_eq!(table.place(0, None).line, Some(first_line), "{content}");
    }
    // Other names than those given are a row: that is seen by its values.
    let table = read_as(&format, "x,y\n1,a\n").expect("a table").table;
    assert_eq!(values(&table, "y"), "'x' '1'");
    refused(read_as(&format, "1,2,3\n"), &["line 1", "3 values", "`data.columns` names 2 columns"]);
}

#[test]
fn a_missing_header_is_noticed() {
    for content in ["1.0,0.5\n0.0,2\n", "1,1\n0,1\n", "-1e-3\n2\n"] {
        let parts = ["line 1", "no header line", "columns = ["];
        refused(read_as(&TextFormat::default(), content), &parts);
    }
    // Years may be names.
    let table = read_as(&TextFormat::default(), "2001,2002\n0.5,1\n").expect("a table").table;
    assert_eq!(table.names(), ["2001", "2002"]);
}

#[test]
fn comments_can_be_other_or_none() {
    let content = "# x\na,b\n#1,2\n3,4\n";
    let default = read_as(&TextFormat::default(), content).expect("a table");
    assert_eq!((default.table.rows(), default.comments), (1, 1));
    let none = TextFormat { comment: None, ..TextFormat::default() };
    let table = read_as(&none, "a,b\n#1,2\n").expect("a table");
    assert_eq!((values(&table.table, "a"), table.comments), ("'#1'".to_string(), 0));
    for comment in ['%', '§'] {
        let format = TextFormat { comment: Some(comment), ..TextFormat::default() };
        let content = format!("a,b\n{comment}1,2\n3,4\n");
        assert_eq!(read_as(&format, &content).expect("a table").comments, 1);
    }
}

#[test]
fn gzip_is_unpacked_also_in_several_members() {
    let mut content = gzip("# c\na,b\n1,x\n");
    content.extend(gzip("2,y\n"));
    let table = read_text("t.csv.gz", &content).expect("a table").table;
    assert_eq!(values(&table, "a"), "1 2");
    assert_eq!(table.place(1, None).line, Some(4));
    assert_eq!(
        values(&read_text("t.tsv.gz", gzip("a\tb\n1\t2\n")).expect("a table").table, "b"),
        "2"
    );
    assert_eq!(values(&read_text("t.txt.GZ", gzip("a\n5\n")).expect("a table").table, "a"), "5");
}

#[test]
fn broken_gzip_is_refused() {
    let rows: String = (0..5000).map(|i| format!("{},{}\n", i, i * 7919 % 1009)).collect();
    let whole = gzip(format!("a,b\n{rows}"));
    for length in [2, 10, 18, whole.len() / 2, whole.len() - 8, whole.len() - 1] {
        let parts = ["t.csv.gz", "truncated or corrupt"];
        refused(read_text("t.csv.gz", &whole[..length]), &parts);
    }
    let mut flipped = whole.clone();
    flipped[whole.len() - 6] ^= 1;
    refused(read_text("t.csv.gz", &flipped), &["t.csv.gz", "truncated or corrupt"]);
    refused(read_text("t.csv.gz", "a,b\n1,2\n"), &["no gzip file"]);
    refused(read_text("t.csv", &whole), &["is a gzip file", ".gz"]);
    refused(read_text("t.csv.gz", ""), &["the file is empty"]);
    refused(read_text("t.csv.gz", gzip("")), &["the file is empty"]);
}

#[test]
fn headers_are_checked() {
    refused(read_text("t.csv", ""), &["t.csv: the file is empty"]);
    refused(read_text("t.csv", "\u{feff}"), &["the file is empty"]);
    refused(read_text("t.csv", "# c\n\n"), &["the file is empty", "comments"]);
    refused(read_text("t.csv", "a,b"), &["t.csv: the file has a header but no rows"]);
    refused(read_text("t.csv", "a,b\r\n\r\n# c\r\n"), &["has a header but no rows"]);
    refused(read_text("t.csv", "#\na,,c\n1,2,3\n"), &["t.csv, line 2: column 2 of 3 has no name"]);
    refused(read_text("t.csv", "a,b,\n1,2,3\n"), &["line 2: column 3 of 3 has no name"]);
    refused(read_text("t.csv", "a,b,,\n1,2\n3,4,,,\n"), &["line 3: this line has 5 values"]);
    refused(read_text("t.csv", "a,b,\n1\n"), &["line 2: this line has 1 value, but", "2 columns"]);
    refused(read_text("t.csv", ",\n1,2\n"), &["no name"]);
    refused(read_text("t.csv", "a,b, a \n1,2,3\n"), &["columns 1 and 3 are both named `a`"]);
    refused(read_text("t.csv", "a,b\r1,2\r3,4\r"), &["carriage return"]);
    refused(read_text("t.csv", "a\0,\0b\0\n\0"), &["UTF-16"]);
}

#[test]
fn ragged_rows_are_refused() {
    refused(
        read_text("t.csv", "a,b\n1,2\n\n# c\n3\n"),
        &["t.csv, line 5: this line has 1 value, but the header has 2 columns"],
    );
    refused(read_text("t.csv", "a\n1\n1,5\n"), &["line 3", "2 values", "1 column;"]);
    let dir = Dir::new();
    let wanted = names(&["a"]);
    let files = [dir.write("t.csv", "a,b\n1,2,3\n")];
    let read = read_table(&files, &TextFormat::default(), &Wanted::Named(&wanted));
    refused(read, &["line 2", "3 values"]);
}

#[test]
fn quotes_that_go_wrong_are_refused() {
    refused(read_text("t.csv", "a,b\n1,\"x\n2,y\n3,z\n"), &["t.csv, line 2", "never closed"]);
    refused(read_text("t.csv", "a,\"b\n1,2\n"), &["t.csv, line 1", "never closed"]);
    refused(read_text("t.csv", "a,b\n1,\"x\"y\n"), &["t.csv, line 2", "closing quote"]);
}

#[test]
fn bytes_that_are_not_utf_8_are_refused() {
    for value in [&b"\xe9"[..], b"1\xff", b"\xc3"] {
        for before in ["", "1,1\n", "1,x\n", "1,TRUE\n", "1,1\n1,x\n"] {
            let content = [b"a,b\n", before.as_bytes(), b"1,", value, b"\n"].concat();
            let line = 2 + before.lines().count();
            let place = format!("t.csv, line {line}, column `b`");
            refused(read_text("t.csv", content), &[&place, "UTF-8"]);
        }
    }
    refused(read_text("t.csv", b"a,\xe9\n1,2\n"), &["line 1, column `2`", "UTF-8"]);
    refused(read_text("t.csv", b"\xff\xfea\0\n\0"), &["line 1", "UTF-"]);
    // A column that nobody wants may hold what it likes.
    let dir = Dir::new();
    let files = [dir.write("t.csv", b"a,b\n1,\xe9\n")];
    let wanted = names(&["a"]);
    read_table(&files, &TextFormat::default(), &Wanted::Named(&wanted)).expect("a table");
}

#[test]
fn wanted_columns_come_in_the_files_order() {
    let dir = Dir::new();
    let files = [dir.write("1.csv", "a,b,c\n1,2,x\n"), dir.write("2.csv", "d,c,b,a\n9,y,5,4\n")];
    let read_named = |wanted: &[&str]| {
        let wanted = names(wanted);
        read_table(&files, &TextFormat::default(), &Wanted::Named(&wanted))
    };
    let table = read_named(&["c", "a", "c"]).expect("a table").table;
    assert_eq!(table.names(), ["a", "c"]);
    assert_eq!((values(&table, "a"), values(&table, "c")), ("1 4".into(), "'x' 'y'".into()));
    let table = read_named(&[]).expect("a table").table;
    assert_eq!((table.rows(), table.names().len()), (2, 0));
    refused(read_named(&["a", "B"]), &["1.csv: there is no column `B`", "did you mean `b`?"]);
    refused(read_named(&["d"]), &["1.csv", "`d`"]);
    refused(read(&files), &["2.csv", "column `d` that the first file lacks"]);
}

#[test]
fn a_later_file_must_have_the_columns() {
    let dir = Dir::new();
    let files = [dir.write("1.csv", "weight,b\n1,2\n"), dir.write("2.csv", "Weight,b\n1,2\n")];
    let wanted = names(&["weight"]);
    let read_named = read_table(&files, &TextFormat::default(), &Wanted::Named(&wanted));
    refused(read_named, &["2.csv: there is no column `weight`", "did you mean `Weight`?"]);
    refused(read(&files), &["2.csv: there is no column `weight`", "did you mean `Weight`?"]);
}

#[test]
fn names_are_those_of_the_header() {
    let dir = Dir::new();
    let format = TextFormat::default();
    let file = dir.write("t.csv", "# c\n a , \"b\"\"c\",\"d\ne\"\n");
    assert_eq!(column_names(&file, &format).expect("names"), ["a", "b\"c", "d\ne"]);
    refused(column_names(&dir.write("u.csv", "a,a\n"), &format), &["u.csv", "`a`"]);
}
