# Writes reference values for g-priors of logistic and Poisson models, for crates/consilience/tests/numbers/g_priors_glm.rs.
# Run from the root of the repository: Rscript scripts/g_priors_glm.R
# Base R only. Files: crates/consilience/tests/data/g_priors_glm.{csv,json}
# Everything by the trapezoidal rule: over g, and for each g over intercept and both coefficients around the peak.

folder <- "crates/consilience/tests/data"
n <- 90
i <- seq_len(n)
x1 <- round(sin(1.7 * i) + 0.3 * cos(0.4 * i), 3)
x2 <- round(5 + 2 * cos(2.1 * i) + 0.8 * x1, 3)
noise <- (i * 37) %% 89 / 89
data <- data.frame(
  x1, x2,
  y = as.integer(noise < plogis(-2.4 + 1.1 * x1 + 0.4 * x2)),
  k = qpois(noise, exp(-0.2 + 0.35 * x1 + 0.1 * x2))
)
write.csv(data, file.path(folder, "g_priors_glm.csv"), row.names = FALSE, quote = FALSE)
x <- cbind(x1, x2)

likelihood <- function(family, y, eta) {
  if (family == "logistic") colSums(y * eta - log1p(exp(eta)))
  else colSums(y * eta - exp(eta) - lgamma(y + 1))
}

# log p(y | g): intercept at the columns' means flat or normal(m, s), coefficients N(0, g / information).
given <- function(family, y, columns, g, level) {
  centred <- scale(columns, scale = FALSE)
  p <- ncol(centred)
  weight <- if (family == "logistic") mean(y) * (1 - mean(y)) else mean(y)
  design <- if (p > 0) {
    root <- chol(weight * crossprod(centred))
    cbind(1, centred %*% backsolve(root, diag(p)) * sqrt(g))
  } else matrix(1, n, 1)
  log_density <- function(z) {
    value <- likelihood(family, y, design %*% z)
    if (p > 0) value <- value - 0.5 * p * log(2 * pi) - 0.5 * colSums(z[-1, , drop = FALSE]^2)
    if (!is.null(level)) value <- value + dnorm(z[1, ], level[1], level[2], log = TRUE)
    value
  }
  z <- matrix(c(if (family == "logistic") qlogis(mean(y)) else log(mean(y)), rep(0, p)))
  for (step in 1:60) {
    mu <- if (family == "logistic") plogis(design %*% z) else exp(design %*% z)
    w <- if (family == "logistic") mu * (1 - mu) else mu
    slope <- crossprod(design, y - mu) - c(0, z[-1])
    bend <- crossprod(design, design * c(w)) + diag(c(0, rep(1, p)), p + 1)
    if (!is.null(level)) {
      slope[1] <- slope[1] - (z[1] - level[1]) / level[2]^2
      bend[1, 1] <- bend[1, 1] + 1 / level[2]^2
    }
    z <- z + solve(bend, slope)
  }
  steps <- seq(-8, 8, by = 0.5)
  unit <- t(as.matrix(expand.grid(rep(list(steps), p + 1))))
  turn <- backsolve(chol(bend), diag(p + 1))
  values <- log_density(c(z) + turn %*% unit)
  top <- max(values)
  top + log(sum(exp(values - top))) + (p + 1) * log(0.5) + sum(log(diag(turn)))
}

log_integral <- function(h, from, to, points) {
  at <- seq(from, to, length.out = points)
  values <- vapply(at, h, 0)
  top <- max(values)
  top + log(sum(exp(values - top)) * (at[2] - at[1]))
}

laws <- function(p) list(
  "jzs(1)" = function(v) list(g = exp(v), log_p = 0.5 * (log(n / 2) - v) - lgamma(0.5) - n / 2 * exp(-v)),
  "hyper-g(3)" = function(v) list(g = exp(v), log_p = log(0.5) + v - 1.5 * log1p(exp(v))),
  "robust" = function(v) {
    least <- (n + 1) / (p + 1)
    list(g = least - 1 + least * exp(v), log_p = log(0.5) + v - 1.5 * log1p(exp(v)))
  }
)
evidence <- function(family, y, columns, prior, level) {
  if (ncol(columns) == 0) return(given(family, y, columns, 1, level))
  if (prior == "g-prior(n)") return(given(family, y, columns, n, level))
  law <- laws(ncol(columns))[[prior]]
  log_integral(function(v) {
    at <- law(v)
    at$log_p + given(family, y, columns, at$g, level)
  }, -14, 24, 120)
}

out <- c()
add <- function(family, y, formula, columns, prior, level, intercept) {
  value <- evidence(family, y, columns, prior, level)
  out <<- c(out, sprintf('{"family": "%s", "formula": "%s", "prior": "%s", "intercept": "%s", "log_evidence": %.9f}',
                         family, formula, prior, intercept, value))
}
none <- x[, 0]
for (prior in c("jzs(1)", "hyper-g(3)", "robust", "g-prior(n)")) {
  add("logistic", data$y, "y ~ x1 + x2", x, prior, NULL, "flat")
  add("poisson", data$k, "k ~ x1 + x2", x, prior, c(0.5, 2), "normal(0.5, 2)")
}
add("logistic", data$y, "y ~ 1", none, "jzs(1)", NULL, "flat")
add("logistic", data$y, "y ~ x2", x[, 2, drop = FALSE], "jzs(1)", NULL, "flat")
add("poisson", data$k, "k ~ x1", x[, 1, drop = FALSE], "hyper-g(3)", NULL, "flat")
writeLines(c("[", paste(out, collapse = ",\n"), "]"), file.path(folder, "g_priors_glm.json"))
