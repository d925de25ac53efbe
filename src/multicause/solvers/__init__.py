"""Learning algorithms other than full-data EM."""
