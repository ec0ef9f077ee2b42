# Writes what R makes of a list of formulas, for crates/consilience/tests/sites/model_matrix.rs.
# Run from the root of the repository: Rscript scripts/model_matrix.R
# Base R only. Files: crates/consilience/tests/data/model_matrix.{csv,json}

# Levels in byte order, as the library sorts them.
invisible(Sys.setlocale("LC_ALL", "C"))
folder <- "crates/consilience/tests/data"

rows <- 30
i <- seq_len(rows)
data <- data.frame(
  y = round(3 + 2 * sin(i) + i / 10, 3),
  x = round(5 * cos(1.7 * i) + 0.1 * i, 2),
  z = round(exp(sin(2.3 * i)) + 0.05, 3),
  a = c("b c", "B", "a1")[1 + (i * 7) %% 3],
  b = c("yes", "no")[1 + (i %/% 2) %% 2],
  c = c("d.1", "d-2", "d 3", "e:4")[1 + (i * i + i %/% 3) %% 4],
  flag = (i * 5) %% 7 < 3,
  k = (i * 3 + i %/% 5) %% 4L,
  dose = c(0.5, 10, 2, 1.25)[1 + (i + i %/% 4) %% 4],
  e = round(20 + 10 * sin(0.7 * i), 1),
  type = c("No", "Yes")[1 + ((i * i) %% 5 < 2)],
  `my var` = round(sqrt(i) * (-1)^i, 3),
  `odd-fac` = c("p", "q", "r")[1 + (i %/% 4 + i) %% 3],
  check.names = FALSE, stringsAsFactors = FALSE
)
csv <- file.path(folder, "model_matrix.csv")
write.csv(data, csv, row.names = FALSE, quote = FALSE)
# Read back, so that both sides start from the same text.
data <- read.csv(csv, check.names = FALSE, stringsAsFactors = FALSE)

formulas <- c(
  "y ~ 1",
  "y ~ x",
  "y ~ x + z - 1",
  "y ~ a",
  "y ~ 0 + a",
  "y ~ a + b",
  "y ~ 0 + a + b",
  "y ~ b + a + 0",
  "y ~ x + a - 1",
  "y ~ a:x",
  "y ~ x:a",
  "y ~ x + a:x",
  "y ~ a + a:x",
  "y ~ a * x",
  "y ~ 0 + a:x",
  "y ~ 0 + x + a:x",
  "y ~ a:b",
  "y ~ 0 + a:b",
  "y ~ a + a:b",
  "y ~ b + a:b",
  "y ~ 0 + a + a:b",
  "y ~ 0 + b + a:b",
  "y ~ a * b",
  "y ~ a * b - a",
  "y ~ a * b - b - 1",
  "y ~ b * a * x",
  "y ~ 0 + b * a * x",
  "y ~ b * a * x - b:a",
  "y ~ b:a:x",
  "y ~ x + b:a:x",
  "y ~ a + b:x + a:b:x",
  "y ~ a:x + b:x - 1",
  "y ~ (a + b + x)^2",
  "y ~ (a + b + x + z)^3 - a:b:x",
  "y ~ (a + b)^3",
  "y ~ a * b * flag - a:b:flag - a",
  "y ~ poly(x, 1)",
  "y ~ poly(x, 3)",
  "y ~ poly(x, 6) + z",
  "y ~ poly(e, 2):a + poly(z, 2)",
  "y ~ poly(x, 2) * poly(z, 2)",
  "y ~ poly(log(e), 2)",
  "y ~ scale(x)",
  "y ~ scale(x) * a",
  "y ~ I(scale(x)^2) + scale(log(z))",
  "y ~ log(scale(x) + 10)",
  "y ~ scale(scale(x)^2 + scale(z))",
  "y ~ poly(scale(x), 2) + scale(exp(scale(z) / 2))",
  "y ~ I(x^2) + I(x*z) + I(x/z-1) + I(-x) + I(2^-z)",
  "y ~ log(z) + sqrt(e) + exp(-x) + abs(x) + log2(z) + log10(e)",
  "y ~ flag",
  "y ~ 0 + flag + x",
  "y ~ flag * a",
  "y ~ x:flag",
  "y ~ factor(k)",
  "y ~ 0 + factor(k):x",
  "y ~ k + factor(dose)",
  "y ~ factor(flag) + factor(a) + factor(x > 1)",
  "y ~ I(x > 0)",
  "y ~ I(x > 0):z + I(a == \"b c\")",
  "y ~ 0 + I(!flag) + I(x >= 1 & z < 1 | k != 2)",
  "y ~ I(a) + I(flag)",
  "y ~ `my var` + `odd-fac`",
  "y ~ `odd-fac`:`my var` - 1",
  "y ~ log(abs(`my var`)) + I(`odd-fac` == 'q')",
  "y ~ .",
  "y ~ . - x",
  "y ~ 0 + .",
  "y ~ . - a - b - c - type - 1 - `odd-fac`",
  "log(y) ~ . + I(x^2)",
  "y ~ a:. - a:c - a:e",
  "y ~ x + offset(log(e))",
  "y ~ offset(e) + a + offset(2 * x)",
  "y ~ 0 + offset(log(e))",
  "y ~ offset(scale(x)) + z",
  "I(x > 0) ~ z",
  "type == \"Yes\" ~ x + a",
  "type ~ x",
  "flag ~ a:b",
  "factor(b) ~ scale(z)",
  "log(y + 1) ~ c",
  "scale(y) ~ c + a:c",
  "I(y - x) ~ c:a",
  "y ~ c*b + x:c - b",
  "y ~ (c + x)^2 + (c + z)^2",
  "y ~ a + x - a + b:a",
  "y ~ ((a)) + (((x + z) - z))",
  "y ~ x:z + z:x + x + x",
  "y ~ I(x > 100000) + I(x * 0.0001) + I(x + 123456.7)"
)

number <- function(v) {
  stopifnot(all(is.finite(v)))
  paste0("[", paste(sprintf("%.17g", v), collapse = ","), "]")
}
string <- function(s) {
  if (length(s) == 0) return(character(0))
  s <- gsub("\\", "\\\\", s, fixed = TRUE)
  paste0("\"", gsub("\"", "\\\"", s, fixed = TRUE), "\"")
}
list_of <- function(items) paste0("[", paste(items, collapse = ",\n   "), "]")

entry <- function(text) {
  # The terms and not the formula: a `.` must mean the data's columns and not the frame's.
  formula <- terms(as.formula(text, env = globalenv()), data = data)
  frame <- model.frame(formula, data)
  matrix <- model.matrix(formula, frame)
  response <- model.response(frame)
  if (is.character(response)) response <- factor(response)
  if (is.factor(response)) response <- as.integer(response) - 1
  offset <- model.offset(frame)
  terms <- c("(Intercept)", attr(formula, "term.labels"))
  paste0(
    " {\"formula\": ", string(text),
    ",\n  \"names\": [", paste(string(colnames(matrix)), collapse = ", "), "]",
    ",\n  \"terms\": [",
    paste(string(terms[attr(matrix, "assign") + 1]), collapse = ", "), "]",
    ",\n  \"response\": ", number(as.numeric(response)),
    ",\n  \"offset\": ", if (is.null(offset)) "null" else number(as.numeric(offset)),
    ",\n  \"columns\": ",
    list_of(vapply(seq_len(ncol(matrix)), function(j) number(matrix[, j]), "")),
    "}"
  )
}

writeLines(
  paste0("[\n", paste(vapply(formulas, entry, ""), collapse = ",\n"), "\n]"),
  file.path(folder, "model_matrix.json")
)
