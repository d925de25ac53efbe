"""Ways to learn other than EM on all rows."""
