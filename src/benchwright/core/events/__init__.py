"""The events of a stream: what each must hold, and what programs say through voir."""
