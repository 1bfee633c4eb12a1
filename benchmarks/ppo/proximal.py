"""Proximal policy optimisation (Schulman et al. 2017), with the network, the losses and the settings of CleanRL's `ppo.py`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from cartpole import ACTIONS, OBSERVED, CartPoles
from torch import Tensor, nn

from workload.devices import world_size

DISCOUNT, LAMBDA = 0.99, 0.95
CLIP, ENTROPY, VALUE, LONGEST_GRADIENT = 0.2, 0.01, 0.5, 0.5
WIDTH = 64


class Agent(nn.Module):
    """What to do (the logits of the actions), and how good a state is."""

    def __init__(self) -> None:
        super().__init__()
        self.actor, self.critic = _mlp(ACTIONS, 0.01), _mlp(1, 1.0)

    def forward(self, state: Tensor) -> tuple[Tensor, Tensor]:
        return self.actor(state).log_softmax(-1), self.critic(state).squeeze(-1)


@dataclass
class Experience:
    """One row for every step of every environment."""

    state: Tensor
    action: Tensor
    chance: Tensor  # of the action, its logarithm
    value: Tensor
    advantage: Tensor

    def part(self, rows: Tensor) -> Experience:
        return Experience(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


@torch.no_grad()
def collect(agent: Any, environments: CartPoles, steps: int, generator: torch.Generator) -> Experience:
    """Acts for `steps` steps in every environment."""
    states, actions, chances, values, dones = [], [], [], [], []
    state = environments.state
    for _ in range(steps):
        logits, value = agent(state)
        # The largest of probabilities divided by exponential noise is a draw from them, and waits for nothing.
        noise = torch.empty_like(logits).exponential_(generator=generator)
        action = (logits.exp() / noise).argmax(-1)
        states.append(state)
        actions.append(action)
        chances.append(logits.gather(-1, action[:, None]).squeeze(-1))
        values.append(value)
        state, done = environments.step(action)
        dones.append(done)
    value = torch.stack(values)
    advantage = advantages(value, torch.stack(dones), agent(state)[1])
    together = (torch.stack(states), torch.stack(actions), torch.stack(chances), value, advantage)
    return Experience(*(part.flatten(0, 1) for part in together))


def advantages(value: Tensor, done: Tensor, after: Tensor, reward: float = 1.0) -> Tensor:
    """Generalised advantage estimation over (steps, environments); `after`: the value of the state behind the last step."""
    found = torch.zeros_like(value)
    last = torch.zeros_like(after)
    for step in reversed(range(len(value))):
        goes_on = 1 - done[step]
        surprise = reward + DISCOUNT * after * goes_on - value[step]
        last = surprise + DISCOUNT * LAMBDA * goes_on * last
        found[step], after = last, value[step]
    return found


def loss(agent: Any, seen: Experience) -> Tensor:
    logits, value = agent(seen.state)
    ratio = (logits.gather(-1, seen.action[:, None]).squeeze(-1) - seen.chance).exp()
    advantage = (seen.advantage - seen.advantage.mean()) / (seen.advantage.std() + 1e-8)
    policy = torch.max(-advantage * ratio, -advantage * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
    outcome = seen.advantage + seen.value
    clipped = seen.value + (value - seen.value).clamp(-CLIP, CLIP)
    off = 0.5 * torch.max((value - outcome) ** 2, (clipped - outcome) ** 2).mean()
    entropy = -(logits.exp() * logits).sum(-1).mean()
    return policy - ENTROPY * entropy + VALUE * off


def improve(
    agent: Any, optimizer: torch.optim.Optimizer, seen: Experience, epochs: int, parts: int, generator: torch.Generator
) -> Tensor:
    """Goes over the experience `epochs` times in `parts` parts; the last loss."""
    found = torch.zeros(())
    for _ in range(epochs):
        order = torch.randperm(len(seen.state), generator=generator, device=seen.state.device)
        for rows in order.chunk(parts):
            optimizer.zero_grad(set_to_none=True)
            found = loss(agent, seen.part(rows))
            found.backward()
            parameters = [p for group in optimizer.param_groups for p in group["params"]]
            _average(parameters)
            nn.utils.clip_grad_norm_(parameters, LONGEST_GRADIENT)
            optimizer.step()
    return found.detach()


def _average(parameters: list[Tensor]) -> None:
    """The gradients, over all processes."""
    if world_size() == 1:
        return
    gradients = [p.grad for p in parameters if p.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    flat /= world_size()
    for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
        gradient.copy_(part.view_as(gradient))


def _mlp(out: int, gain: float) -> nn.Sequential:
    layers = [nn.Linear(OBSERVED, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, out)]
    for layer, factor in zip(layers, (math.sqrt(2), math.sqrt(2), gain), strict=True):
        nn.init.orthogonal_(layer.weight, factor)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(layers[0], nn.Tanh(), layers[1], nn.Tanh(), layers[2])
