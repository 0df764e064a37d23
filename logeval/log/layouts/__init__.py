"""What the columns of somebody's log mean."""
