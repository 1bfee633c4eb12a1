import argparse
import json
import os
import time

from benchmate.metrics import StopProgram
from benchmate.monitor import bench_monitor
from benchmate.observer import BenchObserver

from .work import numbers


def train(batches, criterion):
    for batch in batches:
        time.sleep(0.02)
        criterion(batch)


def mean(batch):
    return sum(batch) / len(batch)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--hidden", action="store_true")
    args = parser.parse_args()
    with open(os.path.join(os.environ["MILABENCH_DIR_DATA"], f"ran-{args.batch_size}"), "w") as file:
        json.dump({name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "PYTHONPATH", "VIRTUAL_ENV")}, file)
    if not args.hidden:
        for _ in range(100):
            train(numbers(args.batch_size), mean)
        return
    observer = BenchObserver(stdout=True, earlystop=9, batch_size_fn=len, raise_stop_program=True)
    batches = observer.loader(numbers(args.batch_size))
    try:
        with bench_monitor(poll_interval=0.05):
            while True:
                train(batches, observer.criterion(mean))
    except StopProgram:
        print("stopped early")


if __name__ == "__main__":
    main()
