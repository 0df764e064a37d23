"""UniRank plays what it may."""

from tests.policies.running import SETTING_A, make, steps, users_of


def test_unirank_plays_the_leader_or_a_neighbour():
    users = users_of(SETTING_A)
    policy = make("UniRank", users, 2000)
    for t, _, _ in steps(policy, users, 2000):
        blocks, now = policy.memory.blocks, policy.memory
        if t < 100:
            continue
        level = blocks.level[0]
        start = 0
        for end in now.end[0]:
            members = set(level[now.items[0, start:end]].tolist())
            assert len(members) <= 2 or start == 0
            start = end
            if end >= 5:
                break
