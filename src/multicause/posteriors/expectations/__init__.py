"""What several posteriors share: expectations over lists of states, sums over rows, missing values, precision."""
