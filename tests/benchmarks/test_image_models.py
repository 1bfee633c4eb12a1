"""The models of the image benchmarks are the public ones, and cost what the formulas say."""

from __future__ import annotations

import pytest
from shipped_benchmarks import load

torch = pytest.importorskip("torch")
load("vision")

from workload.claims import counted_flops, parameter_count  # noqa: E402
from workload.costs import conv, linear  # noqa: E402
from workload.models import unet  # noqa: E402
from workload.models.image_models import NAMES, PUBLIC_PARAMETERS, image_model  # noqa: E402

# As torchvision tells them: multiply-adds of one image of 224 × 224, in thousands of millions.
PUBLIC_GMACS = {"resnet50": 4.09, "convnext_tiny": 4.46, "convnext_large": 34.36, "vit_b_16": 17.56}
PUBLIC_UNETS = {unet.Shape(): 35_746_307, unet.AT_256: 113_673_219}


@pytest.mark.parametrize(
    ("name", "size"),
    [
        *((name, "tiny") for name in NAMES),
        *(pytest.param(name, "small", marks=pytest.mark.long) for name in NAMES),
        *(pytest.param(name, "full", marks=[pytest.mark.long] * name.startswith("convnext")) for name in NAMES),
    ],
)
def test_image_models_have_the_parameters_and_arithmetic_of_the_formulas(name, size):
    chosen = image_model(name, size)
    with torch.device("meta"):
        model = chosen.build().train()
        images = torch.empty(2, 3, chosen.side, chosen.side)
    assert parameter_count(model) == chosen.parameters == chosen.cost.parameters
    assert counted_flops(lambda: model(images)) == 2 * chosen.cost.flops
    assert counted_flops(lambda: model(images).sum().backward()) == 2 * chosen.cost.training_flops
    if size == "full":
        assert chosen.parameters == PUBLIC_PARAMETERS[name]
        assert chosen.cost.flops / 2e9 == pytest.approx(PUBLIC_GMACS[name], abs=0.01)


@pytest.mark.parametrize("shape", [unet.Shape(), pytest.param(unet.AT_256, marks=pytest.mark.long)])
def test_the_unet_is_that_of_ddpm(shape):
    claimed = unet.cost(shape)
    with torch.device("meta"):
        model = unet.UNet(shape)
        images, times = torch.empty(2, 3, shape.side, shape.side), torch.zeros(2, dtype=torch.long)
    assert parameter_count(model) == claimed.parameters == PUBLIC_UNETS[shape]
    assert counted_flops(lambda: model(images, times)) == 2 * claimed.flops
    assert counted_flops(lambda: model(images, times).sum().backward()) == 2 * claimed.training_flops


def test_arithmetic_of_convolutions_in_groups_is_counted_for_each_group():
    layer = torch.nn.Conv2d(8, 16, 3, padding=1, groups=4)
    images = torch.randn(2, 8, 10, 10, requires_grad=True)
    claimed = conv(8, 16, 3, 10, groups=4)
    assert claimed.parameters == parameter_count(layer)
    assert counted_flops(lambda: layer(images)) == 2 * claimed.flops
    assert counted_flops(lambda: layer(images).sum().backward()) == 2 * claimed.training_flops


def test_arithmetic_of_transposed_convolutions_is_counted():
    layer = torch.nn.ConvTranspose2d(4, 6, 2, stride=2)
    images = torch.randn(1, 4, 5, 5, requires_grad=True)
    forward = 2 * 4 * 6 * 2 * 2 * 5 * 5
    assert counted_flops(lambda: layer(images)) == forward
    assert counted_flops(lambda: layer(images).sum().backward()) == 3 * forward


def test_fused_attention_on_the_cpu_is_counted():
    query, key = (torch.randn(2, 4, 16, 8, requires_grad=True) for _ in range(2))
    forward = 4 * 2 * 4 * 16 * 16 * 8

    def attend():
        return torch.nn.functional.scaled_dot_product_attention(query, key, key)

    assert counted_flops(attend) == forward
    assert counted_flops(lambda: attend().sum().backward()) in (3 * forward, 3.5 * forward)  # plain, or fused


def test_what_comes_first_needs_no_gradient_of_its_input():
    layer = torch.nn.Linear(6, 4)
    rows = torch.randn(3, 6)
    assert counted_flops(lambda: layer(rows).sum().backward()) == 3 * linear(6, 4).first.training_flops


def test_layers_of_the_same_model_give_the_same_numbers_in_both_layouts():
    for name in NAMES:
        chosen = image_model(name, "tiny")
        torch.manual_seed(0)
        model = chosen.build().eval()
        images = torch.randn(2, 3, chosen.side, chosen.side)
        with torch.no_grad():
            plain = model(images)
            turned = model.to(memory_format=torch.channels_last)(images.contiguous(memory_format=torch.channels_last))
        assert torch.allclose(plain, turned, atol=1e-4), name
