"""Helpers of the posterior ``Beam``: the search for states of a row, and expectations over the states that it finds."""
