"""Initial parameters of all models, and checks of the data from which they are drawn.

- ``parameters``: components by ``init`` (random, rows, an array or another model); other parameters by the parts
- ``means``: means of mixtures
- ``rotations``: components of whitened data (ICA)
- ``networks``: weights of Helmholtz machines
- ``filters``: filters of energy-based models
- ``scaling``: scales of the components of restricted causes, sparse coding and spike-and-slab causes
- ``conditions``, ``data_checks``: inputs of these functions, and errors for data that no model can explain

``Combination.initialize`` draws the random components that suit a combination rule. Components that replace unused ones
while a model learns are made in ``search/revival.py``.
"""
