"""The click models, one file each; ``users`` has the two families of users they describe."""
