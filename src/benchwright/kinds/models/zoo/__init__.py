"""Models of zoos as targets: `timm:resnet*`."""
