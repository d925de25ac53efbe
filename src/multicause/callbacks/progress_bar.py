"""A progress bar for terminals and notebooks."""

from typing import Any

from multicause.callbacks.adapter import SklearnProgressBar


class ProgressBar(SklearnProgressBar):
    """Bars with percentage and remaining time: scikit-learn's, of which each model here fills one.

    Set it on a model alone, or on a grid search or pipeline around it, which then shows bars of all levels. The time
    that remains is that until ``max_iter``; learning may converge long before, and the bar is then full at once. The
    bar of a fit that Ctrl-C ends stays where it is. It needs rich (``pip install 'multicause[app]'``), and ipywidgets
    to move in a notebook.

    Parameters
    ----------
    max_propagation_depth : int or None, default=1
        How many levels of models inside each other have bars; None means all.

    Examples
    --------
    >>> import numpy as np
    >>> from multicause import MixtureOfGaussians
    >>> from multicause.callbacks import ProgressBar
    >>> X = np.random.RandomState(0).normal(size=(50, 2))
    >>> model = MixtureOfGaussians(2, random_state=0).set_callbacks(ProgressBar())
    >>> model.fit(X)  # doctest: +ELLIPSIS
    MixtureOfGaussians - fit ...
    """

    every_iteration = False

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Scikit-learn's hook after a task, which fills the bar of a fit that has ended."""
        if not getattr(context, "interrupted", False):
            super().on_fit_task_end(estimator=estimator, context=context)
