"""The checks of `whisperfleet doctor`: the machine, its GPUs, the models, the workers."""
