"""Reinforcement learning."""

from __future__ import annotations

import math

import pytest
from shipped_benchmarks import checked_lines, load

torch = pytest.importorskip("torch")
ppo = load("ppo")
cartpole = load("ppo", "cartpole")
proximal = load("ppo", "proximal")

CPU = torch.device("cpu")


def test_it_computes_what_it_claims_in_few_steps(capsys, monkeypatch):
    monkeypatch.setattr(ppo, "CHECKED", 10)
    assert ppo.main(ppo.options(["--check", "--device", "cpu", "--threads", "1"])) == 0, capsys.readouterr().out


@pytest.mark.long
def test_it_computes_what_it_claims(tmp_path):
    assert len(checked_lines("ppo", data=tmp_path)) == 4


def test_an_episode_ends_when_the_pole_falls_and_begins_anew():
    poles = cartpole.CartPoles(3, CPU, seed=0)
    ended = 0
    for _ in range(40):  # always to the right: it falls within about ten steps
        before = poles.length.clone()
        state, done = poles.step(torch.ones(3, dtype=torch.long))
        ended += int(done.sum())
        assert state.abs()[done.bool()].le(0.05).all()
        assert poles.length.equal((before + 1) * (1 - done))
    assert int(poles.ended) == ended >= 9
    assert 8 <= float(poles.ended_length / poles.ended) <= 11
    poles.forget()
    assert int(poles.ended) == int(poles.ended_length) == 0


def test_an_episode_ends_after_five_hundred_steps(monkeypatch):
    poles = cartpole.CartPoles(2, CPU, seed=0)
    poles._physics = lambda state, action: state * 0
    dones = [float(poles.step(torch.zeros(2, dtype=torch.long))[1].sum()) for _ in range(1000)]
    assert [step for step, done in enumerate(dones, 1) if done] == [500, 1000]


def test_advantages_are_sums_of_surprises():
    torch.manual_seed(0)
    value, after = torch.randn(5, 3), torch.randn(3)
    done = torch.zeros(5, 3)
    done[2, 1] = 1
    found = proximal.advantages(value, done, after)
    for column in range(3):
        values = [*value[:, column].tolist(), float(after[column])]
        for step in range(5):
            expected, factor = 0.0, 1.0
            for later in range(step, 5):
                ends = bool(done[later, column])
                following = 0.0 if ends else values[later + 1]
                expected += factor * (1.0 + 0.99 * following - values[later])
                factor *= 0.99 * 0.95
                if ends:
                    break
            assert float(found[step, column]) == pytest.approx(expected, abs=1e-5)


def test_actions_are_drawn_as_often_as_the_agent_wants():
    class Agent:
        def __call__(self, state):
            return torch.tensor([0.8, 0.2]).log().expand(len(state), 2), torch.zeros(len(state))

    poles = cartpole.CartPoles(500, CPU, seed=0)
    seen = proximal.collect(Agent(), poles, 20, torch.Generator().manual_seed(0))
    assert float(seen.action.float().mean()) == pytest.approx(0.2, abs=0.02)
    assert torch.allclose(seen.chance.exp(), torch.where(seen.action == 1, 0.2, 0.8))
    assert len(seen.state) == 500 * 20


def test_at_first_the_loss_is_that_of_an_unchanged_policy():
    torch.manual_seed(0)
    agent = proximal.Agent()
    poles = cartpole.CartPoles(64, CPU, seed=0)
    seen = proximal.collect(agent, poles, 16, torch.Generator().manual_seed(0))
    logits, _ = agent(seen.state)
    entropy = float(-(logits.exp() * logits).sum(-1).mean().detach())
    assert entropy == pytest.approx(math.log(2), abs=0.01)  # an agent begins undecided
    # The ratio is 1 and advantages have mean 0: what is left is the entropy and half of half the squared advantages.
    expected = -0.01 * entropy + 0.5 * 0.5 * float((seen.advantage**2).mean())
    assert float(proximal.loss(agent, seen).detach()) == pytest.approx(expected, rel=1e-4)


def test_what_needs_precision_is_not_done_in_half_of_it(capsys):
    with pytest.raises(SystemExit):
        ppo.options(["--precision", "bf16"])
    assert "--precision is fp32 or tf32" in capsys.readouterr().err
