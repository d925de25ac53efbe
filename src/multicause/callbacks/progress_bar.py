"""Callback that shows a progress bar in terminals and notebooks."""

from typing import Any

from multicause.callbacks.adapter import SklearnProgressBar


class ProgressBar(SklearnProgressBar):
    """Progress bars with percentage and remaining time: those of scikit-learn, with one bar per model.

    Set it on a single model, or on a grid search or pipeline around it, which then shows bars of all levels. The
    remaining time is that until ``max_iter``; if learning converges earlier, the bar jumps to its end. The bar of a fit
    that Ctrl-C ends stays where it is. It needs rich (``pip install 'multicause[app]'``), and ipywidgets for updates in
    a notebook.

    Parameters
    ----------
    max_propagation_depth : int or None, default=1
        Number of levels of nested models that have bars; None means all.

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
        """Fill the bar of a fit that has ended (hook of scikit-learn)."""
        if not getattr(context, "interrupted", False):
            super().on_fit_task_end(estimator=estimator, context=context)
