"""Backups of Markov decision processes in a few lines of NumPy, and textbook problems."""

import numpy as np


def back_up(P, r, gamma, V):
    """T V and its first maximiser, for P of shape (S, A, S)."""
    q = r + gamma * np.where(r[..., None] > -np.inf, P, 0.0) @ V
    return q.max(axis=1), q.argmax(axis=1)


def back_up_policy(P, r, gamma, V, policy):
    s = np.arange(len(V))
    return r[s, policy] + gamma * P[s, policy] @ V


def back_up_in_place(P, r, gamma, V, order):
    V = V.copy()
    for s in order:
        V[s] = back_up(P[s : s + 1], r[s : s + 1], gamma, V)[0][0]
    return V


def random_process(rng, S=12, A=3, sparse=0.5):
    """P of shape (S, A, S) and r of shape (S, A), with some unavailable actions."""
    P = rng.random((S, A, S)) * (rng.random((S, A, S)) < sparse)
    P[..., 0] += 1e-3
    P /= P.sum(axis=2, keepdims=True)
    r = rng.normal(size=(S, A))
    r[rng.random((S, A)) < 0.2] = -np.inf
    r[:, 0] = rng.normal(size=S)
    return P, r


def toymaker():
    """Howard, Dynamic Programming and Markov Processes (1960), chapter 3: a toy in favour or not; advertise, do research."""
    P = np.array([[[0.5, 0.5], [0.8, 0.2]], [[0.4, 0.6], [0.7, 0.3]]])
    R = np.array([[[9.0, 3.0], [4.0, 4.0]], [[3.0, -7.0], [1.0, -19.0]]])
    return P, R


def taxicab():
    """Howard (1960), chapter 4: three towns; cruise, wait at a stand, wait for a radio call (not in the second town)."""
    P = np.array(
        [
            [[1 / 2, 1 / 4, 1 / 4], [1 / 16, 3 / 4, 3 / 16], [1 / 4, 1 / 8, 5 / 8]],
            [[1 / 2, 0, 1 / 2], [1 / 16, 7 / 8, 1 / 16], [0, 0, 0]],
            [[1 / 4, 1 / 4, 1 / 2], [1 / 8, 3 / 4, 1 / 8], [3 / 4, 1 / 16, 3 / 16]],
        ]
    )
    R = np.array(
        [
            [[10.0, 4, 8], [8, 2, 4], [4, 6, 4]],
            [[14.0, 0, 18], [8, 16, 8], [0, 0, 0]],
            [[10.0, 2, 8], [6, 4, 2], [4, 0, 8]],
        ]
    )
    available = np.array([[True, True, True], [True, True, False], [True, True, True]])
    return P, R, available


# Russell and Norvig, Artificial Intelligence (3rd ed.), figure 17.3: utilities without discounting. NaN is the wall.
UTILITIES = np.array([[0.812, 0.868, 0.918, 1.0], [0.762, np.nan, 0.660, -1.0], [0.705, 0.655, 0.611, 0.388]])


def grid_world(reward=-0.04):
    """The 4 x 3 world, section 17.1: P (S, A, S), R (S,), termination (S,); actions are up, right, down, left."""
    rows, columns, S = 3, 4, 12
    moves = [(-1, 0), (0, 1), (1, 0), (0, -1)]
    P, R, ends = np.zeros((S, 4, S)), np.full(S, reward), np.zeros(S)
    for s in range(S):
        i, j = divmod(s, columns)
        for a in range(4):
            for turn, p in ((0, 0.8), (1, 0.1), (3, 0.1)):
                di, dj = moves[(a + turn) % 4]
                y, x = i + di, j + dj
                inside = 0 <= y < rows and 0 <= x < columns and (y, x) != (1, 1)
                P[s, a, y * columns + x if inside else s] += p
    for s, value in ((3, 1.0), (7, -1.0), (5, 0.0)):  # two exits, and the wall
        R[s], ends[s], P[s] = value, 1.0, 0.0
    return P, R, ends
