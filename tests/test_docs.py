"""The documentation is true: its commands run, its tables are those of the code."""

import importlib.util
import inspect
import json
import re
import shlex
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pyarrow as pa
import pytest

from docs import made
from logeval import pipeline
from logeval.clicks.models.registry import MODELS
from logeval.policies.registry import POLICIES
from logeval.storage import schemas
from tests.faults.commands import logeval
from tests.references import REFERENCES
from tests.undrawn import draw_nothing

ROOT = Path(__file__).parent.parent
PAGES = [
    "README.md", "docs/synthetic.md", "docs/formats.md", "docs/contextual.md", "docs/earn.md",
    "docs/checking.md", "docs/support.md", "docs/policies.md", "docs/export.md", "docs/drift.md",
    "docs/users.md", "docs/extend.md", "docs/switch.md", "docs/researchers.md",
]  # fmt: skip
TUTORIAL = "docs/tutorial.md"  # its outputs are compared, see below
GENERATED = {"commands.md", "tables.md", "reproduction.md"}


@pytest.fixture
def run_in(tmp_path, monkeypatch):
    """Run the commands and programs of a page in an empty folder, as in one shell.

    In copies of this process, which has imported what commands need: a fresh one takes seconds of
    imports for every command. ``test_cli.py`` starts fresh ones. Reports have no figures here.
    """
    assert pipeline.STAGES
    draw_nothing(monkeypatch)
    monkeypatch.chdir(tmp_path)

    def run(command, language="console"):
        if language == "python":
            end = logeval(call=lambda: exec(command, {"__name__": "__main__"}))
        elif command.startswith("logeval "):
            end = logeval(*shlex.split(command, comments=True)[1:])
        else:
            subprocess.run(["sh", "-c", command], check=True)
            return
        assert end.code == 0, f"{command}\n{end.said}"

    return run


def blocks(page, language):
    text = (ROOT / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run_in_their_order(run_in, page):
    run_in("printf 'qid,urls,clicks\\n7,11 12,0 1\\n' > mine.csv")
    run_in("logeval generate train.gz --sessions 1500 -q")
    run_in(f"cp -r '{ROOT / 'pipelines'}' .")
    run_in("sed -i 's/^horizon = .*/horizon = 300/; s/^runs = .*/runs = 2/' pipelines/*.toml")
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    commands = [re.sub(r"--sessions \d+", "--sessions 800", command) for command in commands]
    programs = blocks(page, "python")
    assert commands or programs
    for command in commands:
        run_in(command)
    for code in programs:
        run_in(code, "python")


def test_every_command_after_a_dollar_is_run():
    for page in every_page():
        name, text = page.relative_to(ROOT).as_posix(), page.read_text()
        commands = re.findall(r"^\s*\$ .*", text, re.MULTILINE)
        if commands and name != TUTORIAL:
            assert name in PAGES, f"{name} has commands; add it to PAGES"
            run = [line for block in blocks(name, "console") for line in block.splitlines()]
            assert commands == [line for line in run if line.startswith("$ ")]


def test_the_site_is_built_without_a_warning(tmp_path):
    reason = "Zensical is not installed (pip install 'logeval[docs]')"
    pytest.importorskip("zensical", reason=reason)
    write = [sys.executable, ROOT / "docs" / "pages.py", tmp_path / "build" / "pages"]
    subprocess.run(write, check=True)
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "-f", "mkdocs.yml"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No issues found" in done.stderr
    home = (tmp_path / "site" / "index.html").read_text()
    assert 'src="images/demo-earnings.svg"' in home
    assert 'href="source/' not in home  # a folder of the repository is no page
    policies = (tmp_path / "site" / "policies" / "index.html").read_text()
    sources = set(re.findall(r'href="\.\./(source/[^"#]+)', policies))
    assert len(sources) > 10
    assert all((tmp_path / "site" / source / "index.html").exists() for source in sources)
    notebook = tmp_path / "site" / "notebooks" / "03-compare-bandits" / "index.html"
    assert "data:image/png" in notebook.read_text()
    assert len(json.loads((tmp_path / "site" / "search.json").read_text())["items"]) > 200
    lost = [
        f"{page}: {name}" for page in (tmp_path / "site").rglob("*.html") for name in lost_in(page)
    ]
    assert not lost


def lost_in(page):
    """The files of the site that a page of it names and that are not there: images too."""
    found = re.findall(r'(?:src|href)="(?!\w+:|#|/)([^"#?]+)', page.read_text())
    return [name for name in found if page.name != "404.html" and not (page.parent / name).exists()]


def test_every_page_is_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text()
    named = set(re.findall(r": ([\w/-]+\.md)$", text, re.MULTILINE))
    pages = {page.name for page in (ROOT / "docs").glob("*.md")}
    notebooks = {f"notebooks/{path.stem}.md" for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert named == pages | notebooks | {"index.md", "contributing.md", "changelog.md", "data.md"}


def test_the_first_result_of_the_readme_is_that_of_its_figure():
    text = re.search(r"<!-- the demo's answer -->\n```text\n(.*?)```", readme(), re.S)[1]
    figure = (ROOT / "docs" / "images" / "demo-earnings.svg").read_text()
    named = re.findall(r"^[> ] (\S+) +[\d,]+ +[+-]", text, re.M)
    assert len(named) == 4, "run: make demo && docs/gallery.py demo"
    assert all(f">{name}<" in figure for name in (*named, "today's ranker"))
    assert sum(f.stat().st_size for f in (ROOT / "docs" / "images").iterdir()) < 300_000


def test_the_readme_of_pypi_has_no_link_that_leads_nowhere(monkeypatch):
    interface = types.ModuleType("hatchling.metadata.plugin.interface")
    interface.MetadataHookInterface = object
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    relative = r"\]\((?!https?:|#)"
    assert re.search(relative, readme())
    without = hook.for_pypi(readme(), None)
    assert not re.search(relative, without)
    assert "![" not in without
    there = hook.for_pypi(readme(), "https://host/me/logeval")
    assert not re.search(relative, there)
    assert "](https://host/me/logeval/raw/main/docs/images/demo-earnings.svg)" in there
    assert "](https://host/me/logeval/blob/main/docs/evidence.md#do-simulators-know" in there


def readme():
    return (ROOT / "README.md").read_text()


def test_the_tables_page_is_made_from_the_schemas():
    assert (ROOT / "docs" / "tables.md").read_text() == schemas.markdown(), (
        "run: python -m logeval.storage.schemas > docs/tables.md"
    )


def test_the_two_commands_of_the_readme_are_make_targets():
    for target in ("demo", "test"):
        assert f"\nmake {target} " in (ROOT / "README.md").read_text()
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_links_between_the_pages_lead_somewhere():
    pages = [page for folder in (".", "docs", "data") for page in (ROOT / folder).glob("*.md")]
    assert len(pages) >= 6
    for page in pages:
        for link in re.findall(r"\]\((?!http)([^)#]+)[^)]*\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page}: {link}"


def every_page():
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def rows(page):
    """The rows of the tables of a page, as their first cell (names) and the rest."""
    lines = (ROOT / page).read_text().splitlines()
    cells = [line.strip("|").split("|", 1) for line in lines if line.startswith("| ")]
    return [([name.strip() for name in first.split(",")], rest) for first, rest in cells]


def test_the_commands_page_is_made_from_the_commands():
    assert (ROOT / "docs" / "commands.md").read_text() == made.markdown() + "\n", (
        "run: python -m docs.made"
    )


@pytest.mark.parametrize("page", made.TABLES)
def test_tables_are_made_from_what_stands_on_the_classes(page):
    assert (ROOT / "docs" / page).read_text() == made.page(page), "run: python -m docs.made"


def test_what_commands_print_fits_80_columns(tmp_path):
    again = tmp_path / "made.json"
    commands = made.COMMANDS.splitlines()
    end = logeval(call=lambda: again.write_text(json.dumps(list(made.outputs(commands)))))
    assert end.code == 0, end.said
    printed = json.loads(again.read_text())
    assert [command for command, _ in printed] == commands
    assert all(output for _, output in printed)
    assert max(len(line) for _, output in printed for line in output.splitlines()) <= 80


def test_the_tutorial_shows_what_its_commands_print(tmp_path, monkeypatch):
    draw_nothing(monkeypatch)
    shown = [block.partition("\n") for block in blocks(TUTORIAL, "text")]
    commands = [command.removeprefix("$ ") for command, _, _ in shown]
    again = tmp_path / "made.json"
    end = logeval(call=lambda: again.write_text(json.dumps(list(made.outputs(commands)))))
    assert end.code == 0, end.said
    printed = json.loads(again.read_text())
    assert len(printed) == len(commands) >= 7
    for (command, output), (_, _, text) in zip(printed, shown, strict=True):
        pattern = re.escape(text).replace(re.escape("[...]\n"), "(?:.*\n)*")
        assert re.fullmatch(pattern, f"{output}\n"), f"{command}\n{output}"


def test_the_pages_stay_short():
    words = {p.name: len(p.read_text().split()) for p in every_page() if p.name not in GENERATED}
    assert words["README.md"] <= 720
    assert sum(words.values()) <= 25_000, words


@pytest.mark.parametrize(("name", "about", "example"), list(made.commands_of()))
def test_every_command_is_documented_with_an_example(name, about, example):
    assert about
    assert f"{example} ".startswith(f"logeval {name} ")
    pages = "".join(page.read_text() for page in every_page())
    assert re.search(rf"logeval {name}\b", pages)


@pytest.mark.parametrize(
    ("page", "name", "cls"),
    [("docs/models.md", name, cls) for name, cls in MODELS.items()]
    + [("docs/policies.md", name, cls) for name, cls in POLICIES.items()],
)
def test_every_model_and_policy_is_documented_with_its_file(page, name, cls):
    found = [rest for names, rest in rows(page) if name in names]
    file = Path(inspect.getfile(cls)).relative_to(ROOT / "logeval").as_posix()
    assert any(f"`{file}`" in rest for rest in found), f"{page}: no row with {name} and `{file}`"


@pytest.mark.parametrize(("name", "cls"), REFERENCES.items())
def test_every_policy_links_to_its_reference(name, cls):
    found = "".join(rest for names, rest in rows("docs/policies.md") if name in names)
    file = Path(inspect.getfile(cls)).relative_to(ROOT).as_posix()
    assert f"](../{file})" in found, f"no link from {name} to {file}"


def test_every_schema_is_documented():
    defined = [name for name, value in vars(schemas).items() if isinstance(value, pa.Schema)]
    assert {name.lower() for name in defined} == set(schemas.TABLES)
    headings = {line for page in every_page() for line in page.read_text().splitlines()}
    assert {f"## {name}" for name in schemas.TABLES} <= headings


def test_pages_named_in_the_program_exist():
    sources = [
        f
        for folder in ("logeval", "benchmarks", "reproduction")
        for f in (ROOT / folder).rglob("*.py")
    ]
    named = {page for f in sources for page in re.findall(r"docs/[\w-]+\.md", f.read_text())}
    assert len(named) > 10
    assert not [page for page in named if not (ROOT / page).exists()]


def test_the_map_of_contributors_names_every_package():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    inside = [p.parent.relative_to(ROOT / "logeval") for p in ROOT.glob("logeval/*/__init__.py")]
    rooms = [p.parent.name for p in ROOT.glob("logeval/clicks/*/__init__.py")]
    assert len(inside) > 10
    assert not [name for name in (*map(str, inside), *rooms) if f"`{name}/`" not in text]


def test_files_named_in_the_docs_exist():
    pages = [*every_page(), ROOT / "CONTRIBUTING.md"]
    files = {
        (page.name, f)
        for page in pages
        for f in re.findall(r"`([\w/]+/\w+\.py)`", page.read_text())
    }
    assert len(files) > 20
    missing = [f for f in files if not any((ROOT / d / f[1]).exists() for d in ("", "logeval"))]
    assert not missing
