"""serps -> features: who clicked what, factored into vectors of users and items."""
