"""What was surely examined in a round of the contextual track."""

from __future__ import annotations

from logeval.running.kernels import njit_views

FEEDBACK = ("dcm", "literal", "first")
DCM, LITERAL, FIRST = range(3)


@njit_views
def observed_one(feedback, clicks):
    """C, the number of positions to learn from.

    ``dcm``: up to the last click, all K without one (as dcmKL-UCB); ``literal``: up to the last
    click, none without one (gl-cdcm, Algorithm 1 as printed); ``first``: up to the first click,
    all K without one (CascadeLinUCB).
    """
    K = clicks.shape[0]
    C = 0 if feedback == LITERAL else K
    for k in range(K):
        if clicks[k]:
            C = k + 1
            if feedback == FIRST:
                break
    return C


@njit_views
def observed_rows(feedback, clicks, C):
    """``observed_one`` for each replica."""
    for r in range(C.shape[0]):
        C[r] = observed_one(feedback, clicks[r])
