"""Base classes of all models as scikit-learn estimators."""
