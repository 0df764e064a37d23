"""Who clicks: the two families of users, and the list that is best for them."""
