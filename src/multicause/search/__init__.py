"""Learning without settings: temperature, annealing, repair and restarts."""
