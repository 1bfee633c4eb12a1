#!/usr/bin/env python3
"""Makes the tokens of this benchmark, at the size that was chosen."""

from main import NAME, options_of

from workload.options import data_folder
from workload.tokens import prepare

if __name__ == "__main__":
    options = options_of()
    print(prepare(data_folder(options, NAME), options.size))
