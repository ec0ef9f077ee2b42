"""Results: tables, figures and pages of the JSON document that the program writes too."""

from __future__ import annotations

import html
import json as _json
import math
import os
import textwrap
from typing import Any

import numpy as np

from . import _consilience
from ._errors import InputError

# How wide words are, as the program's.
_WIDTH = 80
_LEVELS = {"note": 0, "caution": 1, "unreliable": 2}


class Figure:
    """A picture. Notebooks show it; ``save`` writes it."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<consilience.Figure, {len(self.svg)} bytes of SVG; .save('figure.svg') or .save('figure.png')>"

    def save(self, path: str | os.PathLike) -> None:
        """Writes it as .svg or .png, as the name ends."""
        end = os.path.splitext(os.fspath(path))[1].lower()
        if end == ".svg":
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.svg)
        elif end == ".png":
            with open(path, "wb") as file:
                file.write(_consilience.png(self.svg, 2.0))
        else:
            raise InputError(f"{os.fspath(path)}: a figure is written as .svg or .png: give the file's name that end")


class Result:
    """What `compare`, `select` and `sweep` return: the program's JSON document, and what can be made of it."""

    def __init__(self, json: str, study: str | None = None) -> None:
        self._text = json
        self._study = study
        self._document = _json.loads(json)

    @property
    def json(self) -> dict[str, Any]:
        """The document, as docs/json.md describes it."""
        return self._document

    def save(self, path: str | os.PathLike) -> None:
        """Writes the document, which `consilience plot` reads."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(_json.dumps(self._document, indent=2, ensure_ascii=False) + "\n")

    @property
    def kinds(self) -> list[str]:
        """The kinds of figures that there are."""
        return _consilience.kinds(self._text)

    def plot(self, kind: str | None = None, *, model: str | None = None, width: int = 760) -> Figure:
        """A figure: one of :attr:`kinds`, the first of them by default."""
        kinds = self.kinds
        try:
            return Figure(_consilience.figure(self._text, kind or kinds[0], model, float(width)))
        except ValueError as error:
            raise InputError(str(error)) from None

    def report(self, path: str | os.PathLike) -> None:
        """Writes a page with figures, tables and words, for a browser: one HTML file without scripts."""
        page = _consilience.page(self._text, self._study)
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """All warnings: `level` (note, caution, unreliable), `code`, `message`, `advice`, `shard`, and `model` if it is
        about one."""
        out = [{"model": None, **w} for w in self._document.get("warnings", [])]
        for model in self._document.get("models", []):
            if isinstance(model, dict):
                out += [{"model": model.get("name"), **w} for w in model.get("warnings", [])]
        for scaled in self._document.get("prior_sensitivity") or []:
            for model in scaled["models"]:
                out += [{"model": model["name"], **w} for w in model.get("warnings", [])]
        return out

    @property
    def reliable(self) -> bool:
        """Whether no warning says that the result is not to be trusted."""
        return all(w["level"] != "unreliable" for w in self.warnings)

    def unreliable(self) -> str | None:
        """What is not to be trusted, in a sentence; None if all is well."""
        bad = [w for w in self.warnings if w["level"] == "unreliable"]
        if not bad:
            return None
        models = list(dict.fromkeys(w["model"] for w in bad if w["model"]))
        shards = {w["shard"] for w in bad if w.get("shard") is not None}
        about = (" of " + ", ".join(f"`{m}`" for m in models[:3]) + (", …" if len(models) > 3 else "")) if models else ""
        where = f" on {len(shards)} shard{'s' if len(shards) > 1 else ''}" if shards else ""
        first = bad[0]
        more = f" ({len(bad)} warnings; see .warnings)" if len(bad) > 1 else ""
        return f"the result{about} is not to be trusted{where}: {first['message']}; {first['advice']}{more}"

    def __reduce__(self):
        return _made, (type(self), self._text, self._study, self._extra())

    def _extra(self) -> dict[str, Any]:
        return {}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._text == other._text

    __hash__ = None  # type: ignore[assignment]


def _made(kind: type, text: str, study: str | None, extra: dict[str, Any]) -> Any:
    return kind(text, study, **extra)


# Numbers as the program writes them.


def _power(value: float, digits: int) -> str:
    return f"{value:.{digits}e}".replace("e-0", "e-").replace("e+0", "e+")


def _probability(value: float) -> str:
    if value == 0:
        return "< 1e-300"
    return f"{value:.4f}" if value >= 1e-4 else _power(value, 1)


def _times(log: float) -> str:
    """A factor of its logarithm, to two or three digits, however large."""
    if log < math.log(9.95):
        return f"{math.exp(log):.1f}"
    if log < math.log(9999.5):
        return f"{math.exp(log):.0f}"
    tens = log / math.log(10)
    power = math.floor(tens)
    digits = f"{10 ** (tens - power):.1f}"
    if digits == "10.0":
        digits, power = "1.0", power + 1
    return f"{digits.removesuffix('.0')}e{power}"


def _estimate(estimate: dict[str, Any]) -> str:
    """A value with as many decimals as its error bar is worth; four are enough to compare models by."""
    value, se = estimate["value"], estimate["se"]
    if se is None:
        return f"{value:.3f} (no error bar)"
    # Quadrature and closed forms err only by rounding.
    if 0 < se < 1e-6:
        return f"{value:.6f} ± {_power(se, 0)}"
    digits = 3 if se == 0 else 4 if 5e-5 <= se < 1e-3 else max(0, min(6, 1 - math.floor(math.log10(se))))
    return f"{value:.{digits}f} ± {se:.{digits}f}"


def _text_table(head: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    def line(row: list[str]) -> str:
        cells = [row[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(row[1:], widths[1:])]
        return "  ".join(cells).rstrip()
    return "\n".join(line(row) for row in [head, *rows])


def _html_table(head: list[str], rows: list[list[str]], caption: str, best: int | None) -> str:
    cell = html.escape
    out = ["<table>", f"<caption>{cell(caption)}</caption>", "<thead><tr>"]
    out += [f'<th style="text-align:{"left" if i == 0 else "right"}">{cell(h)}</th>' for i, h in enumerate(head)]
    out.append("</tr></thead><tbody>")
    for k, row in enumerate(rows):
        strong = ("<b>", "</b>") if k == best else ("", "")
        cells = [f'<td style="text-align:{"left" if i == 0 else "right"}">{strong[0]}{cell(c)}{strong[1]}</td>'
                 for i, c in enumerate(row)]
        out.append("<tr>" + "".join(cells) + "</tr>")
    out.append("</tbody></table>")
    return "".join(out)


class Comparison(Result):
    """The models of a study, compared."""

    def __init__(self, json: str, study: str | None = None, draws: dict[str, bytes] | None = None) -> None:
        super().__init__(json, study)
        self._draws = draws or {}

    def _extra(self) -> dict[str, Any]:
        return {"draws": self._draws}

    @property
    def models(self) -> list[dict[str, Any]]:
        """The document's models, in the study's order."""
        return self._document["models"]

    @property
    def best(self) -> str:
        """The name of the model with the highest posterior probability."""
        return self._document["best"]["name"]

    @property
    def probabilities(self) -> dict[str, float]:
        """Posterior model probabilities, by names."""
        return {m["name"]: m["probability"] for m in self.models}

    @property
    def log_evidence(self) -> dict[str, float]:
        """Log evidences, by names."""
        return {m["name"]: m["log_evidence"]["value"] for m in self.models}

    @property
    def se(self) -> dict[str, float | None]:
        """The log evidences' standard errors, by names."""
        return {m["name"]: m["log_evidence"]["se"] for m in self.models}

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        for m in self.models:
            low, high = m["probability_interval"] or (None, None)
            rows.append({
                "model": m["name"], "formula": m["formula"], "family": m["family"],
                "log_evidence": m["log_evidence"]["value"], "se": m["log_evidence"]["se"],
                "log_bayes_factor": m["log_bayes_factor"]["value"], "probability": m["probability"],
                "probability_low": low, "probability_high": high, "prior_probability": m["prior_probability"],
            })
        return rows

    def _parameter_rows(self, model: str | None) -> list[dict[str, Any]]:
        names = [m["name"] for m in self.models]
        if model is not None and model not in names:
            raise InputError(f"there is no model `{model}`; there are {', '.join(f'`{n}`' for n in names)}")
        return [{"model": m["name"], "parameter": p["name"], **{k: v for k, v in p.items() if k != "name"}}
                for m in self.models if model in (None, m["name"]) for p in m["parameters"]]

    def to_pandas(self) -> Any:
        """A row per model, by names."""
        import pandas
        return pandas.DataFrame(self._rows()).set_index("model")

    def to_polars(self) -> Any:
        """A row per model."""
        import polars
        return polars.DataFrame(self._rows(), infer_schema_length=None)

    def parameters(self, model: str | None = None) -> Any:
        """The parameters' posteriors, of all models or of one: pandas if it is installed, else a list of dicts."""
        rows = self._parameter_rows(model)
        try:
            import pandas
        except ImportError:
            return rows
        return pandas.DataFrame(rows).set_index(["model", "parameter"])

    def draws(self, model: str | None = None) -> dict[str, np.ndarray]:
        """Draws of a model's posterior (the best one's by default), by parameters. Needs `posterior=True`."""
        name = self.best if model is None else model
        self._parameter_rows(name)
        if name not in self._draws:
            raise InputError("no draws were kept; call compare(…, posterior=True)")
        parameters = [p["name"] for m in self.models if m["name"] == name for p in m["parameters"]]
        numbers = np.frombuffer(self._draws[name]).reshape(-1, len(parameters))
        return {p: numbers[:, j].copy() for j, p in enumerate(parameters)}

    def to_arviz(self, model: str | None = None) -> Any:
        """A model's posterior (the best one's by default) as ArviZ's InferenceData: the draws cut into four chains. They are
        not of Markov chains, so that R̂ and the like say little. Needs `posterior=True`."""
        import arviz
        name = self.best if model is None else model
        draws = self.draws(name)
        chains = 4
        cut = {p: x[: len(x) // chains * chains].reshape(chains, -1) for p, x in draws.items()}
        found = next(m for m in self.models if m["name"] == name)
        se = found["log_evidence"]["se"]
        attributes = {
            "model": name, "formula": found["formula"], "log_evidence": found["log_evidence"]["value"],
            "log_evidence_se": float("nan") if se is None else se, "probability": found["probability"],
            "inference_library": "consilience", "inference_library_version": _consilience.__version__,
        }
        data = arviz.from_dict(posterior=cut)
        data.posterior.attrs.update(attributes)
        return data

    def _table(self) -> tuple[list[str], list[list[str]], str]:
        """The models as the program shows them: the most probable first, with prior probabilities where they differ."""
        models = sorted(self.models, key=lambda m: (m["name"] != self.best, -m["probability"]))
        unequal = len({round(m["prior_probability"], 12) for m in models}) > 1
        head = ["model", "log evidence", "log Bayes factor", "odds", *(["prior"] if unequal else []), "probability"]
        rows = [[m["name"], _estimate(m["log_evidence"]),
                 "0 (best)" if m["strength"] is None else _estimate(m["log_bayes_factor"]),
                 "" if place == 0 else "1:" + _times(-m["log_odds"]["value"]),
                 *([_probability(m["prior_probability"])] if unequal else []), _probability(m["probability"])]
                for place, m in enumerate(models)]
        p = self._document["partition"]
        caption = f"{p['rows']:,} rows in {p['shards']} shard{'s' if p['shards'] != 1 else ''}"
        return head, rows, caption

    def _verdict(self) -> str:
        """What it comes to, in words, and how sure that is; nothing of a model alone."""
        best = self._document["best"]
        sentence = best.get("sentence")
        # Results that are not to be trusted have no errors that could be.
        if not sentence or not self.reliable:
            return sentence or ""
        if best["certainty"] is None:
            return sentence + " Without error bars it cannot be told how sure it is which comes first."
        if best["certainty"] > 0.9999:
            return sentence + " The Monte Carlo errors are too small to change that."
        return f"{sentence} Given the Monte Carlo errors, `{best['name']}` truly comes first with probability {best['certainty']:.4f}."

    def _notes(self) -> list[str]:
        """What one should know, each thing once."""
        seen: dict[tuple[str, str], int] = {}
        texts: dict[tuple[str, str], str] = {}
        for w in sorted(self.warnings, key=lambda w: -_LEVELS[w["level"]]):
            if w["level"] == "note":
                continue
            key = (w["level"], w["code"])
            seen[key] = seen.get(key, 0) + 1
            texts.setdefault(key, f"{w['level']}: {w['message']}; {w['advice']}")
        return [text + (f" ({seen[key]} times)" if seen[key] > 1 else "") for key, text in texts.items()]

    def __repr__(self) -> str:
        head, rows, caption = self._table()
        said, notes = self._verdict(), self._notes()
        if said:
            said = textwrap.fill(said, _WIDTH, break_long_words=False, break_on_hyphens=False)
        table = _text_table(head, rows)
        if max(map(len, table.splitlines())) > _WIDTH:
            # The probabilities say as much.
            odds = head.index("odds")
            head, *rows = ([*row[:odds], *row[odds + 1 :]] for row in (head, *rows))
            table = _text_table(head, rows)
        return "\n".join([caption, "", table, *(["", said] if said else []), *([""] + notes if notes else [])])

    def _repr_html_(self) -> str:
        said, notes = self._verdict(), self._notes()
        words = "".join(f"<p>{html.escape(text)}</p>" for text in ([said] if said else []) + notes)
        head, rows, caption = self._table()
        return _html_table(head, rows, caption, 0) + words


class Selection(Result):
    """A choice among many models: what :func:`select` returns."""

    @property
    def inclusion(self) -> dict[str, float]:
        """Each candidate's posterior probability of being in the model."""
        return {c["term"]: c["probability"] for c in self._document["inclusion"]}

    @property
    def models(self) -> list[dict[str, Any]]:
        """The most probable models."""
        return self._document["models"]

    def to_pandas(self) -> Any:
        """The most probable models, a row each."""
        import pandas
        return pandas.DataFrame([
            {"terms": " + ".join(m["terms"]) or "1", "probability": m["probability"],
             "log_evidence": m["log_evidence"]["value"] if isinstance(m["log_evidence"], dict) else m["log_evidence"]}
            for m in self.models
        ])

    def _table(self) -> tuple[list[str], list[list[str]]]:
        rows = sorted(self.inclusion.items(), key=lambda pair: -pair[1])
        return ["candidate", "probability"], [[t, _probability(p)] for t, p in rows[:20]]

    def __repr__(self) -> str:
        return _text_table(*self._table())

    def _repr_html_(self) -> str:
        return _html_table(*self._table(), "inclusion probabilities", None)


class Sweep(Result):
    """Many partitions: what :func:`sweep` returns."""

    def to_pandas(self) -> Any:
        """A row per combination, way to split, number of shards and model."""
        import pandas
        rows = []
        for group in self._document["groups"]:
            own = {k: v for k, v in group.items() if not isinstance(v, (list, dict))}
            for name, model in zip(self._document["models"], group["models"]):
                flat = {k: v for k, v in model.items() if not isinstance(v, (list, dict))}
                rows.append(own | {"model": name} | flat)
        return pandas.DataFrame(rows)

    def __repr__(self) -> str:
        groups = self._document["groups"]
        return f"<consilience.Sweep of {len(groups)} groups; .to_pandas(), .plot(), .report(path)>"
