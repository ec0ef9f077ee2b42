//! What values make of a column, and how parts become one.

use super::part::ColumnPart;
use super::spelling::Spelling;
use super::table::{Column, ColumnKind, MISSING};
use std::sync::Arc;

fn part(values: &[&str]) -> ColumnPart {
    let mut part = ColumnPart::open();
    for (line, value) in (2..).zip(values) {
        part.push(value.as_bytes(), line, &Spelling::default()).expect("UTF-8");
    }
    part
}

/// Whether the parts of a column make it text.
pub(super) fn is_text<'a>(parts: impl Iterator<Item = &'a ColumnPart>) -> bool {
    ColumnKind::of(parts.map(ColumnPart::kind)) == ColumnKind::Text
}

fn text(codes: &[u32], levels: &[&str]) -> Column {
    let levels = Arc::new(levels.iter().map(|l| l.to_string()).collect());
    Column::Text { codes: codes.to_vec(), levels }
}

#[test]
fn values_decide_the_kind() {
    assert_eq!(
        ColumnPart::join(vec![part(&["1", "-2.5e3", ".5", "+7"])]),
        Column::Single(vec![1.0, -2500.0, 0.5, 7.0])
    );
    assert_eq!(
        ColumnPart::join(vec![part(&["", "TRUE", "false", "True", "NA"])]),
        Column::Logical(vec![MISSING, 1, 0, 1, MISSING])
    );
    assert_eq!(
        ColumnPart::join(vec![part(&["N/A", "b", "a", "null", "b", "3", "TRUE"])]),
        text(&[MISSING, 0, 1, MISSING, 0, 2, 3], &["b", "a", "3", "TRUE"])
    );
    let Column::Number(values) = ColumnPart::join(vec![part(&["", "NULL"])]) else { panic!() };
    assert!(values.len() == 2 && values.iter().all(|x| x.is_nan()));
}

#[test]
fn what_is_missing_is_spelled_exactly() {
    for word in ["na", "Null", "n/a", "-", "None"] {
        assert!(is_text([&part(&[word])].into_iter()), "{word}");
    }
}

#[test]
fn a_change_of_kind_asks_for_another_reading() {
    for values in [&["1", "x"][..], &["TRUE", "1"], &["1", "TRUE"], &["nan", "x"]] {
        let part = part(values);
        assert!(is_text([&part].into_iter()) && !part.can_join_text(), "{values:?}");
    }
    let words = part(&["x", "1", "TRUE", "nan"]);
    assert!(words.can_join_text() && words.odd().is_none());
}

#[test]
fn a_value_that_is_not_finite_decides_no_kind() {
    for word in ["NaN", "nan", "Inf", "-inf", "+Infinity", "1e999"] {
        for values in [&[word][..], &["", word], &["1", word], &[word, "1"], &["TRUE", word]] {
            let part = part(values);
            assert!(!is_text([&part].into_iter()), "{values:?}");
            assert!(part.odd().is_some_and(|odd| odd.value == word), "{values:?}");
            assert!(!part.can_join_text(), "{values:?}");
        }
    }
}

#[test]
fn parts_join_in_order_and_share_levels() {
    let parts = vec![part(&["a", "b"]), part(&["", "NA"]), part(&["c", "b"])];
    assert!(is_text(parts.iter()) && parts.iter().all(ColumnPart::can_join_text));
    assert_eq!(ColumnPart::join(parts), text(&[0, 1, MISSING, MISSING, 2, 1], &["a", "b", "c"]));
    let Column::Single(values) = ColumnPart::join(vec![part(&[""]), part(&["5"])]) else {
        panic!()
    };
    assert!(values[0].is_nan() && values[1] == 5.0);
    assert_eq!(
        ColumnPart::join(vec![part(&["5", "-0"]), part(&["0.1"])]),
        Column::Number(vec![5.0, -0.0, 0.1])
    );
    assert_eq!(
        ColumnPart::join(vec![part(&["TRUE"]), part(&[""])]),
        Column::Logical(vec![1, MISSING])
    );
    assert!(is_text([part(&["1"]), part(&["true"])].iter()));
}
