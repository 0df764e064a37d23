"""Is one of these policies better than today's ranker, in clicks, over the same traffic?"""
