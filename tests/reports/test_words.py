"""Every fact has a sentence, made of its fields alone."""

import re
from pathlib import Path

import pytest

import logeval
from logeval.facts import Answer, Fact
from logeval.reports.words import ALWAYS, REMEDIES, WORDS, named, sentence

MORE = {
    "least": 300, "order": "2>1", "why": "it cannot start", "failed": ["drift"], "searches": 100,
    "simulators": ["DCM"], "best": ["A on DCM"], "policies": ["A"], "others": ["B"],
    "names": ["DCM"], "simulator": "DCM", "serps": 10, "queries": 2, "impressions": 3, "clicks": 1,
    "models": {"DCM": 2}, "checks": ["drift"], "share": 0.1, "by": "List", "estimators": ["IP"],
    "difference": 0.1, "says": ["IP says 1"], "estimator": "IP", "assumption": "nothing",
    "steps": 10, "at": ["1"], "losses": {"DCM": 0.1}, "positions": 2, "longest": 5, "which": "w",
    "problems": 3, "note": "a note", "unit": "search", "K": 3,
}  # fmt: skip


@pytest.mark.parametrize("code", WORDS)
def test_every_template_is_filled_by_the_fields_of_its_fact(code):
    text = sentence(Fact(code, "x", "fine", 0.1, 0.0, 0.2, 0.3, MORE))
    assert "{" not in text
    assert not text.endswith(".")


def test_every_code_in_the_program_has_a_template_and_every_template_a_code():
    source = "".join(path.read_text() for path in Path(logeval.__file__).parent.rglob("*.py"))
    used = set(re.findall(r'Fact\(\s*\n?\s*"([a-z0-9-]+)"', source))
    chosen = {"simulator-fails", "simulator-used", "lists-apart", "too-few-searches"}
    chosen |= {"best-unproven", "best-unproven-by"}
    chosen |= {f"forged-{how}-{what}" for how in ("share", "first") for what in ("best", "worst")}
    chosen |= {"unclear-value"}
    assert used | chosen == set(WORDS)
    assert set(REMEDIES) | set(ALWAYS) <= set(WORDS)


def test_names_are_cut_and_numbers_have_theirs():
    assert named(["a", "b", "c"]) == "a, b and c"
    assert named(list("abcdefgh")) == "a, b, c, d, e, f and 2 more"
    assert sentence(Fact("carries", threshold=9.0, more={"models": {"DCM": 3, "PBM": 1}})).endswith(
        "DCM 3 and PBM 1"
    )


def test_an_answer_has_its_conclusion_what_to_have_in_mind_and_what_to_do():
    tied = Fact("tied", "dcmKL-UCB", more={"others": ["A"]})
    lost = Fact("loses-least", "dcmKL-UCB", value=0.1, more={"simulators": ["DCM"], "searches": 9})
    few, fine = Fact("few-queries", level="caution", value=4.0), Fact("clear")
    rising = Fact("not-flat", level="caution", value=9.0, more={"policies": ["A"]})
    found = Answer([lost, tied], [few, fine, rising])
    first, believe, after = " ".join(found.text().split()).replace(" Bel", "\nBel").replace(
        " Next", "\nNext").split("\n")  # fmt: skip
    assert first.startswith("dcmKL-UCB loses least on DCM: 10% at most")
    assert first.endswith("It cannot be told apart from A.")
    assert believe.startswith("Believe it? 4 queries are few")
    assert after == "Next a longer --horizon."
    assert found.fact("clear") is fine
    assert [record["code"] for record in found.records()][:3] == [
        "loses-least",
        "tied",
        "few-queries",
    ]
    assert found._repr_html_().startswith("<p>dcmKL-UCB")
