"""Writes tests/exported/parameters: small modules with everything that is no plain weight, by both exporters, and how PyTorch trains them.

    parameters.py

The export is that of examples/README.md: the Python lines of its chapter "From and to PyTorch" are executed here.  `all` holds buffers (written by hand,
a mask of -inf, sines, not persistent, a scalar), scalar, tied, frozen, unused, weight-normed and integer parameters, and a batch norm; it
is exported with the record (all.script.onnx, all.dynamo.onnx) and without (bare.script.onnx, bare.dynamo.onnx).  losses.txt has one line
for each way of training: its name, how, and the losses by PyTorch; statistics.txt the running statistics after the last step of sgd.
misnamed.script.onnx has buffers with names of weights, still.KIND.onnx a batch norm in evaluation mode.
chapter/ has what the commands of that chapter need, and what they must give.
"""
import contextlib
import io
import json
import os
import pathlib
import shutil
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ["TORCH_LOGS"] = "-all"
sys.dont_write_bytecode = True

import numpy as np
import onnx
import torch
import torch.nn as nn

torch.set_num_threads(1)
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HERE = ROOT / "tests" / "exported" / "parameters"
STEPS = 6


def snippet():
    """The Python lines of the chapter in examples/README.md."""
    chapter = (ROOT / "examples" / "README.md").read_text().split("## From and to PyTorch\n")[1].split("\n## ")[0]
    return chapter.split("```python\n")[1].split("```")[0]


class All(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain, self.shrink = nn.Parameter(torch.tensor(2.0)), nn.Parameter(torch.tensor(0.3))
        self.order = nn.Parameter(torch.tensor([2, 0, 1, 3]), requires_grad=False)
        self.unused = nn.Parameter(torch.randn(5))
        self.register_buffer("table", torch.tensor([0.5, 1.0, 2.0, 0.25]))
        self.register_buffer("offset", torch.tensor(0.125))
        self.register_buffer("gone", torch.randn(4), persistent=False)
        self.register_buffer("mask", torch.tensor([0.0, float("-inf"), 0.0, 0.0]))
        angles = torch.outer(torch.arange(6.0), torch.tensor([1.0, 0.1]))
        self.register_buffer("pe", torch.cat((angles.sin(), angles.cos()), 1))
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4, bias=False)
        self.two.weight = self.one.weight
        self.still = nn.Linear(4, 4)
        self.still.requires_grad_(False)
        self.normed = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))
        self.bn = nn.BatchNorm1d(4)

    def forward(self, x, y):
        h = self.one(x * self.table + self.offset) * self.gain + self.gone + self.pe
        h = self.bn(self.two(self.still(torch.tanh(h))))
        h = torch.softmax(h + self.mask, -1)
        h = self.normed(h)[:, self.order] * torch.exp(self.shrink)
        return ((h - y) ** 2).mean()


WAYS = {
    "sgd": ("sgd(lr: 0.1)", "", lambda p: torch.optim.SGD(p, lr=0.1), None),
    "adamw": ("adamw(lr: 0.02, weight_decay: 0.1)", ", clip: norm(0.05)", lambda p: torch.optim.AdamW(p, lr=0.02, weight_decay=0.1), 0.05),
    "momentum": ("momentum(lr: 0.05, momentum: 0.9, weight_decay: 0.01)", ", clip: value(0.01)",
                 lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01), -0.01),
}


def train(module, x, y, make, clip):
    optimizer, losses = make([p for p in module.parameters() if p.requires_grad]), []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = module(x, y)
        loss.backward()
        if clip and clip > 0:
            torch.nn.utils.clip_grad_norm_(module.parameters(), clip)
        elif clip:
            torch.nn.utils.clip_grad_value_(module.parameters(), -clip)
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir(parents=True)
    torch.manual_seed(20)
    model = All().train()
    x, y = torch.randn(6, 4), torch.randn(6, 4)
    state = {k: v.clone() for k, v in model.state_dict().items()}
    for kind in "script", "dynamo":
        names = {"torch": torch, "onnx": onnx, "model": model, "x": x, "y": y}
        exec(snippet(), names)                          # defines export and record
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            more = {"external_data": False} if kind == "dynamo" else {}
            names["export"](model, {"x": x, "y": y}, str(HERE / f"bare.{kind}.onnx"), dynamo=kind == "dynamo", **more)
        shutil.copy(HERE / f"bare.{kind}.onnx", HERE / f"all.{kind}.onnx")
        model.load_state_dict(state)                    # exporting runs the module, which moves the statistics of batch norm
        clean(HERE / f"bare.{kind}.onnx", record=False)
        clean(HERE / f"all.{kind}.onnx", record=True)
    (HERE / "data").mkdir()
    np.save(HERE / "data" / "x.npy", x.numpy())
    np.save(HERE / "data" / "y.npy", y.numpy())
    lines = []
    for name, (how, more, make, clip) in WAYS.items():
        model.load_state_dict(state)
        lines.append(f"{name}|optimizer: {how}{more}|" + " ".join(f"{v:.7g}" for v in train(model, x, y, make, clip)))
        if name == "sgd":
            (HERE / "statistics.txt").write_text("".join(f"{n} " + " ".join(f"{v:.7g}" for v in t.tolist()) + "\n" for n, t in
                                                         (("bn.running_mean", model.bn.running_mean), ("bn.running_var", model.bn.running_var))))
    (HERE / "losses.txt").write_text("\n".join(lines) + "\n")
    make_misnamed()
    make_still()
    make_net()


class Misnamed(nn.Module):
    """Buffers with names of weights: a table of distances, class weights of a loss, an offset of experts."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 4))
        self.forget_bias = nn.Parameter(torch.tensor([0.0, 1.0, 0.0, 1.0]))
        self.register_buffer("margin", torch.tensor(0.2))
        self.register_buffer("class_weight", torch.tensor([1.0, 2.0, 0.5, 1.5]))
        self.register_buffer("slopes", torch.rand(4))
        self.inner = nn.Module()
        self.inner.gate = nn.Parameter(torch.randn(4))
        self.inner.register_buffer("bias", torch.tensor([-3.0, -2.0, -1.0, 0.0]))

    def forward(self, x, y):
        scores = x @ self.w * self.inner.gate + self.forget_bias + self.inner.bias * self.slopes - self.margin
        return nn.functional.cross_entropy(scores, y.argmax(1), weight=self.class_weight)


def make_misnamed():
    """misnamed.script.onnx: without the record, nothing tells its buffers but numbers and use."""
    torch.manual_seed(22)
    args = {"training": torch.onnx.TrainingMode.TRAINING, "do_constant_folding": False, "dynamo": False}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        torch.onnx.export(Misnamed(), (torch.randn(6, 4), torch.randn(6, 4)), str(HERE / "misnamed.script.onnx"),
                          input_names=["x", "y"], output_names=["loss"], **args)
    clean(HERE / "misnamed.script.onnx", record=False)


class Still(nn.Module):
    """All its norms are in evaluation mode, also while it is trained."""

    def __init__(self):
        super().__init__()
        self.body, self.norm, self.head = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 4)
        self.norm.running_mean.normal_()
        self.norm.running_var.uniform_(0.5, 2)

    def train(self, mode=True):
        super().train(mode)
        self.norm.eval()
        return self

    def forward(self, x, y):
        return ((self.head(torch.relu(self.norm(self.body(x)))) - y) ** 2).mean()


def make_still():
    """still.KIND.onnx, and still.txt: the losses of sgd on data/."""
    torch.manual_seed(23)
    model = Still().train()
    x, y = (torch.from_numpy(np.load(HERE / "data" / f"{name}.npy")) for name in "xy")
    names = {"torch": torch, "onnx": onnx}
    exec(snippet(), names)
    for kind in "script", "dynamo":
        more = {"external_data": False} if kind == "dynamo" else {}
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            names["export"](model, {"x": x, "y": y}, str(HERE / f"still.{kind}.onnx"), dynamo=kind == "dynamo", **more)
        clean(HERE / f"still.{kind}.onnx", record=True)
    losses = train(model.train(), x, y, WAYS["sgd"][2], None)
    (HERE / "still.txt").write_text(" ".join(f"{v:.7g}" for v in losses) + "\n")


class Net(nn.Module):
    """The model of the chapter in examples/README.md: a classifier that returns scores."""

    def __init__(self):
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(1.5))
        self.register_buffer("mean", torch.randn(4) / 10)
        self.body, self.norm, self.head = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.body(x - self.mean)))) * self.temperature


def make_net():
    """chapter/: net.onnx, data, weights of another run (hub), and how PyTorch trains: each line its name and the losses."""
    where = HERE / "chapter"
    (where / "data").mkdir(parents=True)
    (where / "hub").mkdir()
    torch.manual_seed(21)
    x, label = torch.randn(24, 4), torch.randint(0, 3, (24,))
    net, hub = Net().train(), Net().train()
    hub.mean.copy_(net.mean)                            # a buffer is what it was when the model was exported
    names = {"torch": torch, "onnx": onnx}
    exec(snippet(), names)
    start = {k: v.clone() for k, v in net.state_dict().items()}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        names["export"](net, {"x": x[:8]}, str(where / "net.onnx"), outputs=("scores",), external_data=False,
                        dynamic_shapes={"x": {0: torch.export.Dim("N")}})
    clean(where / "net.onnx", record=True)
    np.save(where / "data" / "x.npy", x.numpy())
    np.save(where / "data" / "label.npy", label.numpy())
    weights = {"module." + k: v.numpy() for k, v in hub.state_dict().items() if v.dtype == torch.float32}
    write_safetensors(where / "hub" / "model.safetensors", weights)

    def losses(state, trained=lambda n: True, still=False):
        net.load_state_dict(state)
        net.train()
        if still:
            net.norm.eval()
        optimizer, out = torch.optim.SGD([p for n, p in net.named_parameters() if trained(n)], lr=0.1), []
        for i in range(STEPS):
            at = slice(i % 3 * 8, i % 3 * 8 + 8)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x[at]), label[at])
            loss.backward()
            optimizer.step()
            out.append(loss.item())
        return " ".join(f"{v:.7g}" for v in out) + "\n"

    text = "net " + losses(start)
    ends = "".join(f"{n} " + " ".join(f"{v:.7g}" for v in t.flatten().tolist()) + "\n" for n, t in net.state_dict().items() if t.dtype == torch.float32 and n != "mean")
    text += "hub " + losses(hub.state_dict())
    text += "tuned " + losses(start, lambda n: n.startswith("head."), True)
    (where / "losses.txt").write_text(text)
    (where / "ends.txt").write_text(ends)


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, a in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(np.ascontiguousarray(a).tobytes() for a in tensors.values()))


def clean(path, record):
    """Takes away what names the machine that exported; without the record, that too."""
    net = onnx.load(path)
    net.doc_string = ""
    for node in net.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
        attributes = sorted(node.attribute, key=lambda a: a.name)
        del node.attribute[:]
        node.attribute.extend(attributes)
    kept = [p for p in net.metadata_props if record]
    del net.metadata_props[:]
    net.metadata_props.extend(kept)
    onnx.checker.check_model(net)
    onnx.save(net, path)


if __name__ == "__main__":
    main()
