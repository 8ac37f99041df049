"""A CUDA job by ctypes on libcuda.so.1: takes memory, works on it for a while, prints what it measured itself.

Run as a process of its own: ``python cuda_job.py MIB SECONDS [GPU]``. Standard library only.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time

MIB = 1024 * 1024


def main(mib: int, seconds: float, gpu: str) -> None:
    """Hold ``mib`` MiB for ``seconds`` with a loop of memsets, and say how long the context was held."""
    if gpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name: str, *arguments: object) -> None:
        number = getattr(cuda, name)(*arguments)
        if number:
            text = ctypes.c_char_p()
            cuda.cuGetErrorString(number, ctypes.byref(text))
            sys.exit(f"{name}: {number} {(text.value or b'').decode()}")

    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    started = time.time()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(mib * MIB))
    until = time.monotonic() + seconds
    rounds = 0
    while time.monotonic() < until:
        call("cuMemsetD8_v2", memory, ctypes.c_ubyte(rounds % 256), ctypes.c_size_t(mib * MIB))
        call("cuCtxSynchronize")
        rounds += 1
        time.sleep(0.001)
    call("cuMemFree_v2", memory)
    call("cuCtxDestroy_v2", context)
    ended = time.time()
    own = {"pid": os.getpid(), "started": started, "ended": ended, "mib": mib, "rounds": rounds}
    sys.stdout.write(json.dumps(own) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "")
