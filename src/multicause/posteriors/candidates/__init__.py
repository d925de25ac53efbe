"""Helpers of the posterior ``Preselected``: scores and expectations over states of a few candidates of each row."""
