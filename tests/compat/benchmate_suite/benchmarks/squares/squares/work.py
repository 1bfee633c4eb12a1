import os


def numbers(size):
    """Batches of the numbers that prepare.py wrote."""
    with open(os.path.join(os.environ["MILABENCH_DIR_DATA"], "numbers")) as file:
        found = [int(word) for word in file.read().split()]
    return [found[start : start + size] for start in range(0, len(found), size)]
