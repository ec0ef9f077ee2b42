# Writes reference values for priors that tie parameters, for crates/consilience/tests/numbers/g_priors.rs.
# Run from the root of the repository: Rscript scripts/g_priors.R
# Base R only. Files: crates/consilience/tests/data/attitude.csv (R's own `attitude`: Chatterjee & Price 1977) and
# g_priors.json. Everything is brute force: densities of all rows at once, and the trapezoidal rule.

folder <- "crates/consilience/tests/data"
write.csv(attitude, file.path(folder, "attitude.csv"), row.names = FALSE, quote = FALSE)
n <- nrow(attitude)

# log of the integral of exp(h) over the line, of which all but nothing lies between these two: the trapezoidal rule,
# which for such functions is exact but for rounding once its steps are small.
log_integral <- function(h, from, to, points = 6000) {
  at <- seq(from, to, length.out = points)
  values <- vapply(at, h, 0)
  top <- max(values)
  top + log(sum(exp(values - top)) * (at[2] - at[1]))
}

# log densities of g.
spreads <- function(n, p) list(
  "jzs(medium)" = function(g) -0.5 * log(2 * pi) + log(sqrt(n) * sqrt(2) / 4) - 1.5 * log(g) - n / 16 / g,
  "jzs(1)" = function(g) -0.5 * log(2 * pi) + log(sqrt(n)) - 1.5 * log(g) - n / 2 / g,
  "hyper-g(3)" = function(g) log(0.5) - 1.5 * log1p(g),
  "hyper-g/n(4)" = function(g) log(1 / n) - 2 * log1p(g / n),
  "robust" = function(g) {
    least <- (1 + n) / (p + 1)
    if (g > least - 1) log(0.5) + 0.5 * log(least) - 1.5 * log1p(g) else -Inf
  }
)

formulas <- c("complaints", "complaints + learning", "complaints + learning + advance",
              "complaints + privileges + learning + raises + critical + advance")
out <- c()
for (right in formulas) {
  fit <- lm(as.formula(paste("rating ~", right)), attitude)
  r2 <- summary(fit)$r.squared
  p <- length(coef(fit)) - 1
  given <- function(g) 0.5 * (n - 1 - p) * log1p(g) - 0.5 * (n - 1) * log1p(g * (1 - r2))
  laws <- spreads(n, p)
  for (name in names(laws)) {
    law <- laws[[name]]
    low <- -40
    if (name == "robust") {
      # From the edge on: g + 1 = least (1 + e^v).
      least <- (1 + n) / (p + 1)
      h <- function(v) {
        g <- least - 1 + least * exp(v)
        law(g) + log(least) + v + given(g)
      }
    } else {
      h <- function(v) law(exp(v)) + v + given(exp(v))
    }
    out <- c(out, sprintf('{"prior": "%s", "model": "%s", "log_bf": %.12f}', name, right,
                          log_integral(h, low, 45)))
  }
  for (g in c(n, 7.5)) {
    name <- if (g == n) "g-prior(n)" else "g-prior(7.5)"
    out <- c(out, sprintf('{"prior": "%s", "model": "%s", "log_bf": %.12f}', name, right, given(g)))
  }
}

# With proper priors all of p(y) is known: densities of 30 rows at once.
log_density <- function(y, mean, covariance) {
  root <- chol(covariance)
  z <- backsolve(root, y - mean, transpose = TRUE)
  -0.5 * length(y) * log(2 * pi) - sum(log(diag(root))) - 0.5 * sum(z^2)
}
y <- attitude$rating
x <- as.matrix(attitude[, c("complaints", "learning")])
ones <- matrix(1, n, n)
# Intercept at the columns' means normal(60, 20), log_sd normal(2, 1), jzs(1).
centred <- scale(x, scale = FALSE)
metric <- centred %*% solve(crossprod(centred)) %*% t(centred)
proper <- log_integral(function(v) {
  g <- exp(v)
  log_integral(function(u) {
    s <- exp(2 * u)
    log_density(y, 60, s * diag(n) + 400 * ones + g * s * metric) + dnorm(u, 2, 1, log = TRUE)
  }, 0.5, 4.5, 240) + spreads(n, 2)[["jzs(1)"]](g) + v
}, -3, 30, 400)
# complaints normal(0, 0.05) * sigma, learning normal(0, 1), intercept normal(0, 50), log_sd normal(2, 1).
in_sigma <- log_integral(function(u) {
  s <- exp(2 * u)
  covariance <- s * diag(n) + 2500 * ones + 0.0025 * s * tcrossprod(x[, 1]) + tcrossprod(x[, 2])
  log_density(y, 0, covariance) + dnorm(u, 2, 1, log = TRUE)
}, 0.5, 5, 600)
writeLines(c("{", sprintf('"proper_jzs": %.10f,', proper), sprintf('"in_sigma": %.10f,', in_sigma),
             '"flat": [', paste(out, collapse = ",\n"), "]}"), file.path(folder, "g_priors.json"))
