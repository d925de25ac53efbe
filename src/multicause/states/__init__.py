"""Lists of binary states, used by combinations and posteriors."""
