"""Generators: equal paths give equal streams, others independent ones."""

import numpy as np

from logeval.running import seeds


def test_equal_paths_give_equal_streams_and_others_do_not():
    a, b = (seeds.generator(1, "env", 5).random(4) for _ in range(2))
    assert (a == b).all()
    others = [(2, "env", 5), (1, "env", 6), (1, "policy", 5), (1, "env"), (1, "env", 5, 0)]
    for path in others:
        assert (seeds.generator(*path).random(4) != a).any()


def test_a_path_is_not_just_its_concatenation():
    assert seeds.generator(1, "ab", "c").random() != seeds.generator(1, "a", "bc").random()


def test_streams_of_neighbouring_paths_are_uncorrelated():
    draws = np.array([seeds.generator(0, "run", i).random(1000) for i in range(50)])
    correlation = np.corrcoef(draws)[np.triu_indices(50, 1)]
    assert np.abs(correlation).max() < 5 / np.sqrt(1000)
