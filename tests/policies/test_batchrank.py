"""BatchRank: numbers worked out by hand."""

import math

from logeval.policies import batchrank


def test_batchrank_stages():
    lengths = [batchrank.stage_length(stage, math.log(1e5)) for stage in range(4)]
    assert lengths == [185, 737, 2948, 11790]
