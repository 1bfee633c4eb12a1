#!/usr/bin/env python3
"""Reinforcement learning: PPO on many CartPoles at once. README.md tells the rest."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

import torch
from cartpole import ACTIONS, OBSERVED, CartPoles, physics
from proximal import WIDTH, Agent, collect, improve
from torch import Tensor

from benchprobe import give, iterate
from workload.claims import Claim, conclude, parameter_count
from workload.devices import process_group, rank, set_up
from workload.options import parse, parser

SIZES = {
    "tiny": {"batch_size": 64, "rollout": 32, "learning_rate": 3e-3},
    "small": {"batch_size": 256, "rollout": 128, "learning_rate": 1e-3},
    "full": {"batch_size": 16384, "rollout": 64, "learning_rate": 1e-3},
}
PUBLIC_PARAMETERS = 9155  # of CleanRL's agent for CartPole
CHECKED = 30  # steps, after which episodes must be this much longer:
LONGER = 1.5


def options(argv: list[str] | None = None) -> Any:
    found = parser("PPO on many CartPoles at once. --batch-size is how many, in each process.", SIZES)
    found.add_argument("--rollout", type=int, help="steps of each environment before the agent is improved  [by size]")
    found.add_argument("--epochs", type=int, default=4, help="times that the experience is gone over  [4]")
    found.add_argument("--minibatches", type=int, default=4, help="parts of the experience in each of them  [4]")
    found.add_argument("--learning-rate", type=float, help="[by size]")
    given = parse(found, SIZES, argv)
    if given.precision in ("bf16", "fp16"):
        found.error("--precision is fp32 or tf32: values and advantages need it")
    return given


def build(given: Any, device: torch.device) -> tuple[Agent, Callable[[], tuple[Tensor, Tensor]]]:
    """The agent, and a step: acting, then learning. It returns the loss and how long the episodes were that ended."""
    agent = Agent().to(device)
    acting: Any = torch.compile(agent) if given.compile else agent
    optimizer = torch.optim.Adam(agent.parameters(), lr=given.learning_rate, eps=1e-5)
    seed = given.seed + rank()
    environments = CartPoles(given.batch_size, device, seed, given.compile)
    generator = torch.Generator(device).manual_seed(seed)
    length = torch.full((), math.nan, device=device)

    def step() -> tuple[Tensor, Tensor]:
        nonlocal length
        environments.forget()
        seen = collect(acting, environments, given.rollout, generator)
        found = improve(acting, optimizer, seen, given.epochs, given.minibatches, generator)
        ended = environments.ended
        length = torch.where(ended > 0, environments.ended_length / ended.clamp(min=1), length)
        return found, length

    return agent, step


def main(given: Any) -> int:
    device = set_up(given)
    with process_group(device):
        agent, step = build(given, device)
        if given.check:
            return check(agent, step)
        played = given.batch_size * given.rollout
        for _ in iterate("train", range(given.steps), batch_size=played, unit="env steps"):
            found, length = step()
            give(loss=found, episode_length=length)
    return 0


def check(agent: Agent, step: Callable[[], tuple[Tensor, Tensor]]) -> int:
    """Parameters, the physics against the same written out for one, and that poles stay upright longer and longer."""
    w = WIDTH
    formula = 2 * (OBSERVED * w + w + w * w + w) + (ACTIONS + 1) * (w + 1)
    claims = [
        Claim("parameters", PUBLIC_PARAMETERS, parameter_count(agent), 0.0),
        Claim("parameters by formula", PUBLIC_PARAMETERS, formula, 0.0),
        Claim("the physics of many are those of one", 1, float(physics_agree())),
    ]
    lengths = [float(step()[1]) for _ in range(CHECKED)]
    few = CHECKED // 5
    first, last = sum(lengths[:few]) / few, sum(lengths[-few:]) / few
    claims.append(
        Claim(f"episodes become longer, from {first:.1f} steps to {last:.1f}", 1, float(last > LONGER * first))
    )
    return conclude(claims)


def physics_agree() -> bool:
    """Over 50 pushes to and fro, the equations of Florian (2007) for one cart in plain numbers."""
    x, v, a, w = 0.01, -0.02, 0.03, 0.04
    state = torch.tensor([[x, v, a, w]], dtype=torch.float64)
    for number in range(50):
        action = number % 3 % 2
        force = 10.0 if action else -10.0
        inner = (force + 0.1 * 0.5 * w**2 * math.sin(a)) / 1.1
        angular = (9.8 * math.sin(a) - math.cos(a) * inner) / (0.5 * (4.0 / 3.0 - 0.1 * math.cos(a) ** 2 / 1.1))
        linear = inner - 0.1 * 0.5 * angular * math.cos(a) / 1.1
        x, v, a, w = x + 0.02 * v, v + 0.02 * linear, a + 0.02 * w, w + 0.02 * angular
        state = physics(state, torch.tensor([action]))
    return torch.allclose(state[0], torch.tensor([x, v, a, w], dtype=torch.float64), rtol=1e-9)


if __name__ == "__main__":
    sys.exit(main(options()))
