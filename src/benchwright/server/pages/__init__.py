"""The pages of a server: each is a function of the store and of what was asked for. `bw site` writes the same ones as files.

Nothing here knows HTTP; an address is made by the `link` of the question.
"""
