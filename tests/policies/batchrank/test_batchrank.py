"""BatchRank: numbers worked out by hand."""

import math

from logeval.policies.batchrank import kernel


def test_batchrank_stages():
    lengths = [kernel.stage_length(stage, math.log(1e5)) for stage in range(4)]
    assert lengths == [185, 737, 2948, 11790]
