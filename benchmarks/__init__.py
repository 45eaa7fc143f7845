"""Speed and memory, measured side by side. Each module is run by name: ``python -m benchmarks.engine``."""
