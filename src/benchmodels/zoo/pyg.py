"""The models and graph convolutions of torch_geometric, on a random graph.

Arguments get their values by their names, which are the same all over the library; what a class needs besides is in `MORE`.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Tuple

from benchmodels.zoo.base import (
    FULL,
    NEEDS_DEVICE,
    NEEDS_PACKAGE,
    NO_CALL,
    NO_FORWARD,
    TINY,
    NotInZoo,
    ZooEntry,
    ZooModel,
    ZooRequest,
    version_of,
)
from benchmodels.zoo.sources import exported_names, package_folder

# Nodes, edges and channels. The full graph is as large as Cora.
GRAPHS = {TINY: (32, 128, 16), "small": (256, 1024, 64), FULL: (2708, 10556, 256)}
RELATIONS, LAYERS, EDGE_CHANNELS, CLASSES = 3, 2, 4, 7
NO_MODEL = {
    "MessagePassing": "the base class of the convolutions",
    "MetaLayer": "it holds functions of the user",
    "RENet": "its inputs are histories of events, which its own data set makes",
    "GPSE": "its inputs are virtual nodes and random features, which its own transforms make",
    "CorrectAndSmooth": "it smooths the predictions of another model, and has no parameters",
    "GroupAddRev": "it frees its inputs in each call, so that it cannot be called twice with them",
    "HeteroConv": "it holds convolutions of the user",
}
NVIDIA_ONLY = {
    **dict.fromkeys(("CuGraphGATConv", "CuGraphRGCNConv", "CuGraphSAGEConv"), "pylibcugraphops"),
    "FusedGATConv": "dgNN",
}


class Graph(NamedTuple):
    """A random graph, and what its models are made of."""

    torch: Any
    nn: Any
    nodes: int
    edges: int
    channels: int

    def x(self, channels: int = 0) -> Any:
        return self.torch.randn(self.nodes, channels or self.channels)

    def edge_index(self) -> Any:
        """Every node has an edge to the next one, so that none is alone; each edge goes both ways."""
        half = max(1, self.edges // 2 - self.nodes)
        ring = self.torch.arange(self.nodes)
        more = self.torch.randint(0, self.nodes, (2, half))
        one_way = self.torch.cat([self.torch.stack([ring, ring.roll(-1)]), more], 1)
        return self.torch.cat([one_way, one_way.flip(0)], 1)

    def per_edge(self, *shape: int) -> Any:
        return self.torch.rand(self.edge_index().shape[1], *shape)

    def kinds(self, count: int, of: int) -> Any:
        return self.torch.arange(of) % count

    def mlp(self, *channels: int) -> Any:
        return self.nn.MLP(list(channels), norm=None)

    def gcn(self) -> Any:
        return self.nn.GCN(self.channels, self.channels, LAYERS)


Value = Callable[[Graph], Any]
ARGUMENTS: Mapping[str, Value] = {
    **dict.fromkeys(
        ("in_channels", "out_channels", "hidden_channels", "channels", "embedding_dim", "memory_dim", "time_dim"),
        lambda g: g.channels,
    ),
    **dict.fromkeys(("hidden_node_channels", "hidden_edge_channels", "dim_emb", "dim_pe_in"), lambda g: g.channels),
    **dict.fromkeys(("int_emb_size", "basis_emb_size", "out_emb_channels", "space_dimensions"), lambda g: 8),
    **dict.fromkeys(("propagate_dimensions", "edge_type_emb_dim", "edge_attr_emb_dim", "dim_pe_out"), lambda g: 8),
    **dict.fromkeys(("num_layers", "num_blocks", "num_timesteps", "num_bilinear", "K", "depth"), lambda g: LAYERS),
    **dict.fromkeys(("num_spherical", "num_radial", "filter_size", "kernel_size", "dim", "k"), lambda g: 3),
    **dict.fromkeys(("num_relations", "num_rels", "num_node_types", "num_edge_types"), lambda g: RELATIONS),
    **dict.fromkeys(("edge_dim", "raw_msg_dim"), lambda g: EDGE_CHANNELS),
    "num_nodes": lambda g: g.nodes,
    "num_classes": lambda g: CLASSES,
    "alpha": lambda g: 0.1,
    "nn": lambda g: g.mlp(g.channels, g.channels),
    "conv": lambda g: g.nn.GCNConv(g.channels, g.channels),
    "first_aggr": lambda g: True,
    "aggregators": lambda g: ["mean", "max"],
    "scalers": lambda g: ["identity", "amplification"],
    "deg": lambda g: g.torch.bincount(g.torch.full((g.nodes,), 4)),
    "metadata": lambda g: (["node"], [("node", "to", "node")]),
    "encoder": lambda g: g.gcn(),
    "discriminator": lambda g: g.mlp(g.channels, g.channels, 1),
    "mlp_h": lambda g: g.mlp(g.channels, 3),
    "mlp_f": lambda g: g.mlp(g.channels + 3, g.channels),
    "mlp_g": lambda g: g.mlp(g.channels, g.channels),
    "types": lambda g: ["node"],
    "mode": lambda g: "cat",
    "edge_index_dict": lambda g: {("node", "to", "node"): g.edge_index()},
    "metapath": lambda g: [("node", "to", "node")],
    "walk_length": lambda g: 4,
    "context_size": lambda g: 2,
    "edge_index": lambda g: g.edge_index(),
}
INPUTS: Mapping[str, Value] = {
    "x": lambda g: g.x(),
    "x_0": lambda g: g.x(),
    "edge_index": lambda g: g.edge_index(),
    "pos_edge_index": lambda g: g.edge_index(),
    "neg_edge_index": lambda g: g.edge_index(),
    "edge_attr": lambda g: g.per_edge(EDGE_CHANNELS),
    "edge_type": lambda g: g.kinds(RELATIONS, g.edge_index().shape[1]),
    "node_type": lambda g: g.kinds(RELATIONS, g.nodes),
    "batch": lambda g: g.torch.zeros(g.nodes, dtype=g.torch.long),
    "pos": lambda g: g.torch.rand(g.nodes, 3) * g.nodes ** (1 / 3),
    "z": lambda g: g.torch.randint(1, 10, (g.nodes,)),
    "y": lambda g: g.kinds(CLASSES, g.nodes),
    "mask": lambda g: g.kinds(2, g.nodes).bool(),
    "n_id": lambda g: g.torch.arange(g.nodes),
    "normal": lambda g: g.x(3),
    "pos_enc": lambda g: g.x(),
    "xs": lambda g: [g.x(), g.x()],
    "xs_dict": lambda g: {"node": [g.x(), g.x()]},
    "x_dict": lambda g: {"node": g.x()},
    "edge_index_dict": lambda g: {("node", "to", "node"): g.edge_index()},
    "hyperedge_index": lambda g: g.edge_index(),
}
_GRAPH_CALL = ("x", "edge_index")


class Special(NamedTuple):
    """Exceptions for one class: more arguments, more inputs, and other inputs."""

    arguments: Mapping[str, Value] = {}
    inputs: Mapping[str, Value] = {}
    takes: Tuple[str, ...] = ()


_EDGES = {"edge_attr": INPUTS["edge_attr"]}
_TYPED = {"edge_type": INPUTS["edge_type"]}
_DEGREES = {name: ARGUMENTS[name] for name in ("aggregators", "scalers", "deg")}
MORE: Mapping[str, Special] = {
    "MLP": Special({"channel_list": lambda g: [g.channels] * 3}),
    "PNA": Special(_DEGREES),
    **dict.fromkeys(("GAE", "ARGA", "PMLP"), Special(takes=_GRAPH_CALL)),
    **dict.fromkeys(("VGAE", "ARGVA"), Special({"encoder": lambda g: _means_encoder(g)}, takes=_GRAPH_CALL)),
    "InnerProductDecoder": Special(inputs={"z": INPUTS["x"]}),
    "LabelPropagation": Special(inputs={"y": INPUTS["y"]}),
    "DNAConv": Special(inputs={"x": lambda g: g.torch.randn(g.nodes, LAYERS, g.channels)}),
    "DynamicEdgeConv": Special({"nn": lambda g: g.mlp(2 * g.channels, g.channels)}),
    "EdgeConv": Special({"nn": lambda g: g.mlp(2 * g.channels, g.channels)}),
    "GINEConv": Special(inputs={"edge_attr": lambda g: g.per_edge(g.channels)}),
    "NNConv": Special({"nn": lambda g: g.mlp(EDGE_CHANNELS, g.channels**2)}, _EDGES),
    "PDNConv": Special(inputs=_EDGES),
    "HEATConv": Special(inputs=_EDGES),
    **dict.fromkeys(("RGCNConv", "FastRGCNConv", "RGATConv"), Special(inputs=_TYPED)),
    "GMMConv": Special(inputs={"edge_attr": lambda g: g.per_edge(3)}),
    "SplineConv": Special(inputs={"edge_attr": lambda g: g.per_edge(3)}),
    "WLConv": Special(inputs={"x": lambda g: g.kinds(CLASSES, g.nodes)}),
    "PointNetConv": Special({"local_nn": lambda g: g.mlp(g.channels + 3, g.channels)}),
    "PPFConv": Special({"local_nn": lambda g: g.mlp(g.channels + 4, g.channels)}),
    "MetaPath2Vec": Special(inputs={"node_type": lambda g: "node"}),
    "MeshCNNConv": Special(inputs={"edge_index": lambda g: g.torch.randint(0, g.nodes, (2, 4 * g.nodes))}),
    "PANConv": Special({"filter_size": lambda g: LAYERS}),
    "SchNet": Special({"interaction_graph": lambda g: _near_atoms(g.torch)}),
    "DeepGraphInfomax": Special(
        {
            "summary": lambda g: lambda z, *rest, **more: z.mean(0),
            "corruption": lambda g: lambda x, edges: (x.flip(0), edges),
        },
        takes=_GRAPH_CALL,
    ),
    "DeepGCNLayer": Special({"conv": ARGUMENTS["conv"], "block": lambda g: "plain"}, takes=_GRAPH_CALL),
    "TGNMemory": Special(
        {
            "message_module": lambda g: g.nn.models.tgn.IdentityMessage(EDGE_CHANNELS, g.channels, g.channels),
            "aggregator_module": lambda g: g.nn.models.tgn.LastAggregator(),
        }
    ),
    "LPFormer": Special(
        inputs={
            "batch": lambda g: g.edge_index()[:, : g.nodes],
            "ppr_matrix": lambda g: g.torch.eye(g.nodes).to_sparse(),
        }
    ),
}


class PygZoo:
    """The classes in `torch_geometric.nn.models` and `torch_geometric.nn.conv`."""

    name = "pyg"
    packages = ("torch_geometric", "scipy")

    def version(self) -> str:
        return version_of("torch_geometric")

    def entries(self) -> Iterable[ZooEntry]:
        for part in ("models", "conv"):
            for name in sorted(exported_names(package_folder("torch_geometric") / "nn" / part / "__init__.py")):
                if name[0].isupper():  # the others are functions
                    yield ZooEntry(self.name, name, "graph", {"author": "torch_geometric", "family": part})

    def build(self, request: ZooRequest) -> ZooModel:
        if request.name in NO_MODEL:
            raise NotInZoo(NO_MODEL[request.name], NO_FORWARD)
        if request.name in NVIDIA_ONLY:
            raise NotInZoo(f"it needs {NVIDIA_ONLY[request.name]}, which runs on NVIDIA devices only", NEEDS_DEVICE)
        torch, nn = import_module("torch"), import_module("torch_geometric.nn")
        nodes, edges, channels = GRAPHS[request.scale]
        graph = Graph(
            torch,
            nn,
            request.size("num_nodes", nodes),
            request.size("num_edges", edges),
            request.size("num_channels", channels),
        )
        kind, special = getattr(nn, request.name), MORE.get(request.name, Special())
        try:
            module = kind(**_values(graph, kind.__init__, ARGUMENTS, special.arguments))
            module.eval()  # not every class returns itself
            takes = special.takes or _required(module.forward)
            inputs = {**INPUTS, **special.inputs}
            call = {name: _value(graph, name, inputs) for name in dict.fromkeys((*takes, *special.inputs))}
            positional = tuple(call.pop(name) for name in special.takes)
            with torch.no_grad():
                module(*positional, **call)
        except ImportError as error:
            raise NotInZoo(str(error).splitlines()[0], NEEDS_PACKAGE) from error
        return ZooModel(module, positional, call, None if request.name == "MLP" else 1, "one graph")


def _required(function: Any) -> List[str]:
    parameters = inspect.signature(function).parameters.values()
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return [p.name for p in named if p.default is p.empty and p.name != "self"]


def _values(graph: Graph, function: Any, usual: Mapping[str, Value], more: Mapping[str, Value]) -> Dict[str, Any]:
    known = {**usual, **more}
    return {name: _value(graph, name, known) for name in dict.fromkeys((*_required(function), *more))}


def _value(graph: Graph, name: str, known: Mapping[str, Value]) -> Any:
    if name not in known:
        raise NotInZoo(f"no value is known for its argument '{name}'", NO_CALL)
    return known[name](graph)


def _means_encoder(graph: Graph) -> Any:
    """An encoder that gives means and deviations."""
    torch: Any = graph.torch

    class MeansEncoder(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.means, self.deviations = graph.gcn(), graph.gcn()

        def forward(self, x: Any, edge_index: Any) -> Any:
            return self.means(x, edge_index), self.deviations(x, edge_index)

    return MeansEncoder()


def _near_atoms(torch: Any) -> Any:
    """Pairs of atoms nearer than the cutoff, without torch-cluster."""

    class NearAtoms(torch.nn.Module):  # type: ignore[misc]
        def forward(self, pos: Any, batch: Any) -> Any:
            distances = torch.cdist(pos, pos) + 1e9 * torch.eye(len(pos))
            row, column = ((distances < 10.0) & (batch[:, None] == batch[None])).nonzero().t()
            return torch.stack([row, column]), distances[row, column]

    return NearAtoms()
