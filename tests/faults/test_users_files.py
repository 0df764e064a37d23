"""What a user puts into an output folder, or edits there, is not replaced unless he says so."""

import pytest

from logeval import LogevalError
from logeval.storage import tables
from tests.faults.commands import content, logeval

EVALUATE = ("evaluate", "models", "--policy", "Random", "--horizon", 20, "--runs", 2, "--draws", 2)
VALIDATE = ("replay", "validate", "log", "--positions", "1", "--parts", 2)
COMPARE = ("compare-models", "log", "--model", "cm")
FIGURES = {
    "regret.pdf": EVALUATE,
    "estimates.png": ("replay", "estimate", "log", "--target", "logged", "--rounds", 2),
    "replays.png": ("replay", "policy", "log", "--policy", "Random"),
    "validation.png": VALIDATE,
    "perplexity.png": COMPARE,
}


def run(given, command, out):
    named = [given / a if a in ("log", "models") else a for a in command]
    return logeval(*named, "--out", out, "-q")


@pytest.mark.parametrize("name", list(FIGURES))
def test_a_figure_is_not_drawn_over_a_file_of_the_user(name, given, tmp_path):
    """Before the work is done."""
    (tmp_path / name).write_text("mine")
    ended = run(given, FIGURES[name], tmp_path)
    assert ended.code == 2, ended.said
    assert (
        f"{name}: was not written by logeval, or changed since, so it is not replaced" in ended.said
    )
    assert content(tmp_path) == {name: b"mine"}


@pytest.mark.parametrize("name", ["regret.pdf", "perplexity.png"])
def test_a_figure_of_ours_is_drawn_again_unless_it_was_edited(name, given, tmp_path):
    out = tmp_path / "out"
    for _ in range(2):
        ended = run(given, FIGURES[name], out)
        assert ended.code == 0, ended.said
    drawn = (out / name).read_bytes()
    (out / name).write_bytes(drawn + b"edited")
    before = content(out)
    assert run(given, FIGURES[name], out).code == 2
    assert content(out) == before
    (out / name).unlink()
    assert run(given, FIGURES[name], out).code == 0
    assert (out / name).read_bytes() == drawn


def test_a_listed_file_that_was_edited_since_is_replaced_only_if_the_user_says_so(tmp_path):
    def write(text, **options):
        with tables.staged(tmp_path, **options) as folder:
            (folder / "index.html").write_text(text)
            tables.write_manifest(folder, tables.manifest_of("report", {}, []))

    write("first")
    write("second")
    (tmp_path / "index.html").write_text("edited")
    with pytest.raises(LogevalError, match=r"index.html: changed since logeval wrote it"):
        write("third")
    assert (tmp_path / "index.html").read_text() == "edited"
    assert tables.read_manifest(tmp_path)
    write("third", overwrite=True)
    assert (tmp_path / "index.html").read_text() == "third"
