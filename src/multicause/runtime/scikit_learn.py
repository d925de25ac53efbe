"""Names of scikit-learn that are private there and needed by its extensions; no other file imports private names.

If a new release of scikit-learn moves or changes one of them, this file is the place to follow.
"""

from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import HasMethods, Interval, Options, StrOptions
from sklearn.utils.validation import _check_sample_weight as check_sample_weight

__all__ = ["HasMethods", "Interval", "Options", "StrOptions", "check_sample_weight", "fit_context"]
