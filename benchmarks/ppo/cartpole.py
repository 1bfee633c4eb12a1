"""CartPole-v1 as Gymnasium has it, many of them at once in tensors: a pole on a cart is kept upright by pushing the cart."""

from __future__ import annotations

import math

import torch
from torch import Tensor

GRAVITY, CART, POLE, HALF_LENGTH, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
FARTHEST, STEEPEST = 2.4, 12 * math.pi / 180
LONGEST = 500  # steps of an episode
OBSERVED, ACTIONS = 4, 2


def physics(state: Tensor, action: Tensor) -> Tensor:
    """One step of Euler's method. `state`: position and speed of the cart, angle and its speed; `action`: 1 is to the right."""
    place, speed, angle, turning = state.unbind(-1)
    force = FORCE * (2 * action - 1)
    cosine, sine = angle.cos(), angle.sin()
    pushed = (force + POLE * HALF_LENGTH * turning * turning * sine) / (CART + POLE)
    turn = (GRAVITY * sine - cosine * pushed) / (HALF_LENGTH * (4 / 3 - POLE * cosine * cosine / (CART + POLE)))
    push = pushed - POLE * HALF_LENGTH * turn * cosine / (CART + POLE)
    steps = [place + SECONDS * speed, speed + SECONDS * push, angle + SECONDS * turning, turning + SECONDS * turn]
    return torch.stack(steps, dim=-1)


class CartPoles:
    """`count` of them. One that ends begins anew at once. Nothing here waits for the device."""

    def __init__(self, count: int, device: torch.device, seed: int, compiled: bool = False) -> None:
        self._generator = torch.Generator(device).manual_seed(seed)
        self._physics = torch.compile(physics) if compiled else physics
        self._size = (count, OBSERVED)
        self.state = self._beginnings(device)
        self.length = torch.zeros(count, device=device)
        self.ended = torch.zeros((), device=device)  # episodes, since `forget`
        self.ended_length = torch.zeros((), device=device)  # of all those, in steps

    def step(self, action: Tensor) -> tuple[Tensor, Tensor]:
        """The reward of each is 1. Returns what is seen next and, as 0 or 1, which episodes ended."""
        state = self._physics(self.state, action)
        self.length = self.length + 1
        over = (state[:, 0].abs() > FARTHEST) | (state[:, 2].abs() > STEEPEST) | (self.length >= LONGEST)
        done = over.to(state.dtype)
        self.ended = self.ended + done.sum()
        self.ended_length = self.ended_length + (done * self.length).sum()
        self.length = self.length * (1 - done)
        self.state = torch.where(over[:, None], self._beginnings(state.device), state)
        return self.state, done

    def forget(self) -> None:
        self.ended, self.ended_length = torch.zeros_like(self.ended), torch.zeros_like(self.ended)

    def _beginnings(self, device: torch.device) -> Tensor:
        return torch.rand(self._size, generator=self._generator, device=device) * 0.1 - 0.05
