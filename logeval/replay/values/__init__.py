"""The value of a target: cells with weights, click models, support, intervals."""
