import os

from benchmate.ux import long_action

with long_action("counting"), open(os.path.join(os.environ["MILABENCH_DIR_DATA"], "numbers"), "w") as file:
    file.write(" ".join(map(str, range(40))))
