"""What `whisperfleet doctor` looks at: this machine, its GPUs, the model, the workers."""
