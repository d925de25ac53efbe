"""What a user calls: the scikit-learn side of all models."""
