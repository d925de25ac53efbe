"""Helpers of the posterior ``Beam``: the search for states of a row, and expectations over what it finds."""
