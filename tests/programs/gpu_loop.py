"""Asynchronous work on a GPU, measured by benchprobe and by a plain synchronised loop beside it.

    python gpu_loop.py [FOLDER]    exit code 0: what the probe recorded is true

Run without BENCHPROBE_CONFIG it measures itself: it starts itself again with the probe on and reads the stream.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

STEPS, WARMUP = 300, 30


def work(torch, a, b):
    for _ in range(4):
        b = a @ b
        b = b / b.norm()
    return b


def measured_loop():
    import torch

    from benchprobe import give, iterate

    a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    total = torch.zeros((), device="cuda")
    for i in iterate("train", range(1_000_000), batch_size=4096):
        b = work(torch, a, b)
        give(loss=b.float().square().sum())
        if i == 40:
            give(changed=total)
            total += 1  # too late: the probe must notice, not record a wrong number
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(100):
        b = work(torch, a, b)
    torch.cuda.synchronize()
    print(json.dumps({"plain_step_ms": (time.perf_counter() - begin) * 10}))


def check(folder):
    stream = os.path.join(folder, "gpu.data")
    config = {"stream": stream, "stop": {"steps": STEPS}, "warmup": {"steps": WARMUP}}
    environment = {**os.environ, "BENCHPROBE_CONFIG": json.dumps(config)}
    done = subprocess.run([sys.executable, __file__], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    plain_ms = json.loads(done.stdout)["plain_step_ms"]
    with open(stream) as lines:
        events = [json.loads(line) for line in lines]
    measured = [e for e in events if e["event"] == "steps" and e["phase"] == "measured"]
    steps = sum(len(e["step_ns"]) for e in measured)
    device_ns = sorted(ns for e in measured for ns in e["device_ns"])
    window_ms = sum(e["window_ns"] for e in measured) / steps / 1e6
    host_ms = sum(sum(e["step_ns"]) for e in measured) / steps / 1e6
    losses = [v for e in measured for v in e["given"]["loss"][1]]
    messages = [e["text"] for e in events if e["event"] == "message"]
    print(f"steps {steps}, windows {len(measured)}, losses {len(losses)} ({losses[0]:.4f})")
    print(
        f"plain {plain_ms:.3f} ms  window {window_ms:.3f} ms  device median {device_ns[len(device_ns) // 2] / 1e6:.3f} ms"
    )
    print(f"host view {host_ms:.3f} ms; messages: {messages}")
    assert (steps, len(losses)) == (STEPS, STEPS)
    assert all(len(e["device_ns"]) == len(e["step_ns"]) for e in measured)
    assert all(abs(loss - 1) < 0.05 for loss in losses), losses[:5]
    assert any("'changed' was not recorded" in text for text in messages)
    assert not any("changed" in e.get("given", {}) for e in measured)
    # The measured loop also takes the norm's square and reads it, so it may be a little slower, never faster.
    assert 0.9 * plain_ms < window_ms < 1.3 * plain_ms, (plain_ms, window_ms)
    print("probe and plain loop agree")


if __name__ == "__main__":
    if os.environ.get("BENCHPROBE_CONFIG"):
        measured_loop()
    elif len(sys.argv) > 1:
        check(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as temporary:
            check(temporary)
