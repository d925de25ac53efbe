"""Published models: each file is equations, reference and wiring."""
