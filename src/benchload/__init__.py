"""benchload: the client that measures OpenAI-compatible servers. Standard library and benchprobe only, Python 3.9 or later."""
