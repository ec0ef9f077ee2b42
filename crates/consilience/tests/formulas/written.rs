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
        // Arguments go by their names, and the others take the places that are left.
        ("y ~ poly(degree = 2, x)", "y ~ poly(x, 2)"),
        ("y ~ poly(2, x = z)", "y ~ poly(z, 2)"),
        ("Surv(event = e, t) ~ x", "Surv(t, e) ~ x"),
        ("Surv(event = e, time = t, type = 'left') ~ x", "Surv(t, e, type = \"left\") ~ x"),
        (
            "Surv(time = t, event = e, time2 = u, type = 'interval') ~ x",
            "Surv(t, u, e, type = \"interval\") ~ x",
        ),
        ("Surv(t, e, time2 = u, type = 'interval') ~ x", "Surv(t, u, e, type = \"interval\") ~ x"),
        ("Surv(t, u, e, 'interval') ~ x", "Surv(t, u, e, type = \"interval\") ~ x"),
        (
            "Surv(time2 = u, time = t, type = 'interval2') ~ x",
            "Surv(t, u, type = \"interval2\") ~ x",
        ),
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
        ("y ~ x + 1 | g", 11, "random effects"),
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
        ("y ~ as.factor(x)", 5, "write factor(x)"),
        ("y ~ log(x, 3)", 12, "as in I(log(x)/log(3))"),
        ("y ~ log(x, bas = 3)", 18, "as in I(log(x)/log(3))"),
        ("y ~ log()", 5, "takes one argument, not 0"),
        ("y ~ poly(x)", 5, "as in poly(x, 2)"),
        ("y ~ poly(x, 1.5)", 13, "whole number from 1"),
        ("y ~ poly(x, degree = a)", 22, "whole number from 1"),
        ("y ~ poly(x, 2, raw = TRUE)", 22, "for raw powers write x + I(x^2)"),
        ("y ~ poly(x, 2, simple = TRUE)", 16, "poly() has no argument `simple` here"),
        ("y ~ poly(degree = 2, degree = 3)", 22, "poly() is given `degree` twice"),
        ("Surv(a, event = b, event = c) ~ x", 20, "Surv() is given `event` twice"),
        ("Surv(a, b, origin = 1) ~ x", 12, "no argument `origin` here; it has time, time2, event"),
        ("Surv(event = a) ~ x", 1, "Surv() needs the time"),
        ("Surv(time = a, time2 = b) ~ x", 1, "needs type = \"interval2\""),
        ("Surv(a, event = b, type = 'interval2') ~ x", 17, "two bounds and no event"),
        ("Surv(a, b, type = c) ~ x", 19, "`type` of Surv() is a text in quotes"),
        ("Surv(a, b, c, d) ~ x", 15, "`type` of Surv() is a text in quotes"),
        ("cbind(failures = a, successes = b) ~ x", 7, "no argument that is known here"),
        ("a/trials(n = b) ~ x", 10, "no argument that is known here"),
        ("y ~ bs()", 5, "bs() needs `x`, as in bs(age, df = 5)"),
        ("y ~ bs(x, df = 2)", 5, "has 3 columns at least, and df is 2"),
        ("y ~ bs(x, df = 0)", 16, "`df` of bs() must be a whole number from 1"),
        ("y ~ bs(x, degree = 99)", 20, "`degree` of bs() must be a whole number from 1 to 10"),
        ("y ~ ns(x, degree = 2)", 11, "ns() has no argument `degree` here; it has x, df, knots"),
        ("y ~ ns(x, knots = c(6, 4))", 24, "must ascend"),
        ("y ~ ns(x, knots = \"4\")", 19, "must be numbers, as in knots = c(10, 20)"),
        ("y ~ ns(x, knots = 5, df = 4)", 5, "contradict each other: these knots make 2 columns"),
        ("y ~ ns(x, knots = 5, Boundary.knots = c(6, 9))", 5, "within the boundary"),
        ("y ~ bs(x, Boundary.knots = c(0, Inf))", 5, "two finite numbers"),
        ("y ~ bs(x, df = 4, df = 5)", 19, "is given `df` twice"),
        ("y ~ bs(x, 4, c(1, 2), 3, TRUE, c(0, 9), 8)", 41, "too many arguments"),
        ("y ~ bs(x, intercept = 1)", 23, "`intercept` must be TRUE or FALSE"),
        ("y ~ bs('x', df = 5)", 8, "needs a number"),
        ("y ~ log(bs(x, df = 5))", 9, "can only stand by itself"),
        ("y ~ splines::ns(x, df = 4)", 12, "write the function alone"),
        ("bs(y) ~ x", 1, "cannot be the outcome"),
        ("y ~ cut(x, 4)", 12, "name the ends, as in cut(age, breaks = c(0, 40, 60, Inf))"),
        ("y ~ cut(x)", 5, "cut() needs `breaks`"),
        ("y ~ cut(x, c(0, 10))", 12, "a factor needs two levels or more"),
        ("y ~ cut(x, c(0, 10, 5))", 21, "must ascend"),
        ("y ~ cut(x, c(0, a))", 17, "must be numbers"),
        (
            "y ~ cut(x, c(0, 5, 9), labels = c('a'))",
            33,
            "make 2 intervals, each of which needs a label",
        ),
        ("y ~ cut(x, c(0, 5, 9), labels = FALSE)", 33, "labels = FALSE makes numbers"),
        ("y ~ cut(x, c(0, 5, 9), dig.lab = 5)", 34, "give `labels`"),
        ("y ~ relevel(g)", 5, "relevel() needs `ref`, as in relevel(arm, ref = \"placebo\")"),
        ("y ~ relevel(g, b)", 16, "must be a level in quotes"),
        ("y ~ c(x, y)", 5, "it can only list knots, breaks and labels"),
        ("y ~ s(x)", 5, "write ns(x, df = 4)"),
        ("y ~ rcs(x, 4)", 5, "write ns(x, df = 4)"),
        ("y ~ ordered(g)", 5, "write factor(x) for a level each"),
        ("y ~ interaction(a, b)", 5, "write a:b"),
        ("y ~ ifelse(x > 0, 1, 0)", 5, "write the condition, as in I(x > 0)"),
        ("y ~ strata(g)", 5, "take it as a factor"),
        ("y ~ contr.sum(g)", 5, "relevel(x, ref = \"b\")"),
        (
            "y ~ x + (1 || g)",
            12,
            "`||` (lme4's random effects without correlations) is not supported",
        ),
        ("y ~ I(x %% 2)", 9, "remainders are not there"),
        ("t | cens(c) ~ x", 5, "write Surv(t, 1 - c)"),
        ("t | cens(1 - e) ~ x", 5, "write Surv(t, e)"),
        ("t | cens(1 - (a + b)) ~ x", 5, "write Surv(t, a + b)"),
        ("t | cens(1 - a - b) ~ x", 5, "write Surv(t, 1 - (1 - a - b))"),
        ("t | cens(abs(c)) ~ x", 5, "write Surv(t, 1 - abs(c))"),
        ("t | cens(s == 2) ~ x", 5, "write Surv(t, 1 - (s == 2))"),
        ("bf(y ~ x, sigma ~ g)", 1, "write its first formula alone"),
        ("y ~ x = 2", 7, "`==` to compare"),
        ("y ~ log(x, base = 2, 3)", 5, "takes one argument, not 3"),
        ("y ~ factor(g, levels = 2)", 5, "takes one argument"),
        ("y ~ center(x)", 5, "write scale(x)"),
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
        ("y ~ I(x = 3)", 7, "to compare write =="),
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

/// A letter of two columns moves the caret by two.
#[test]
fn carets_stand_below_wide_letters_too() {
    let message = error("y ~ 血糖 + 2nd");
    let caret = message.lines().last().unwrap();
    assert_eq!(caret, format!("    {}^", " ".repeat(4 + 4 + 3)), "{message}");
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
