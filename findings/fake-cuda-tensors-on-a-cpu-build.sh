#!/bin/sh
# torch 2.13.0, CPU build: on FakeTensorMode's tensors "on a GPU", some operators ask for a driver and others do not.
#
# FakeTensorMode makes tensors that have a device, a shape and a type, and no values. So a decoder for GPUs can be checked on
# a machine without one: no host read, no mixed devices, no shape that depends on data. On a build of torch for CPUs alone it
# is uneven: `x[:2]`, `~x` and `x.copy_(y)` raise "PyTorch is not linked with support for cuda devices", while `x.narrow`,
# `x.logical_not`, `torch.ops.aten.copy_` and all arithmetic work. `torch.inference_mode` makes `index_copy_` fail as well. The
# comment in FakeTensorMode.__enter__ says that it patches the guard "in the case of CPU-only build"; a build without any CUDA
# guard is not patched.
#
# Seen: each line below as it stands in `expected`. Exit 1 if that changes.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6 2>/dev/null

cat > "$folder/expected" <<'END'
2.13.0 None
arithmetic works
slice: PyTorch is not linked with support for cuda devices
narrow works
invert: PyTorch is not linked with support for cuda devices
logical_not works
copy_: PyTorch is not linked with support for cuda devices
aten.copy_ works
END
"$folder/venv/bin/python" - > "$folder/seen" <<'END'
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

print(torch.__version__.split("+")[0], torch.version.cuda)
with FakeTensorMode(), torch.no_grad():
    x, flags = torch.empty((4, 5), device="cuda"), torch.empty(4, device="cuda") > 0
    operators = {
        "arithmetic": lambda: (x @ x.T).softmax(-1),
        "slice": lambda: x[:2],
        "narrow": lambda: x.narrow(0, 0, 2),
        "invert": lambda: ~flags,
        "logical_not": lambda: flags.logical_not(),
        "copy_": lambda: x.copy_(x + 1),
        "aten.copy_": lambda: torch.ops.aten.copy_(x, x + 1),
    }
    for name, run in operators.items():
        try:
            assert run().device.type == "cuda"
            print(name, "works")
        except RuntimeError as error:
            print(f"{name}: {str(error).splitlines()[0]}")
END
cat "$folder/seen"
diff "$folder/expected" "$folder/seen"
