"""What a result says, as facts: runs, models, replays."""
