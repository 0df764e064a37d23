"""One file per estimator; ``registry`` has their names."""
