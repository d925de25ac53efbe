"""Posteriors: the states that are considered for each row, and their probabilities."""

from multicause.expectations import Inference, Recognized
from multicause.posteriors.base import Posterior
from multicause.posteriors.beam import Beam
from multicause.posteriors.candidate_selection import ByFunction, ScalarProduct, Selection, UpperBound
from multicause.posteriors.evolved import Evolved
from multicause.posteriors.exact import Exact
from multicause.posteriors.inverse import Inverse
from multicause.posteriors.linear_gaussian import LinearGaussian
from multicause.posteriors.one_hot import OneHot
from multicause.posteriors.point_estimate import MostProbable
from multicause.posteriors.preselected import Preselected
from multicause.posteriors.recognition_network import RecognitionNetwork
from multicause.posteriors.truncated import Truncated

# Number of causes up to which all states are considered by default: 1024 states per row are as fast as a selection.
MOST_ENUMERATED = 10
NAMES: dict[str, type] = {
    "exact": Exact,
    "truncated": Truncated,
    "preselected": Preselected,
    "beam": Beam,
    "evolved": Evolved,
}


def choose_posterior(n_components: int, n_strengths: int = 1) -> Posterior:
    """Return the default posterior: all states of few causes, and Expectation Truncation for more."""
    return default_posteriors(n_components, n_strengths)[0]


def default_posteriors(n_components: int, n_strengths: int = 1) -> tuple[Posterior, Posterior]:
    """Return the posteriors that ``posterior=None`` may stand for, the one for this number of causes first.

    ``n_strengths`` is the number of values that an active cause may have.
    """
    defaults = (Exact(), Preselected(keep=None))
    few = (1 + n_strengths) ** min(n_components, MOST_ENUMERATED + 1) <= 2**MOST_ENUMERATED
    return defaults if few else defaults[::-1]


__all__ = [
    "NAMES",
    "Beam",
    "ByFunction",
    "Evolved",
    "Exact",
    "Inference",
    "Inverse",
    "LinearGaussian",
    "MostProbable",
    "OneHot",
    "Posterior",
    "Preselected",
    "RecognitionNetwork",
    "Recognized",
    "ScalarProduct",
    "Selection",
    "Truncated",
    "UpperBound",
    "choose_posterior",
]
