"""Contents of a report: selected numbers of a fitted model and of the rows it explains."""

from __future__ import annotations

import base64
import warnings as python_warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from multicause.app.preparation import PreparedModel
from multicause.app.report.encoding import encoded, short, shrink_factor, shrunk, thinned
from multicause.metrics.reconstruction import ReconstructionQuality, reconstruction_quality
from multicause.outcomes import Outcome
from multicause.plotting.validation import LEAST_SPAN, is_signed

# Number of rows shown as examples and for each component, and largest number of values of all pictures together.
N_EXAMPLES = 24
ROWS_PER_COMPONENT = 8
COMPONENT_VALUES = 700_000
ROW_VALUES = 1_400_000
# Largest number of values of components that can be downloaded from the page.
MOST_EXACT = 400_000
# Number of rows from which the energy explained by each component is estimated.
ENERGY_ROWS = 400
# Number of rows that are compared to find those that use a component most.
USERS_COMPARED = 64
# Number of causes and states listed for a row, of features for a component, and of points of a curve.
N_CAUSES, N_STATES, N_FEATURES, N_POINTS = 8, 4, 12, 600
CURVES = {
    "lower_bounds_": "mean {history} of a row",
    "temperatures_": "temperature",
    "rows_kept_": "share of rows used for learning",
    "contrasts_": "contrast: energy of samples minus energy of data",
    "acceptance_rates_": "acceptance rate of the chains",
}


def collect(
    model: PreparedModel,
    X: np.ndarray,
    *,
    image_shape: tuple[int, int] | None,
    kind: str,
    feature_names: Sequence[str] | None,
    title: str,
    warnings: Sequence[str],
    component_curve: Any = None,
    reasons: Sequence[str] = (),
    media: dict[str, Any] | None = None,
    axes: str | None = None,
) -> dict[str, Any]:
    """Return everything that the page needs, as plain values."""
    H = len(model.components_)
    # The mean of a centred row is shown with it, but no component explains it.
    original, levels = X, model.row_levels(X)
    X = X - levels
    with python_warnings.catch_warnings():
        # Rows of a data frame come without their column names here.
        python_warnings.filterwarnings("ignore", message="X does not have valid feature names")
        causes = np.asarray(model.transform(X))[:, :H]
        probabilities = model.has_probabilities
        use = causes if probabilities else np.abs(causes)
        chosen, examples, users = choose_rows(model, X, causes, use)
        energy = energy_explained(model, X, causes)
        quality = reconstruction_quality(model, original) if hasattr(model, "reconstruct") else None
        rows = describe_rows(model, X[chosen], causes[chosen])
        complete = model.impute(X[chosen]) if np.isnan(X[chosen]).any() else X[chosen]
    chosen_levels, reconstructions = levels[chosen].astype(float), rows.pop("reconstructions")
    place = {int(row): number for number, row in enumerate(chosen)}
    shape = (1, X.shape[1]) if image_shape is None else image_shape
    factor = max(
        shrink_factor(H, X.shape[1], COMPONENT_VALUES, flat=image_shape is None),
        shrink_factor(2 * len(chosen), X.shape[1], ROW_VALUES, flat=image_shape is None),
    )
    components = np.asarray(model.components_, dtype=float)
    activity = causes.mean(axis=0) if probabilities else np.sqrt((causes**2).mean(axis=0))
    return {
        "title": title,
        "model": type(model.estimator).__name__,
        "reasons": list(reasons),
        "media": media,
        "axes": axes,
        "names": None if feature_names is None else [str(name) for name in feature_names],
        "kind": kind,
        "probabilities": probabilities,
        "score": model.value_labels().score,
        "components": {
            **pictures(components, shape, factor),
            "signed": is_signed(components),
            "exact": exact_values(components),
            "activity": [short(value) for value in activity],
            "energy": [short(value) for value in energy],
            "features": [top_features(component, feature_names) for component in components]
            if kind == "table"
            else None,
            "users": [[place[int(row)] for row in best if use[row, h] > 0] for h, best in enumerate(users)],
        },
        "rows": {
            **row_pictures(
                complete + chosen_levels,
                None if reconstructions is None else reconstructions + chosen_levels,
                shape,
                factor,
            ),
            "signed": is_signed(original),
            "errors": None if reconstructions is None else root_mean_squares(X[chosen] - reconstructions),
            "numbers": [int(row) for row in chosen],
            "examples": [place[int(row)] for row in examples],
            "first": place[most_explained(model, X, causes, examples)],
            **rows,
        },
        "curves": [*described_curve(component_curve), *curves(model)],
        "facts": facts(model, original, kind, image_shape, factor, quality),
        "outcome": {"name": model.outcome_, "good": model.outcome_ == Outcome.CONVERGED.value},
        "warnings": all_warnings(model, warnings),
        "settings": [[name, repr(value)] for name, value in model.get_params(deep=False).items()],
    }


def choose_rows(
    model: Any, X: np.ndarray, causes: np.ndarray, use: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Return the rows that are shown, those that are examples, and those that use each component most."""
    n, H = use.shape
    examples = np.sort(check_random_state(0).choice(n, min(N_EXAMPLES, n), replace=False))
    affordable = (ROW_VALUES // (2 * X.shape[1]) - len(examples)) // H
    per_component = min(n, ROWS_PER_COMPONENT, max(ROWS_PER_COMPONENT // 2, affordable))
    empty = np.asarray(model.inverse_transform(np.zeros((1, H), dtype=causes.dtype)))
    users = [rows_using(model, X, causes, use, h, empty)[:per_component] for h in range(H)]
    return np.unique(np.concatenate([examples, *users])), examples, users


def rows_using(model: Any, X: np.ndarray, causes: np.ndarray, use: np.ndarray, h: int, empty: np.ndarray) -> np.ndarray:
    """Return the rows that use component h most, best first.

    Many rows use a component with a probability that is practically one. Among rows whose uses are equal within a
    hundredth (of the largest one), those come first of which the component explains most: the share of ‖y − r(0)‖² by
    which the error of the reconstruction r(s) of the posterior means s grows without the component. It is computed for
    some rows, which are chosen by the angle between y − r(0), with r(0) = ``empty``, and the component.
    """
    level = np.rint(100 * use[:, h] / max(use[:, h].max(), np.finfo(float).tiny)).astype(int)
    enough = np.sort(level)[-min(len(level), USERS_COMPARED)]
    candidates = np.flatnonzero(level >= enough)
    if len(candidates) > USERS_COMPARED:
        differences = np.nan_to_num((X[candidates] - empty).astype(float))
        lengths = np.maximum(np.linalg.norm(differences, axis=1), np.finfo(float).tiny)
        near = np.abs(differences @ np.asarray(model.components_[h], dtype=float)) / lengths
        order = np.lexsort((-near, -level[candidates]))
        candidates = candidates[order[:USERS_COMPARED]]
    without = causes[candidates].copy()
    without[:, h] = 0
    rows = X[candidates].astype(float)
    errors = [np.nansum((rows - model.inverse_transform(s)) ** 2, axis=1) for s in (without, causes[candidates])]
    total, missed = np.nansum((rows - empty) ** 2, axis=1), errors[0] - errors[1]
    share = np.divide(missed, total, out=np.zeros(len(total)), where=total > 0)
    return candidates[np.lexsort((-share, -level[candidates]))]


def most_explained(model: Any, X: np.ndarray, causes: np.ndarray, among: np.ndarray) -> int:
    """Return the row, among some, of which the causes s explain most: the largest ‖y − r(0)‖² − ‖y − r(s)‖².

    The page shows it first: a row that is nearly flat, of which photographs have many, would tell nothing of the model.
    """
    rows, causes = X[among].astype(float), causes[among]
    errors = [np.nansum((rows - model.inverse_transform(s)) ** 2, axis=1) for s in (np.zeros_like(causes), causes)]
    return int(among[np.argmax(errors[0] - errors[1])])


def energy_explained(model: Any, X: np.ndarray, causes: np.ndarray) -> np.ndarray:
    """Compute the share of the explained energy that is lost if one component is switched off: (H,).

    With r(s) the data generated by causes s, it is Σ ‖y − r(s without h)‖² − ‖y − r(s)‖² over Σ ‖y − r(0)‖², for the
    posterior means s of some rows. If no active cause generates the mean of the data, as in principal components, the
    latter is their variance; if it generates zero, their sum of squares.
    """
    some = np.sort(check_random_state(0).choice(len(X), min(ENERGY_ROWS, len(X)), replace=False))
    rows, causes = X[some], causes[some]
    total = _error(model, rows, np.zeros_like(causes))
    left = _error(model, rows, causes)
    missed = np.empty(len(model.components_))
    for h in range(len(missed)):
        without = causes.copy()
        without[:, h] = 0
        missed[h] = _error(model, rows, without) - left
    return missed / total if total > 0 else np.full(len(missed), np.nan)


def _error(model: Any, rows: np.ndarray, causes: np.ndarray) -> float:
    return float(np.nansum((rows - model.inverse_transform(causes)) ** 2, dtype=float))


def describe_rows(model: Any, X: np.ndarray, causes: np.ndarray) -> dict[str, Any]:
    """Return reconstructions, scores and posteriors of rows; None for those that the model does not have."""
    strongest = np.argsort(-np.abs(causes), axis=1, kind="stable")[:, :N_CAUSES]
    listed = [[[int(h), short(row[h])] for h in best] for row, best in zip(causes, strongest, strict=True)]
    states = None
    if model.has_states:
        posterior = model.recognize(X, top=N_STATES)
        evidence = posterior.log_evidence
        states = [
            [[np.flatnonzero(state > 0.5).tolist(), short(p)] for state, p in zip(*row, strict=True)]
            for row in zip(posterior.states, posterior.probabilities, strict=True)
        ]
    else:
        evidence = model.score_samples(X)
    reconstructions = np.asarray(model.reconstruct(X), dtype=float) if hasattr(model, "reconstruct") else None
    scores = [short(score) for score in evidence]
    return {"reconstructions": reconstructions, "causes": listed, "states": states, "scores": scores}


def exact_values(components: np.ndarray) -> str | None:
    """Encode components for download in single precision; None if there are too many of them for a page."""
    if components.size > MOST_EXACT:
        return None
    return base64.b64encode(np.ascontiguousarray(components, dtype="<f4").tobytes()).decode("ascii")


def root_mean_squares(differences: np.ndarray) -> list[float | None]:
    """Return the root mean square of the observed values of each row."""
    with np.errstate(invalid="ignore"):
        return [short(value) for value in np.sqrt(np.nanmean(differences**2, axis=1, dtype=float))]


def pictures(rows: np.ndarray, shape: tuple[int, int], factor: int) -> dict[str, Any]:
    """Encode rows as bytes, each scaled to its own range."""
    small, shape = shrunk(rows, shape, factor)
    return {**encoded(small, small.min(axis=1), small.max(axis=1)), "shape": shape}


def row_pictures(
    rows: np.ndarray, reconstructions: np.ndarray | None, shape: tuple[int, int], factor: int
) -> dict[str, Any]:
    """Encode rows and their reconstructions with common limits, which include zero, so that it keeps its colour."""
    small, new_shape = shrunk(rows, shape, factor)
    low, high = np.minimum(small.min(axis=1), 0), np.maximum(small.max(axis=1), 0)
    # Otherwise a nearly empty row would show its rounding errors.
    low, high = np.minimum(low, LEAST_SPAN * low.min()), np.maximum(high, LEAST_SPAN * high.max())
    picture_bytes = None
    if reconstructions is not None:
        small_reconstructions, _ = shrunk(reconstructions, shape, factor)
        low, high = (
            np.minimum(low, small_reconstructions.min(axis=1)),
            np.maximum(high, small_reconstructions.max(axis=1)),
        )
        picture_bytes = encoded(small_reconstructions, low, high)["bytes"]
    return {**encoded(small, low, high), "shape": new_shape, "reconstructions": picture_bytes}


def top_features(component: np.ndarray, names: Sequence[str] | None) -> list[list[Any]]:
    """Return names and weights of the features with the largest weights in a component."""
    best = np.argsort(-np.abs(component), kind="stable")[:N_FEATURES]
    return [[str(names[d]) if names is not None else f"feature {d}", short(component[d])] for d in best]


def all_warnings(model: Any, warnings: Sequence[str]) -> list[str]:
    """Return the given warnings, and advice on the outcome if they do not contain it."""
    advice = model.explain_outcome(Outcome(model.outcome_))
    # The last batch of a stream has the same outcome although nothing is wrong.
    streamed = model.outcome_ == Outcome.MAX_ITER.value and model.n_iter_ < model.max_iter
    said = advice is None or streamed or any(advice.meaning in text for text in warnings)
    return [*warnings] if said else [*warnings, str(advice)]


def described_curve(curve: Any) -> list[dict[str, Any]]:
    """Return the held-out scores by number of components, if they were computed."""
    if curve is None:
        return []
    fields = curve if isinstance(curve, dict) else vars(curve)
    best = f"{fields['best']} components are the smallest number whose held-out score is not clearly below the highest"
    return [
        {
            "label": "mean score of held-out rows, by number of components",
            "unit": "components",
            "places": [int(number) for number in fields["numbers"]],
            "values": [short(score) for score in fields["scores"]],
            "changes": [],
            "note": best,
        }
    ]


def curves(model: Any) -> list[dict[str, Any]]:
    """Return the learning curves that were recorded and are not constant."""
    recorded_curves = []
    for attribute, label in CURVES.items():
        recorded = getattr(model, attribute, None)
        values = np.asarray([] if recorded is None else recorded, dtype=float)
        still = attribute in ("temperatures_", "rows_kept_") and bool((values == 1).all())
        if len(values) > 1 and np.isfinite(values).any() and not still:
            places, thinned_values = thinned(values, N_POINTS)
            changes = getattr(model, "bound_changes_", ()) if attribute == "lower_bounds_" else ()
            label = label.format(history=model.value_labels().history)
            recorded_curves.append(
                {
                    "label": label,
                    "unit": "iteration",
                    "places": places,
                    "values": thinned_values,
                    "changes": [list(change) for change in changes],
                }
            )
    return recorded_curves


def facts(
    model: Any,
    X: np.ndarray,
    kind: str,
    image_shape: tuple[int, int] | None,
    factor: int,
    quality: ReconstructionQuality | None,
) -> list[tuple[str, str]]:
    """Return the key numbers of a model and its data."""
    size = f"{X.shape[1]} features" if image_shape is None else f"{image_shape[0]}×{image_shape[1]} {kind}"
    numbers = [
        ("components", str(len(model.components_))),
        ("rows", f"{len(X):,} of {size}"),
        ("iterations", f"{int(model.n_iter_):,}"),
    ]
    n_missing = int(np.isnan(X).sum())
    if n_missing:
        numbers.append(("missing values", f"{n_missing:,} of {X.size:,}, shown as imputed"))
    if np.isfinite(model.lower_bound_):
        numbers.append((f"mean {model.value_labels().bound}", f"{model.lower_bound_:.4g}".replace("-", "−")))
    if quality is not None:
        numbers += [(name, value) for name, value in described_quality(quality) if value is not None]
        if np.isfinite(quality.r2) and quality.r2 < 1:
            numbers.append(("signal-to-noise ratio", f"{-10 * np.log10(1 - quality.r2):.1f} dB".replace("-", "−")))
    variance = getattr(model, "noise_variance_", None)
    if variance is not None and np.ndim(variance) == 0:
        numbers.append(("noise, standard deviation", f"{np.sqrt(variance):.4g}"))
    if np.isfinite(getattr(model, "evidence_threshold_", np.nan)):
        numbers.append(("rows with typical evidence", f"{model.is_explained(X).mean():.1%}"))
    if factor > 1:
        numbers.append(("pictures", f"shown at 1/{factor} of their resolution"))
    return numbers


def described_quality(quality: ReconstructionQuality) -> list[tuple[str, str | None]]:
    """Return names and values of the explained variance; None if there is none to explain."""
    names = ("variance explained, R²", "R² without row means")
    return [
        (name, f"{value:.3f}".replace("-", "−") if np.isfinite(value) else None)
        for name, value in zip(names, quality, strict=True)
    ]
