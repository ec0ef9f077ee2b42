//! Wrong formulas.

use super::{refused, with};
use crate::data;

/// All of these are found in the study file, at the formula.
#[test]
fn formulas_that_say_nothing() {
    for (formula, parts) in [
        ("", &["`model.formula` is empty; it must be a formula such as \"y ~ x\""][..]),
        ("y ~ ", &["at character 5: the formula ends where a term is needed"]),
        ("y ~ x +", &["at character 8: the formula ends where a term is needed"]),
        (
            "y = x",
            &["at character 3: `=` can only give a function's argument", "write `~` between"],
        ),
        ("~ x", &["the left side of ~ is missing", "as in y ~ x"]),
        ("y ~ (x", &["at character 5: this `(` is never closed; add a `)`"]),
        ("y ~ x ~ g", &["at character 7: a formula has one ~ only"]),
        ("y ~ x^2", &["write I(x^2) or poly(x, 2)"]),
        ("y ~ 1/x", &["write I(1/x)"]),
        ("y ~ x | g", &["random effects", "as in y ~ x + group"]),
        ("y ~ 2nd", &["in backticks, as in `2nd`"]),
        ("y ~ logg(x)", &["there is no function logg(); did you mean log()?", "sqrt()"]),
        (
            "y ~ sin(x)",
            &["there is no function sin(); make a column of it in the data (known: I(), log()"],
        ),
        ("y ~ xx", &["at character 5: there is no column `xx`; did you mean `x`?", "`n`"]),
        ("y ~ y", &["the outcome y also stands on the right side"]),
        ("y ~ scale(w - w)", &["w - w is the same (0) in all rows; leave it out"]),
        ("y ~ poly(w, 2)", &["needs more than 2 distinct values, but w has 2"]),
    ] {
        let parts = [&["s.toml, line 9: "], parts].concat();
        refused(formula, &with("y ~ x", formula), &data(), &parts);
    }
}

/// All of these are found in the data, at a row.
#[test]
fn formulas_that_the_data_do_not_bear() {
    // One row only, so that there is one place to name.
    let data = data() + "1,2,-5,a,1\n";
    for (formula, parts) in [
        (
            "y ~ log(x + 3)",
            &["column `log(x + 3)`: the result is NaN", "(x = -5)", "log(x + 1)"][..],
        ),
        ("y ~ sqrt(x + 3)", &["column `sqrt(x + 3)`", "(x = -5)", "from 0 up"]),
        ("y ~ I(1/(x + 5))", &["column `1/(x + 5)`", "is Inf", "(x = -5)", "must not be 0"]),
    ] {
        let parts = [&["d.csv, line 42, "], parts].concat();
        refused(formula, &with("y ~ x", formula), &data, &parts);
    }
    let study = with("y ~ x", "y ~ log(g)");
    let parts =
        ["d.csv, line ", "column `g`: a number is needed here, but the value is \"", "factor(g)"];
    refused("a word", &study, &data, &parts);
}
