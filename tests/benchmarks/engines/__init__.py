"""The engines: each a small program that speaks JSON lines with the driver. `worker.py` has the protocol."""
