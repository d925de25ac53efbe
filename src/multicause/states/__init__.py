"""Lists of states, used by combinations and posteriors."""
