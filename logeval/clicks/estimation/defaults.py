"""When EM stops, and how many draws of the posterior are kept, unless users say otherwise."""

ITERATIONS = 10_000
TOLERANCE = 1e-9  # of the relative change of likelihood
DRAWS = 20
