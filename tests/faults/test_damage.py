"""Every kind of damage to every kind of file: an error, or what was there before."""

import random
import shutil

import pytest

from logeval.errors import LogevalError
from tests.faults.stages import BY_NAME, LONG, copied

CASES = 2000 if LONG else 12  # per file and kind of damage


def flipped(content, rng):
    place = rng.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :]


def cut(content, rng):
    return content[: rng.randrange(len(content))]


def zeroed(content, rng):
    start = rng.randrange(len(content))
    size = min(rng.choice([1, 16, 512, 4096]), len(content) - start)
    return content[:start] + bytes(size) + content[start + size :]


def swapped(content, rng):
    a, b = sorted(rng.randrange(len(content)) for _ in range(2))
    return content[:a] + content[b:] + content[a:b]


def longer(content, rng):
    return content + bytes(rng.randrange(256) for _ in range(rng.choice([1, 8, 100])))


DAMAGES = [flipped, cut, zeroed, swapped, longer]


@pytest.mark.parametrize("name", [name for name in BY_NAME if name != "run"])
def test_damage_is_noticed_or_harmless(name, given, tmp_path):
    stage = BY_NAME[name]
    out = copied(given / name, tmp_path / name)
    expected = stage.read(out)
    rng = random.Random(name)
    if name == "raw":
        files = list((out / "log.truth").iterdir())
    else:
        files = [p for p in out.rglob("*") if p.is_file() and p.name not in ("rejects.tsv",)]
    read = 0
    for _ in range(max(CASES * len(DAMAGES) // len(files), 5)):
        for file in files:
            content = file.read_bytes()
            if not content:
                continue
            damaged = rng.choice(DAMAGES)(content, rng)
            file.write_bytes(damaged)
            try:
                found = stage.read(out)
            except LogevalError:
                found = None
            assert found is None or found == expected, f"{file.name}: {damaged[:2000]!r}"
            read += 1
            file.write_bytes(content)
    print(f"{name}: {read} damaged files")


@pytest.mark.parametrize("name", ["log", "models", "runs"])
def test_a_missing_or_foreign_file_is_noticed(name, given, tmp_path):
    stage = BY_NAME[name]
    for file in sorted(p.relative_to(given / name) for p in (given / name).rglob("*.parquet")):
        if file.parts[0] == "click_statistics":
            continue  # made again
        out = copied(given / name, tmp_path / name)
        (out / file).unlink()
        with pytest.raises(LogevalError, match=r"is missing|there is no"):
            stage.read(out)
        shutil.rmtree(out)


def test_damaged_output_is_made_again(given, tmp_path):
    for name in ("log", "models", "runs"):
        stage = BY_NAME[name]
        rng = random.Random(name)
        out = copied(given / name, tmp_path / name)
        expected = stage.read(out)
        for file in sorted(p for p in out.rglob("*.parquet")):
            file.write_bytes(rng.choice(DAMAGES)(file.read_bytes(), rng))
            stage.call(given, out, False)
            assert stage.read(out) == expected
