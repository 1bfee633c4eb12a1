"""The checkup: reads the machine, judges it, shows it."""
