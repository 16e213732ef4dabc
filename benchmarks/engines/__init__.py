"""The engines: small programs that exchange JSON lines with the driver. `worker.py` describes the protocol."""
