"""What a GPU computes without the host."""

from collections.abc import Callable, Hashable

import torch


class GraphRecorder:
    """Computations on tensors that stay where they are, and of which the host reads nothing.

    A GPU records each at its first run and replays it from then on: the host makes one call instead of
    hundreds. All records share memory, so they are replayed one after another.
    """

    def __init__(self, device: str) -> None:
        self.replays = True  # what was recorded
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self._pool = torch.cuda.graph_pool_handle() if device == "cuda" else None

    def run(self, key: Hashable, compute: Callable[[], None]) -> None:
        """Compute, or replay what `compute` did for this key."""
        if not self.replays or self._pool is None:
            compute()
        elif (graph := self._graphs.get(key)) is not None:
            graph.replay()
        else:
            compute()  # while a GPU records, it does not compute
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool):
                compute()
            self._graphs[key] = graph
