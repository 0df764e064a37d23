"""The ranking track: lists in, clicks and expected rewards out."""
