"""Forged and late clicks: what policies hear, and that regret is of what users did."""

import numpy as np
import pytest

from logeval.errors import LogevalError
from logeval.evaluation.evaluate import evaluate
from logeval.evaluation.feedback import Disturbed, Feedback
from logeval.reports.words import sentence
from logeval.tracks.ranking import RankingEnvironment
from logeval.tracks.registry import synthetic_problem

PROBLEM = "CM(w=0.5/0.5/0.2/0.2/0.1/0.05,K=2)"


class Listening:
    """Shows the same lists, and writes down what it hears."""

    def __init__(self, A):
        self.A, self.heard = A, []

    def recommend(self, t):
        return self.A

    def update(self, t, A, clicks):
        self.heard.append((t, A.copy(), clicks.copy()))


def heard(feedback, lists, steps, seed=1):
    """What a policy that shows these items hears in so many steps, and what users did."""
    users = RankingEnvironment([synthetic_problem(PROBLEM)], [(0, r) for r in range(8)], seed=5)
    A = users.labels.labels(np.tile(lists, (8, 1)))
    policy = Listening(A)
    between = feedback.between(policy, users, seed)
    done = []
    for t in range(1, steps + 1):
        clicks = users.step(between.recommend(t))
        done.append(clicks.copy())
        between.update(t, A, clicks)
    return policy.heard, np.array(done)


def test_without_anything_the_policy_is_alone():
    policy = Listening(np.zeros((1, 1)))
    assert Feedback().between(policy, None, 0) is policy


def test_the_worst_items_are_clicked_in_forged_steps_alone():
    # items 0 and 1 are the best, 4 and 5 the worst
    found, true = heard(Feedback.parse("0.3@worst", None), [0, 4], 400)
    on_worst = np.array([clicks for _, _, clicks in found])
    changed = (on_worst != true).any(axis=2)
    forged = (on_worst == [0, 1]).all(axis=2)
    assert (on_worst[changed] == [0, 1]).all()
    share = forged.mean()  # by chance, too: 0.5 * 0.1
    expected = 0.3 + 0.7 * 0.5 * 0.1
    assert share == pytest.approx(expected, abs=4 * np.sqrt(expected / 3200))


def test_clicks_on_the_best_items_vanish_in_the_first_steps():
    found, true = heard(Feedback.parse("100@best", None), [0, 1], 150)
    clicks = np.array([clicks for _, _, clicks in found])
    assert clicks[:100].sum() == 0
    assert clicks[100:].tolist() == true[100:].tolist()


def test_clicks_arrive_late_and_in_order():
    found, true = heard(Feedback.parse(None, "7"), [0, 1], 50)
    assert [t for t, _, _ in found] == list(range(1, 44))
    assert [c.tolist() for _, _, c in found] == true[:43].tolist()


def test_lost_clicks_never_arrive():
    found, _ = heard(Feedback.parse(None, "5@0.4"), [0, 1], 1000)
    assert len(found) / 995 == pytest.approx(0.6, abs=4 * np.sqrt(0.24 / 995))
    again, _ = heard(Feedback.parse(None, "0@0.4"), [0, 1], 1000)
    assert {t for t, _, _ in found} <= {t for t, _, _ in again}


def regrets(policies, horizon=3000, **given):
    rows = evaluate(problem=[PROBLEM], policies=policies, horizon=horizon, runs=6, quiet=True,
                    **given).to_pandas()  # fmt: skip
    return rows[rows.t == horizon].set_index(["policy", "run"])


def test_regret_and_clicks_are_of_what_users_did():
    plain = regrets("Oracle")
    forged = regrets("Oracle", corrupt="0.9@best", delay="3")
    for column in ("regret", "reward", "clicks"):
        assert plain[column].tolist() == forged[column].tolist()


def test_forged_clicks_harm_a_policy_that_believes_them():
    plain, forged = (
        regrets("CascadeKL-UCB", corrupt=corrupt).regret for corrupt in (None, "300@worst")
    )
    assert forged.mean() > plain.mean() + 4 * plain.sem()


def test_runs_with_other_feedback_do_not_mix(tmp_path):
    given = {"problem": [PROBLEM], "policies": "Random", "horizon": 20, "runs": 1, "quiet": True}
    evaluate(**given, out=tmp_path / "runs")
    with pytest.raises(LogevalError, match="feedback"):
        evaluate(**given, corrupt="0.1@worst", out=tmp_path / "runs")


@pytest.mark.parametrize(
    "wrong",
    [{"corrupt": x} for x in ("0@worst", "0.1@them", "-1@best", "1.5@worst", "x")]
    + [{"delay": x} for x in ("-1", "5@1", "soon", "5@x")],
)
def test_wrong_settings(wrong):
    with pytest.raises(LogevalError, match=next(iter(wrong))):
        evaluate(problem=[PROBLEM], policies="Random", horizon=5, **wrong)


@pytest.mark.parametrize("policy", ["TopRank", "RankedKL-UCB"])
def test_who_cannot_learn_late(policy):
    with pytest.raises(LogevalError, match="just shown"):
        evaluate(problem=[PROBLEM], policies=policy, horizon=5, delay="3", quiet=True)
    evaluate(problem=[PROBLEM], policies=policy, horizon=9, runs=1, corrupt="0.1@best", quiet=True)


def test_other_tracks_refuse():
    with pytest.raises(LogevalError, match="ranking track"):
        evaluate(problem=["rank1(K=6,L=4,p=0.25,gap=0.5)"], policies="UCB1", horizon=5, delay="3")


def test_what_a_policy_offers_is_still_there():
    class Offers(Listening):
        late = 3

    users = RankingEnvironment([synthetic_problem(PROBLEM)], [(0, 0)], seed=5)
    assert Disturbed(Offers(None), users, Feedback(delay=1), 0).late == 3


def test_what_was_asked_for_is_said():
    feedback = Feedback.parse("500@worst", "100@0.2")
    assert str(feedback) == "corrupt=500@worst delay=100@0.2"
    found = {fact.code: fact.value for fact in feedback.facts()}
    assert found == {"forged-first-worst": 500, "clicks-late": 100, "clicks-lost": 0.2}
    assert all(map(sentence, feedback.facts()))
    assert Feedback.parse("0.05", None).facts()[0].code == "forged-share-worst"
