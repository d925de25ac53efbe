"""Learning: the EM loop, annealing, convergence, and how components move."""
