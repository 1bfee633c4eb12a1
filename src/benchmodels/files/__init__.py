"""Model files: ONNX, torch.export, OpenVINO."""
