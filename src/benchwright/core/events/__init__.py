"""The events of a stream: what each must contain, and what programs report through voir."""
