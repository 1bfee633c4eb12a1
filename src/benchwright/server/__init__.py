"""The server of one store: its methods over HTTP, for clients with a token. Only here, Starlette and uvicorn are imported."""
