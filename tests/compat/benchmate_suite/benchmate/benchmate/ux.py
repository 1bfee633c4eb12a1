from contextlib import contextmanager


@contextmanager
def long_action(msg):
    print(msg)
    yield
