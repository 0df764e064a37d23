"""The click models, one file each, and the two families of users they belong to."""
