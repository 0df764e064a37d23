"""What a ranking, or a learning policy, would have earned on the traffic that was logged."""
