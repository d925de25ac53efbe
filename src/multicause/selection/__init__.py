"""Choosing the number of components: held-out scores of several numbers, and components that a model does not need."""

from multicause.selection.curve import ComponentCurve, component_curve
from multicause.selection.surplus import SurplusComponents, surplus_components

__all__ = ["ComponentCurve", "SurplusComponents", "component_curve", "surplus_components"]
