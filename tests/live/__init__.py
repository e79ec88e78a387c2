"""Runs llama.cpp's own server on tiny models and compares what ckptlog says with what happened.

``python -m tests.live --help`` lists what can be done from the command line.
"""
