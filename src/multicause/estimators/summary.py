"""Summary table of the models of TN10, after the appendix of the chapter: equations, and parts of each model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from multicause.engines import Local

HEADINGS = ("model", "causes and data", "recognition", "learning", "prior × combination × noise", "posterior, update")


class ModelSummary(NamedTuple):
    """One-line description of a model."""

    generative: str
    recognition: str
    learning: str


#: Equations of the models, in the notation of the appendix.
SUMMARIES = {
    "MixtureOfGaussians": ModelSummary(
        "P[v] = γ_v; p[u|v] = N(u; g_v, Σ_v)",
        "P[v|u] ∝ γ_v N(u; g_v, Σ_v)",
        "γ_v = ⟨P[v|u]⟩; g_v = ⟨P[v|u] u⟩/γ_v; Σ_v = ⟨P[v|u] |u − g_v|²⟩/(D γ_v)",
    ),
    "MixtureOfPoissons": ModelSummary(
        "P[v] = γ_v; P[u|v] = Π_b Poisson(u_b; g_vb)",
        "P[v|u] ∝ γ_v P[u|v]",
        "γ_v = ⟨P[v|u]⟩; g_v = ⟨P[v|u] u⟩/γ_v",
    ),
    "KMeans": ModelSummary(
        "P[v] = 1/K; p[u|v] = N(u; g_v, Σ), Σ → 0",
        "v(u) = argmin_v |u − g_v|²",
        "g_v = mean of the rows with v(u) = v",
    ),
    "FactorAnalysis": ModelSummary(
        "p[v] = N(v; 0, 1); p[u|v] = N(u; G·v, diag Σ)",
        "p[v|u] = N(v; W·u, Ψ); Ψ = (1 + GᵀΣ⁻¹G)⁻¹; W = ΨGᵀΣ⁻¹",
        "G = C·Wᵀ(W·C·Wᵀ + Ψ)⁻¹; Σ = diag(GΨGᵀ + (1 − GW)·C·(1 − GW)ᵀ); C = ⟨uu⟩",
    ),
    "PrincipalComponents": ModelSummary(
        "p[v] = N(v; 0, 1); u = G·v", "v = W·u; W = (GᵀG)⁻¹Gᵀ", "G = C·Wᵀ(W·C·Wᵀ)⁻¹; C = ⟨uu⟩: eigenvectors of C"
    ),
    "SparseCoding": ModelSummary(
        "p[v] ∝ Π_a exp(g(v_a)); p[u|v] = N(u; G·v, σ²)",
        "Gᵀ(u − G·v)/σ² + g′(v) = 0",
        "G ← G + ε(u − G·v)v; |G_a|² ← |G_a|² (var(v_a)/σ_v²)^α",
    ),
    "IndependentComponents": ModelSummary(
        "p[v] ∝ Π_a exp(g(v_a)); u = G·v",
        "v = W·u; W = G⁻¹",
        "W ← W + ε(W + g′(v)[v·W]), or a second-order method of the same gradient",
    ),
    "HelmholtzMachine": ModelSummary(
        "P[v] = Π f(g); P[u|v] = Π f(h + G·v)",
        "Q[v; u, W] = Π f(w + W·u)",
        "wake: G ← G + ε(u − f(h + G·v))v, g, h alike; sleep: W ← W + ε(v − f(w + W·u))u, w alike",
    ),
}


def summary_table(estimators: Iterable[type[Any]]) -> str:
    """Return a Markdown table with one line for each of some classes of models, whose parts it reads from them."""
    lines = ["| " + " | ".join(HEADINGS) + " |", "|" + " --- |" * len(HEADINGS)]
    for estimator in estimators:
        model = estimator()._wire(Local().load(np.zeros((100, 10))))
        brief = SUMMARIES[estimator.__name__]
        joint = " × ".join(_describe(part) for part in (model.prior, model.combination, model.noise))
        how = ", ".join(_describe(part) for part in (model.posterior, model.update))
        cells = (f"`{estimator.__name__}`", brief.generative, brief.recognition, brief.learning, joint, how)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _describe(part: Any) -> str:
    """Return the class of a part, with hyper-parameters that differ from the defaults."""
    default = type(part)().get_params()
    changed = [f"{name}={value!r}" for name, value in part.get_params().items() if value != default[name]]
    return f"`{type(part).__name__}({', '.join(changed)})`" if changed else f"`{type(part).__name__}`"
