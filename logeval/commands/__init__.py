"""The commands: parse, call, print; no logic. One file per stage."""
