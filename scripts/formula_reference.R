# The values of bs(), ns(), cut() and relevel() in crates/consilience/tests/formulas/bases.rs.
library(splines)
x <- c(1, 2.5, 4, 4.25, 6, 7.125, 9, 10)
rows <- function(title, m) {
  cat(title, "\n")
  for (i in seq_len(nrow(m))) cat("[", paste(sprintf("%.16e", m[i, ]), collapse = ", "), "],\n")
}
rows("bs(x, knots = c(4, 6))", bs(x, knots = c(4, 6)))
rows("bs(x, df = 5)", bs(x, df = 5))
rows("bs(x, knots = 5, degree = 2, intercept = TRUE, Boundary.knots = c(0, 12))",
     bs(x, knots = 5, degree = 2, intercept = TRUE, Boundary.knots = c(0, 12)))
rows("ns(x, knots = c(4, 6))", ns(x, knots = c(4, 6)))
rows("ns(x, df = 4)", ns(x, df = 4))
rows("ns(x, knots = 5, intercept = TRUE, Boundary.knots = c(2, 9))",
     ns(x, knots = 5, intercept = TRUE, Boundary.knots = c(2, 9)))
rows("ns(x)", ns(x))
rows("bs(x, knots = 5, Boundary.knots = c(2, 9))",
     suppressWarnings(bs(x, knots = 5, Boundary.knots = c(2, 9))))
g <- c("b", "a", "c", "a", "b", "c", "c", "a")
d <- data.frame(y = seq_along(x), x, g)
for (f in list(y ~ relevel(factor(g), ref = "b"),
               y ~ cut(x, breaks = c(0, 4, 7, 10)),
               y ~ cut(x, breaks = c(-Inf, 4, Inf), right = FALSE),
               y ~ cut(x, breaks = c(1, 4, 10), include.lowest = TRUE),
               y ~ cut(x, breaks = c(0, 4, 10), labels = c("lo", "hi")),
               y ~ log1p(x))) {
  m <- model.matrix(f, d)
  cat(deparse(f), "\n", paste(colnames(m), collapse = " | "), "\n", rowSums(m), "\n")
}
