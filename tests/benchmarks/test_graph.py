"""Training a graph network."""

from __future__ import annotations

import pytest
from shipped_benchmarks import checked_lines, load

torch = pytest.importorskip("torch")
graph = load("graph")
molecules = load("graph", "molecules")

from workload.claims import parameter_count  # noqa: E402


def test_it_computes_what_it_claims(tmp_path):
    assert len(checked_lines("graph", data=tmp_path)) == 3


@pytest.mark.parametrize("model", ["gcn", pytest.param("pna", marks=pytest.mark.long)])
def test_the_other_networks_compute_what_they_claim(capsys, model):
    options = graph.options(["--check", "--device", "cpu", "--threads", "1", "--model", model])
    assert graph.run(options, graph.build) == 0, capsys.readouterr().out


@pytest.mark.parametrize("model", list(graph.PUBLIC))
def test_the_networks_are_the_public_ones(model):
    layers, width = graph.PUBLIC[model]
    with torch.device("meta"):
        found = parameter_count(graph.network(model, layers, width))
    assert found == graph.parameters(model, layers, width) == graph.PUBLIC_PARAMETERS[model]


def test_every_batch_has_the_nodes_and_edges_that_are_counted():
    for batch in (1, 32, 100):
        nodes, edges = molecules.counts(batch)
        for made in molecules.batches(batch, 3, seed=1):
            assert len(made.atoms) == len(made.graph) == nodes
            assert len(made.source) == len(made.target) == len(made.bonds) == edges
            assert len(made.label) == batch


def test_molecules_are_of_the_size_of_those_in_molhiv():
    nodes, edges = molecules.counts(3200)
    assert nodes / 3200 == pytest.approx(25.5, abs=0.1)
    assert edges / 2 / 3200 == pytest.approx(27.5, abs=0.2)


def test_molecules_are_whole_and_apart():
    (made,) = molecules.batches(20, 1, seed=2)
    assert torch.equal(made.graph[made.source], made.graph[made.target])  # no bond between molecules
    assert not torch.any(made.source == made.target)
    reached = torch.arange(len(made.atoms))
    for _ in range(len(made.atoms)):  # the least number of an atom that can be reached
        reached = reached.scatter_reduce(0, made.target, reached[made.source], "amin")
    assert len(reached.unique()) == 20
    for column, most in enumerate(molecules.ATOM_FEATURES):
        assert int(made.atoms[:, column].max()) < most
    for column, most in enumerate(molecules.BOND_FEATURES):
        assert int(made.bonds[:, column].max()) < most


@pytest.mark.parametrize("model", list(graph.PUBLIC))
def test_the_order_of_edges_and_the_company_do_not_matter(model):
    torch.manual_seed(0)
    (made,) = molecules.batches(6, 1, seed=3)
    network = graph.network(model, 2, 20).eval()
    with torch.no_grad():
        whole = network(made)
        order = torch.randperm(len(made.source))
        shuffled = molecules.Graphs(
            made.atoms, made.bonds[order], made.source[order], made.target[order], made.graph, made.label
        )
        assert torch.allclose(network(shuffled), whole, atol=1e-5)
        alone, edges = made.graph == 0, made.graph[made.source] == 0
        first = molecules.Graphs(
            made.atoms[alone],
            made.bonds[edges],
            made.source[edges],
            made.target[edges],
            made.graph[alone],
            made.label[:1],
        )
        assert torch.allclose(network(first), whole[:1], atol=1e-5)


def test_pna_takes_mean_least_most_and_deviation():
    torch.manual_seed(0)
    networks = load("graph", "graph_networks")
    layer = networks.PNA(5, 4, mean_log_degree=1.0)
    x, bonds = torch.randn(4, 5), torch.randn(3, 4)
    source, target = torch.tensor([1, 2, 3]), torch.tensor([0, 0, 0])
    with torch.no_grad():
        found = layer(x, bonds, molecules.Graphs(x, bonds, source, target, torch.zeros(4), torch.zeros(1)))[0]
        messages = torch.stack(
            [layer.before(torch.cat([x[0], x[s], layer.edges(bonds[i])])) for i, s in enumerate((1, 2, 3))]
        )
        messages = messages.view(3, 5, 5)  # edges, towers, width
        deviation = messages.std(0, unbiased=False)
        seen = torch.cat([messages.mean(0), messages.amin(0), messages.amax(0), deviation], dim=1)
        scale = torch.log(torch.tensor(4.0))
        inner = torch.cat([x[0].expand(5, 5), seen, seen * scale, seen / scale], dim=1)
        towers = torch.stack([inner[t] @ layer.after[t] + layer.after_bias[t, 0] for t in range(5)])
        assert torch.allclose(found, layer.out(towers.flatten()), atol=1e-5)


def test_a_width_that_towers_cannot_share_is_refused(capsys):
    with pytest.raises(SystemExit):
        graph.options(["--model", "pna", "--width", "64"])
    assert "multiple of 5" in capsys.readouterr().err
