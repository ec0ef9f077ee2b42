# Writes reference values for g-priors of logistic, probit and Poisson models, for crates/consilience/tests/numbers/g_priors_glm.rs.
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
  k = qpois(noise, exp(-0.2 + 0.35 * x1 + 0.1 * x2)),
  # An outcome that is rare, a time at risk, and an offset with a constant in it.
  rare = as.integer(noise < 0.02 + 0.05 * (x1 > 0.5)),
  time = round(40 * exp(sin(0.9 * i)), 2),
  known = round(5 + cos(1.3 * i), 3)
)
write.csv(data, file.path(folder, "g_priors_glm.csv"), row.names = FALSE, quote = FALSE)
x <- cbind(x1, x2)

likelihood <- function(family, y, eta) {
  switch(family,
         logistic = colSums(y * eta - log1p(exp(eta))),
         probit = colSums(y * pnorm(eta, log.p = TRUE) + (1 - y) * pnorm(-eta, log.p = TRUE)),
         poisson = colSums(y * eta - exp(eta) - lgamma(y + 1)))
}
fitted_mean <- function(family, eta) switch(family, logistic = plogis(eta), probit = pnorm(eta), poisson = exp(eta))
# Of a row: its expected information about its predictor, and its slope.
information <- function(family, eta) switch(family,
  logistic = plogis(eta) * plogis(-eta), probit = dnorm(eta)^2 / (pnorm(eta) * pnorm(-eta)), poisson = exp(eta))
slope_of <- function(family, y, eta)
  if (family == "probit") (y - pnorm(eta)) * dnorm(eta) / (pnorm(eta) * pnorm(-eta)) else y - fitted_mean(family, eta)

# log p(y | g): intercept at the columns' means flat or normal(m, s), coefficients N(0, g / information), where the
# information is the expected one at coefficients of 0 and the intercept that the likelihood has there.
given <- function(family, y, columns, g, level, offset) {
  p <- ncol(columns)
  null <- uniroot(function(a) sum(slope_of(family, y, a + offset)), c(-30, 30), tol = 1e-12)$root
  weight <- information(family, null + offset)
  design <- if (p > 0) {
    centred <- sweep(columns, 2, colSums(columns * weight) / sum(weight))
    root <- chol(crossprod(centred, centred * weight))
    cbind(1, centred %*% backsolve(root, diag(p)) * sqrt(g))
  } else matrix(1, n, 1)
  log_density <- function(z) {
    value <- likelihood(family, y, offset + design %*% z)
    if (p > 0) value <- value - 0.5 * p * log(2 * pi) - 0.5 * colSums(z[-1, , drop = FALSE]^2)
    if (!is.null(level)) value <- value + dnorm(z[1, ], level[1], level[2], log = TRUE)
    value
  }
  z <- matrix(c(null, rep(0, p)))
  for (step in 1:60) {
    eta <- offset + design %*% z
    w <- information(family, eta)
    slope <- crossprod(design, slope_of(family, y, eta)) - c(0, z[-1])
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
evidence <- function(family, y, columns, prior, level, offset) {
  if (ncol(columns) == 0) return(given(family, y, columns, 1, level, offset))
  if (prior == "g-prior(n)") return(given(family, y, columns, n, level, offset))
  law <- laws(ncol(columns))[[prior]]
  log_integral(function(v) {
    at <- law(v)
    at$log_p + given(family, y, columns, at$g, level, offset)
  }, -14, 24, 120)
}

out <- c()
add <- function(family, y, formula, columns, prior, level, intercept, offset = rep(0, n)) {
  value <- evidence(family, y, columns, prior, level, offset)
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
for (prior in c("jzs(1)", "g-prior(n)")) {
  add("probit", data$y, "y ~ x1 + x2", x, prior, NULL, "flat")
  add("probit", data$rare, "rare ~ x1", x[, 1, drop = FALSE], prior, NULL, "flat")
  add("poisson", data$k, "k ~ x1 + x2 + offset(log(time))", x, prior, NULL, "flat", log(data$time))
  add("logistic", data$y, "y ~ x1 + x2 + offset(known)", x, prior, NULL, "flat", data$known)
}
writeLines(c("[", paste(out, collapse = ",\n"), "]"), file.path(folder, "g_priors_glm.json"))
