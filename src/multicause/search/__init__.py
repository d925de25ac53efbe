"""Learning without settings: choice of the temperature, annealing, repair and restarts."""
