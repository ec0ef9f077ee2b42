//! Formulas as they are read and written.

use consilience::data::Formula;

fn shown(text: &str) -> String {
    Formula::parse(text).unwrap_or_else(|e| panic!("{text}: {e}")).to_string()
}

fn error(text: &str) -> String {
    match Formula::parse(text) {
        Ok(formula) => panic!("{text} was read as {formula}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn formulas_are_written_as_in_r() {
    // The right-hand sides are R's deparse of the left-hand sides.
    for (text, expected) in [
        ("y~a+b", "y ~ a + b"),
        ("y ~ a*b:c-1", "y ~ a * b:c - 1"),
        ("y~(a+b)^2", "y ~ (a + b)^2"),
        ("y~(a+b)**2", "y ~ (a + b)^2"),
        ("y ~ -1+a", "y ~ -1 + a"),
        ("I(x>100000)~I( x/2+3*x^-1 )", "I(x > 1e+05) ~ I(x/2 + 3 * x^-1)"),
        ("log(y)~I(!x>2)+I(x>2&f|x<1)", "log(y) ~ I(!x > 2) + I(x > 2 & f | x < 1)"),
        ("type=='Yes'~.", "type == \"Yes\" ~ ."),
        ("y ~ I(a=='u\\\\\"')", "y ~ I(a == \"u\\\\\\\"\")"),
        ("y~poly(x,2L)+factor(k)", "y ~ poly(x, 2) + factor(k)"),
        ("`y`~`my var`+`if`+`a\\`b`", "y ~ `my var` + `if` + `a\\`b`"),
        ("y~I(-(x))+I(+x)+I(2*-x)", "y ~ I(-(x)) + I(+x) + I(2 * -x)"),
        ("y~offset(log( e ))+0", "y ~ offset(log(e)) + 0"),
        ("y ~ I(x + .5) + I(x-1e-5)", "y ~ I(x + 0.5) + I(x - 1e-05)"),
        ("y ~ I(x == TRUE) + .z + a.b_c + größe", "y ~ I(x == TRUE) + .z + a.b_c + größe"),
        ("y ~\n a +\t b", "y ~ a + b"),
    ] {
        assert_eq!(shown(text), expected);
        assert_eq!(Formula::parse(expected).unwrap(), Formula::parse(text).unwrap());
    }
}

#[test]
fn the_columns_are_those_named() {
    let formula = Formula::parse("I(a > b) ~ c + log(a):`d e` - f + offset(g)").unwrap();
    assert_eq!(
        formula.columns_used(),
        (["a", "b", "c", "d e", "f", "g"].map(String::from).into(), false)
    );
    assert_eq!(formula.response_columns(), ["a", "b"]);
    assert!(Formula::parse("y ~ . - a").unwrap().columns_used().1);
}

#[test]
fn errors_point_and_advise() {
    for (text, at, expected) in [
        ("", 1, "empty"),
        ("y", 2, "the ~ is missing"),
        ("~ x", 1, "left side of ~ is missing"),
        ("y ~ a ~ b", 7, "one ~ only"),
        ("y ~ a +", 8, "ends where a term is needed"),
        ("y ~ a b", 7, "follows without an operator"),
        ("y ~ (a + b", 5, "never closed"),
        ("y ~ a + b)", 10, "has no `(` before it"),
        ("y ~ + * b", 7, "where a column or a term is needed"),
        ("y ~ a / b", 7, "for nesting write a + a:b, for a quotient I(a/b)"),
        ("y ~ b %in% a", 7, "write a:b"),
        ("y ~ x + (1 | g)", 12, "random effects"),
        ("y ~ x > 0", 7, "write I(x > 0)"),
        ("y ~ a & b", 7, "write I(a & b)"),
        ("y ~ !flag", 5, "write I(!flag)"),
        ("y ~ x^2", 5, "write I(x^2) or poly(x, 2)"),
        ("y ~ (a + b)^1", 13, "whole number from 2"),
        ("y ~ (a + b)^k", 13, "whole number from 2"),
        ("y ~ (a + b)^1e9", 13, "whole number from 2"),
        ("y ~ 2", 5, "only 1 (with intercept) and 0"),
        ("y ~ 'a'", 5, "a constant is no term"),
        ("y ~ a:1", 7, "only columns can be multiplied"),
        ("y ~ a * -b", 9, "only columns can be multiplied"),
        ("y ~ sqr(x)", 5, "did you mean sqrt()?"),
        ("y ~ as.factor(x)", 5, "did you mean factor()?"),
        ("y ~ log1p(x)", 5, "write log(1 + x)"),
        ("y ~ log(x, 10)", 5, "log2(x) or log10(x)"),
        ("y ~ log()", 5, "takes one argument, not 0"),
        ("y ~ poly(x)", 5, "as in poly(x, 2)"),
        ("y ~ poly(x, 1.5)", 13, "whole number from 1"),
        ("y ~ poly(x, degree = 2)", 20, "arguments by name are not supported"),
        ("y ~ I(poly(x, 2))", 7, "can only stand by itself"),
        ("y ~ scale(factor(x))", 11, "can only stand by itself"),
        ("y ~ scale(poly(x, 2))", 11, "can only stand by itself"),
        ("poly(y, 2) ~ x", 1, "cannot be the outcome"),
        (". ~ x", 1, "cannot be the outcome"),
        ("y ~ I(3)", 5, "uses no column"),
        ("1 ~ x", 1, "uses no column"),
        ("y ~ a:offset(x)", 7, "add it with +"),
        ("y ~ a - offset(x)", 9, "cannot be taken away"),
        ("y ~ offset(a, b)", 5, "takes one argument"),
        ("y ~ log(offset(x))", 9, "can only stand by itself"),
        ("y ~ log(.)", 9, "can only be a term"),
        ("y ~ I(a:b)", 8, "for a product write *"),
        ("y ~ I(x + 'a')", 11, "needs a number"),
        ("y ~ I(t > 'a')", 11, "can only be compared with =="),
        ("y ~ I(a < b < c)", 13, "cannot be chained"),
        ("y ~ I(a && b)", 9, "write & for"),
        ("y ~ I(x = 3)", 9, "write `==`"),
        ("y ~ d$x", 6, "the column's name alone"),
        ("y ~ 2nd", 5, "put it in backticks"),
        ("y ~ _x", 5, "put it in backticks"),
        ("y ~ NA", 5, "reserved word"),
        ("y ~ `x", 5, "closing `"),
        ("y ~ ``", 5, "must not be empty"),
        ("y ~ I(a == \"x)", 12, "closing \""),
        ("y ~ I(a == 'x\\q')", 14, "write \\\\ for a backslash"),
        ("y ~ I(x * 1e999)", 11, "too large"),
    ] {
        let message = error(text);
        assert!(message.contains(expected), "{text}: {message}");
        assert!(message.contains(&format!("at character {at}:")), "{text}: {message}");
        let caret = message.lines().last().unwrap();
        assert_eq!(caret.chars().count(), at + 4, "{text}: {message}");
    }
}

#[test]
fn carets_are_right_in_long_formulas() {
    let long = vec!["größe_1"; 100].join(" + ");
    let message = error(&format!("y ~ {long} + log({long}"));
    let lines: Vec<&str> = message.lines().rev().take(2).collect();
    let caret = lines[0].chars().count() - 1;
    assert_eq!(lines[1].chars().nth(caret), Some('('), "{message}");
    assert!(lines[1].chars().count() < 90);
}

#[test]
fn absurd_input_is_refused_and_overflows_nothing() {
    let n = 100_000;
    for text in [
        format!("y ~ {}x{}", "(".repeat(n), ")".repeat(n)),
        format!("y ~ {}x", "-".repeat(n)),
        format!("y ~ {}x{}", "log(".repeat(n), ")".repeat(n)),
        format!("y ~ I(x{})", " + x".repeat(n)),
        format!("y ~ I(x{})", " * x".repeat(n)),
        format!("y ~ I(x{})", "^x".repeat(n)),
        format!("y ~ x{}", ":x".repeat(n)),
        format!("y ~ I({}x)", "!".repeat(n)),
    ] {
        assert!(error(&text).contains("nested more than 100 levels"));
    }
    // Sums inside sums are shallow for the parser, but their trees are not.
    let mut nested = "x".to_string();
    for _ in 0..40 {
        nested = format!("({nested} + x + x + x)");
    }
    assert!(error(&format!("y ~ I({nested})")).contains("nested more than 100 levels"));
    assert!(error(&"y".repeat(2 << 20)).contains("too long"));
    // Long sums of terms are fine.
    assert!(Formula::parse(&format!("y ~ x{}", " + x".repeat(50_000))).is_ok());
}
