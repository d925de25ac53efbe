"""Published models: each file holds the reference, equations and declaration of a model or a family of models."""
