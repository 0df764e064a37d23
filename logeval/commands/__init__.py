"""The commands: parse, call, print; one file per stage."""
