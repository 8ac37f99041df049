"""gpuledger: who spent the GPU, how much, and what part of it can we not see."""

__version__ = "0.1.0"
