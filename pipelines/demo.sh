#!/bin/sh
# What `make demo` runs: every stage on a synthetic log, in the folder demo/.
set -eu
BIN=${BIN:-.venv/bin}
step() { printf '\n== %s\n' "$*"; }

step "1/3 a synthetic log of 50,000 search sessions, with its true click models"
"$BIN/logeval" generate demo/log.tsv.gz --sessions 50000 --seed 1
step "2/3 the log becomes a table"
"$BIN/logeval" ingest demo/log.tsv.gz --out demo/log
step "3/3 what the log holds"
"$BIN/logeval" describe demo/log --figure demo/log.png

step "Look at demo/log.png"
