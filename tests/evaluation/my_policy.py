"""A user's own policy, as the README shows it."""

import numpy as np


class Greedy:
    """The items with the most clicks per showing, and a random list now and then."""

    def __init__(self, setting, epsilon=0.1):
        self.setting, self.epsilon = setting, epsilon
        self.clicks = np.zeros((setting.R, max(setting.L)))
        self.shown = np.ones((setting.R, max(setting.L)))

    def recommend(self, t):
        score = self.clicks / self.shown
        for r, generator in enumerate(self.setting.generators):
            if generator.random() < self.epsilon:
                score[r] = generator.random(score.shape[1])
            score[r, self.setting.L[r] :] = -1.0
        return np.argsort(-score, axis=1)[:, : self.setting.K]

    def update(self, t, A, clicks):
        r = np.arange(self.setting.R)[:, None]
        self.shown[r, A] += 1
        self.clicks[r, A] += clicks


class Repeating:
    def __init__(self, setting):
        self.A = np.zeros((setting.R, setting.K), dtype=int)

    def recommend(self, t):
        return self.A

    def update(self, t, A, clicks):
        pass
