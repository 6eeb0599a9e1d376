"""Writes tests/golden/NAME: what PyTorch's losses are in 20 steps of training, and all gradients of the first.

    make.py [NAME ...]      all, or those that are named

Made with torch 2.13.0, onnx 1.23.2, onnxscript 0.7.2 and numpy 2.4; nothing else in the project needs them: the files are kept.
A directory holds
    model.ir, weights.safetensors   the model and its weights at the start; a model.onnx holds both
    data/INPUT.npy                  the samples, in the order in which they are trained on: 5 batches, again and again
    want.txt, want.EXPORT.txt       model FILE       where the model lies, from tests/
                                    train TEXT       how it is trained
                                    also TEXT        trained in this way too it must not differ: in micro-batches
                                    rule X L G       X times PyTorch's own distance is allowed, and never more than L of a loss, G of a gradient
                                    loss T A B       of step T, in float64 (the reference) and in the type that is tested
                                    grad NAME N D    the 2-norm of a gradient of step 0, and of the difference between that type and float64
                                    after T          the states that follow are those after so many steps; else after the last
                                    state NAME N D V...  running statistics: the same, and by float64
    want.bf16.txt, want.fp16.txt    the same model in mixed precision: the type that is tested is PyTorch's with casts where ours are
    grads.safetensors               the gradients of step 0 by float64, rounded to float32
The distance of losses is the largest relative difference of the 20.
scaler/scales.txt has the losses and the scale after each step by PyTorch's GradScaler, where some steps overflow.
sweep/cases.txt has one line for each optimizer and schedule: how it is trained, and the losses by float64 and float32.

The models of .ir files are the examples, made smaller, and written down here a second time over PyTorch's functions.  Those of .onnx
files are modules of models.py, as both of PyTorch's exporters wrote them.  Optimizers are PyTorch's; LAMB, LARS and Lion, which it
has not, are written from their papers; schedules are those of optimizers.py, which compares them with PyTorch's.
"""
import fnmatch
import json
import math
import pathlib
import re
import shutil
import sys
import warnings

warnings.filterwarnings("ignore")
sys.dont_write_bytecode = True

import numpy as np
import onnx
import onnx.numpy_helper
import torch
import torch.nn as nn
import torch.nn.functional as F

import export
import models
from optimizers import call, rate, text

torch.set_num_threads(1)
ROOT = pathlib.Path(__file__).resolve().parent
EXAMPLES = ROOT.parent.parent / "examples"
STEPS, BATCHES, SCALE = 20, 5, 1024


# ---- optimizers that PyTorch has not ----

class Own(torch.optim.Optimizer):
    def __init__(self, params, **defaults):
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                self.update(p, p.grad, self.state[p], group)


class Lamb(Own):
    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)

    def update(self, p, g, s, k):
        b1, b2 = k["betas"]
        s["t"] = s.get("t", 0) + 1
        s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
        s["v"] = b2 * s.get("v", 0) + (1 - b2) * g * g
        d = s["m"] / (1 - b1 ** s["t"]) / ((s["v"] / (1 - b2 ** s["t"])).sqrt() + k["eps"]) + k["weight_decay"] * p
        w, n = p.norm(), d.norm()
        p -= k["lr"] * (w / n if w > 0 and n > 0 else 1) * d


class Lars(Own):
    def __init__(self, params, lr, momentum=0.9, weight_decay=0, trust=0.001, eps=1e-9):
        super().__init__(params, lr=lr, momentum=momentum, weight_decay=weight_decay, trust=trust, eps=eps)

    def update(self, p, g, s, k):
        w, n = p.norm(), g.norm()
        local = k["trust"] * w / (n + k["weight_decay"] * w + k["eps"]) if w > 0 and n > 0 else 1
        s["m"] = k["momentum"] * s.get("m", 0) + local * (g + k["weight_decay"] * p)
        p -= k["lr"] * s["m"]


class Lion(Own):
    def __init__(self, params, lr, betas=(0.9, 0.99), weight_decay=0):
        super().__init__(params, lr=lr, betas=betas, weight_decay=weight_decay)

    def update(self, p, g, s, k):
        b1, b2 = k["betas"]
        m = s.get("m", torch.zeros_like(g))
        p -= k["lr"] * ((b1 * m + (1 - b1) * g).sign() + k["weight_decay"] * p)
        s["m"] = b2 * m + (1 - b2) * g


def torch_sgd(nesterov):
    return lambda params, lr, momentum=0.9, **k: torch.optim.SGD(params, lr, momentum, nesterov=nesterov, **k)


OPTIMIZERS = {"sgd": torch.optim.SGD, "momentum": torch_sgd(False), "nesterov": torch_sgd(True), "adam": torch.optim.Adam, "adamw": torch.optim.AdamW,
              "rmsprop": torch.optim.RMSprop, "adagrad": torch.optim.Adagrad, "lamb": Lamb, "lars": Lars, "lion": Lion}


# ---- training ----

def how(optimizer, schedule=None, clip=None, group=None, batch=4, also=()):
    return {"also": also, "optimizer": optimizer, "schedule": schedule, "clip": clip, "group": group, "batch": batch}


def how_text(h):
    """The arguments of @train."""
    out = ["optimizer: " + call(*h["optimizer"])]
    if h["group"]:
        out.append(f'group("{h["group"][0]}", ' + ", ".join(f"{a}: {text(v)}" for a, v in h["group"][1].items()) + ")")
    if h["schedule"]:
        out.append("schedule: " + call(*h["schedule"]))
    if h["clip"]:
        out.append(f"clip: {h['clip'][0]}({h['clip'][1]})")
    return ", ".join([*out, f"batch: {h['batch']}", f"steps: {STEPS}", 'data: npy("data", shuffle: false)'])


def train(loss_of, params, batches, h, half=None, steps=STEPS):
    """Losses, and the gradients of step 0. params: by name, changed; batches: of inputs by name; half: torch.float16 gets a scaled loss."""
    name, k = h["optimizer"]
    pattern, other = h["group"] or ("", {})
    some = [p for n, p in params.items() if fnmatch.fnmatch(n, pattern)]
    rest = [p for n, p in params.items() if not fnmatch.fnmatch(n, pattern)]
    groups = [{"params": rest, "base": k["lr"]}] + ([{"params": some, "base": other.get("lr", k["lr"]), **other}] if some else [])
    for g in groups:
        g.pop("lr_scale", None)
    opt = OPTIMIZERS[name](groups, **k)
    losses, grads = [], {}
    scaler = torch.amp.GradScaler("cpu", SCALE, enabled=half == torch.float16)
    for t in range(steps):
        for g in opt.param_groups:
            g["lr"] = rate(t, k["lr"], h["schedule"]) / k["lr"] * g["base"]
        opt.zero_grad()
        with torch.autocast("cpu", half or torch.bfloat16, enabled=half is not None):
            loss = loss_of(batches[t % len(batches)])
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        losses.append(loss.item())
        if t == 0:
            grads = {n: p.grad.detach().clone() for n, p in params.items()}
        if h["clip"] and h["clip"][0] == "norm":
            nn.utils.clip_grad_norm_(params.values(), h["clip"][1])
        elif h["clip"]:
            nn.utils.clip_grad_value_(params.values(), h["clip"][1])
        scaler.step(opt)
        scaler.update()
    return losses, grads


# ---- files ----

def write_safetensors(path, tensors):
    head, at, body = {}, 0, b""
    for n, t in tensors.items():
        raw = np.ascontiguousarray(t, np.float32).tobytes()
        head[n] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [at, at + len(raw)]}
        at, body = at + len(raw), body + raw
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


FLOAT, HALF = "10 1e-4 1e-3", "2 1 1"


def write_want(path, model, loss, h, results, also=(), rule=FLOAT, more="", after=STEPS):
    (l64, g64, s64), (l32, g32, s32) = results
    lines = [f"model {model}", f'train loss: "{loss}", {how_text(h)}{more}', *(f"also {a}" for a in also), f"rule {rule}"]
    lines += [f"loss {t} {a:.12g} {b:.9g}" for t, (a, b) in enumerate(zip(l64, l32))]

    def norms(a, b):
        return f"{a.norm().item():.6g} {(b.double() - a).norm().item():.6g}"

    lines += [f"grad {n} {norms(g, g32[n])}" for n, g in g64.items()]
    lines += [f"after {after}"] if s64 and after != STEPS else []
    lines += [f"state {n} {norms(v, s32[n])} " + " ".join(f"{x:.9g}" for x in v.tolist()) for n, v in s64.items()]
    path.write_text("\n".join(lines) + "\n")


def statistics(running, start, momentum, count, steps=STEPS):
    """Running statistics after training, as ONNX defines them: it averages the variance of the batch, PyTorch that times n / (n - 1)."""
    kept = (1 - momentum) ** steps * start
    return kept + (running - kept) * (count - 1) / count if count else running.clone()


def write_data(where, batches):
    (where / "data").mkdir()
    for n in batches[0]:
        np.save(where / "data" / f"{n}.npy", np.concatenate([b[n].numpy() for b in batches]))


def as_type(t, dtype):
    return t.to(dtype) if t.is_floating_point() else t


def fresh(name):
    where = ROOT / name
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir()
    return where


# ---- the examples ----

def attention(q, k, v, heads, groups, mask=None, causal=False):
    q, k, v = (t.view(*t.shape[:2], n, -1).transpose(1, 2) for t, n in ((q, heads), (k, groups), (v, groups)))
    k, v = (t.repeat_interleave(heads // groups, 1) for t in (k, v))
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
    return y.transpose(1, 2).reshape(y.shape[0], y.shape[2], -1)


def wide(x):
    """Norms and losses are float where the rest is half."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def norm(p, name, x):
    return F.layer_norm(wide(x), x.shape[-1:], p[name + ".w"], p[name + ".b"])


def cross(logits, labels, ignore=-100):
    return F.cross_entropy(wide(logits).reshape(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=ignore)


def mlp(p, b):
    return cross(F.relu(b["image"].flatten(1) @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"], b["label"])


def cnn(p, b):
    x = F.max_pool2d(F.relu(F.conv2d(b["image"], p["conv1.w"], p["conv1.b"], padding=1)), 2)
    x = F.max_pool2d(F.relu(F.conv2d(x, p["conv2.w"], p["conv2.b"], padding=1)), 2)
    return cross(x.flatten(1) @ p["dense.w"] + p["dense.b"], b["label"])


def resnet(p, b):
    def conv(x, w, n, stride=1):
        y = wide(F.conv2d(x, p[w], stride=stride, padding=1))
        p.counts[n + ".var"] = y.numel() // y.shape[1]
        return F.batch_norm(y, p.state[n + ".mean"], p.state[n + ".var"], p[n + ".w"], p[n + ".b"], training=True, momentum=0.1)

    a = F.relu(conv(b["image"], "stem.conv", "stem.norm"))
    a = F.relu(a + conv(F.relu(conv(a, "b1.conv1", "b1.norm1")), "b1.conv2", "b1.norm2"))
    x = conv(F.relu(conv(a, "b2.conv1", "b2.norm1", 2)), "b2.conv2", "b2.norm2")
    a = F.relu(F.conv2d(a, p["b2.short"], stride=2) + x)
    return cross(F.linear(a.mean((2, 3)), p["dense.w"], p["dense.b"]), b["label"])


def gpt(p, b):
    x = p["embed.w"][b["tokens"]] + p["position.w"]
    for h in ("h0", "h1"):
        q, k, v = (norm(p, h + ".norm1", x) @ p[h + ".qkv.w"] + p[h + ".qkv.b"]).chunk(3, -1)
        x = x + attention(q, k, v, 4, 4, causal=True) @ p[h + ".out.w"] + p[h + ".out.b"]
        up = F.gelu(norm(p, h + ".norm2", x) @ p[h + ".up.w"] + p[h + ".up.b"], approximate="tanh")
        x = x + up @ p[h + ".down.w"] + p[h + ".down.b"]
    return cross(norm(p, "norm", x) @ p["embed.w"].T, b["targets"])


def bert(p, b):
    def dense(x, n):
        return x @ p[f"l0.{n}.w"] + p[f"l0.{n}.b"]

    x = norm(p, "norm", p["token.w"][b["tokens"]] + p["segment.w"][b["segments"]] + p["position.w"])
    x = norm(p, "l0.norm1", x + dense(attention(dense(x, "q"), dense(x, "k"), dense(x, "v"), 4, 4, b["present"]), "out"))
    x = norm(p, "l0.norm2", x + dense(F.gelu(dense(x, "up")), "down"))
    return cross(x @ p["head.w"] + p["head.b"], b["labels"], -1)


def llama(p, b):
    def rms(x, n):
        return F.rms_norm(wide(x), x.shape[-1:], p[n + ".w"], 1e-5)

    def turn(x, heads):
        x = x.view(*x.shape[:2], heads, -1)
        angle = torch.arange(x.shape[1], dtype=x.dtype)[:, None] * torch.tensor([1.0, 0.01], dtype=x.dtype)
        c, s = angle.cos()[:, None], angle.sin()[:, None]
        one, two = x.chunk(2, -1)
        return torch.cat((one * c - two * s, two * c + one * s), -1).flatten(2)

    x = p["embed.w"][b["tokens"]]
    n = rms(x, "norm1")
    x = x + attention(turn(n @ p["q.w"], 4), turn(n @ p["k.w"], 2), n @ p["v.w"], 4, 2, causal=True) @ p["out.w"]
    n = rms(x, "norm2")
    x = x + (F.silu(n @ p["gate.w"]) * (n @ p["up.w"])) @ p["down.w"]
    return cross(rms(x, "norm") @ p["head.w"], b["targets"])


def wide_deep(p, b):
    x = torch.cat((p["embed.w"][b["category"]].flatten(1), b["dense"]), 1)
    for n in ("deep1", "deep2"):
        x = F.relu(x @ p[n + ".w"] + p[n + ".b"])
    logit = p["wide.w"][b["crossed"]].sum(1) + x @ p["deep3.w"] + p["deep3.b"]
    return F.binary_cross_entropy_with_logits(wide(logit), b["clicked"])


def losses(p, b):
    h = torch.tanh(torch.tanh(b["x"] @ p["u"]) @ p["u"] + p["fixed"])
    y = h @ p["w"] + p["b"]
    t, label = b["t"], b["label"]
    likely = F.nll_loss(F.log_softmax(y, 1), label, torch.tensor([1, 0.5, 2], dtype=y.dtype), ignore_index=1)
    named = (F.huber_loss(y, t, delta=0.5) + F.binary_cross_entropy(torch.sigmoid(y), torch.sigmoid(t))
             + F.cross_entropy(y, label, ignore_index=1, label_smoothing=0.2) + F.cross_entropy(y, label, label_smoothing=0.1)
             + F.cross_entropy(torch.stack((y, -y), 2), torch.stack((label, label), 1)) + F.nll_loss(F.log_softmax(y, 1), label, ignore_index=2))
    return (F.mse_loss(y, t) + 0.1 * F.l1_loss(y, t, reduction="sum") + F.smooth_l1_loss(y, t, beta=0.5) + named
            + F.binary_cross_entropy_with_logits(y, torch.sigmoid(t)) + likely + 0.1 * F.cross_entropy(y, label, reduction="sum"))


def lstm(p, b):
    def order(t):   # ONNX has the gates as input, output, forget, cell; PyTorch as input, forget, cell, output
        i, o, f, c = t.chunk(4)
        return torch.cat((i, f, c, o))

    w, r, bias = p["cell.w"][0], p["cell.r"][0], p["cell.b"][0]
    x = p["embed.w"][b["characters"]]
    start = torch.zeros(1, x.shape[0], r.shape[1], dtype=x.dtype)
    weights = [order(w), order(r), order(bias[:len(w)]), order(bias[len(w):])]
    y, _, _ = torch.lstm(x, (start, start), weights, True, 1, 0.0, True, False, True)
    return cross(y @ p["head.w"] + p["head.b"], b["next"])


def dropout(p, b):
    """The example mlp with a dropout that drops nothing."""
    return mlp(p, b)


ADAMW = ("adamw", {"lr": 0.01, "betas": (0.9, 0.95), "weight_decay": 0.1})
# Every loss by its name, added up: the loss is any scalar.  One parameter is used twice, one is frozen.
LOSSES = """<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, seed: 1)
@freeze("fixed")
losses (float[N, 6] x, float[N, 3] t, int64[N] label) => (float loss)
<
  float[6, 6] u @init(file("weights.safetensors")), float[6] fixed @init(file("weights.safetensors")),
  float[6, 3] w @init(file("weights.safetensors")), float[3] b @init(file("weights.safetensors")), float[3] balance = {1, 0.5, 2}
>
{
  h = Tanh(Add(MatMul(Tanh(MatMul(x, u)), u), fixed))
  y = Add(MatMul(h, w), b)
  square = sbpcc.MSELoss(y, t)
  line = sbpcc.L1Loss<reduction = "sum">(y, t)
  smooth = sbpcc.SmoothL1Loss<beta = 0.5>(y, t)
  binary = sbpcc.BCEWithLogitsLoss(y, Sigmoid(t))
  likely = NegativeLogLikelihoodLoss<ignore_index = 1>(LogSoftmax<axis = 1>(y), label, balance)
  cross = SoftmaxCrossEntropyLoss<reduction = "sum">(y, label)
  # What @train(loss: huber(y, t)) and the like become; of scores with classes along the last axis.
  huber = sbpcc.HuberLoss<delta = 0.5>(y, t)
  chance = sbpcc.BCELoss(Sigmoid(y), Sigmoid(t))
  smoothed = sbpcc.CrossEntropyLoss<ignore_index = 1, label_smoothing = 0.2>(y, label)
  spread = sbpcc.CrossEntropyLoss<label_smoothing = 0.1>(y, label)
  both = Concat<axis = 1>(Unsqueeze(y, [1]), Unsqueeze(Neg(y), [1]))
  twice = Unsqueeze(label, [1])
  last = sbpcc.CrossEntropyLoss<axis = 2>(both, Concat<axis = 1>(twice, twice))
  chosen = sbpcc.NLLLoss<ignore_index = 2>(LogSoftmax<axis = 1>(y), label)
  tenth = Constant<value_float = 0.1>()
  loss = Sum(square, Mul(tenth, line), smooth, binary, likely, Mul(tenth, cross), huber, chance, smoothed, spread, last, chosen)
}
"""
NO_DROPOUT = ("h = Relu(h1)", "h2 = Relu(h1)\n  none = Constant<value_float = 0.0>()\n  on = Constant<value = bool {1}>()\n  h = Dropout(h2, none, on)")
# name: (loss, example or text, numbers in its text that change, other text that changes, training, what must not differ)
IR = {
    "mlp": (mlp, "mlp", {8: 4, 64: 16, 128: 24}, (), how(("sgd", {"lr": 0.1}), ("constant", {"warmup": 6})), ["microbatch: 2"]),
    "cnn": (cnn, "cnn", {16: 6, 32: 8, 128: 32}, (), how(("momentum", {"lr": 0.05}), ("cosine", {"total": 30})), ["microbatch: 1"]),
    "resnet": (resnet, "resnet", {8: 4, 16: 8}, (), how(("nesterov", {"lr": 0.02, "momentum": 0.9, "weight_decay": 0.01}),
               ("multistep", {"milestones": [8, 15], "gamma": 0.3}), group=("*.norm*", {"weight_decay": 0.0}), batch=6), []),
    "gpt": (gpt, "gpt", {64: 16, 192: 48, 256: 64}, (), how(ADAMW, ("cosine", {"warmup": 4, "total": 25, "min": 0.001}), ("norm", 1.0),
            ("*.b", {"weight_decay": 0.0})), ["microbatch: 2"]),
    "bert": (bert, "bert", {64: 32, 32: 16, 16: 8}, (), how(("adamw", {"lr": 0.01, "weight_decay": 0.01}), ("linear", {"warmup": 5, "total": 30})),
             ["microbatch: 2", "microbatch: 1"]),
    "llama": (llama, "llama", {256: 64, 64: 32, 32: 16, 16: 8}, (("float[4] {1.0, 0.1, 0.01, 0.001}", "float[2] {1.0, 0.01}"),),
              how(ADAMW, ("cosine", {"warmup": 3, "total": 40}), ("norm", 1.0)), ["microbatch: 1"]),
    "wide_deep": (wide_deep, "wide_deep", {1000: 40, 500: 30}, (), how(("adagrad", {"lr": 0.05}), ("step", {"every": 4, "gamma": 0.5}), batch=8), ["microbatch: 4"]),
    "lstm": (lstm, "lstm", {256: 32, 16: 8, 96: 48, 24: 12, 192: 96}, (), how(("rmsprop", {"lr": 0.002}), ("exponential", {"gamma": 0.95}), ("value", 0.01)),
             ["microbatch: 2"]),
    "dropout": (dropout, "mlp", {8: 4, 64: 16, 128: 24}, (NO_DROPOUT,), how(("adam", {"lr": 0.01}), ("polynomial", {"total": 18, "power": 2, "min": 0.001})), []),
    "losses": (losses, LOSSES, {}, (), how(("adamw", {"lr": 0.02, "weight_decay": 0.1}), ("wsd", {"total": 20, "warmup": 3, "decay": 8, "min": 0.002}),
               ("norm", 1.0), ("b", {"lr": 0.1, "weight_decay": 0.0}), 6), ["microbatch: 2"]),
}
HALVES = {"mlp": ["fp16"], "cnn": ["bf16"], "resnet": ["fp16"], "gpt": ["bf16", "fp16"], "bert": ["bf16"], "llama": ["bf16"]}
TYPES = {"bf16": ("bf16", torch.bfloat16), "fp16": (f"fp16(loss_scale: {SCALE})", torch.float16)}


class Weights(dict):
    """Parameters by name; beside them running statistics, over how many elements each was taken, and those that are frozen."""

    def __init__(self, weights, dtype, half=None):
        self.state = {n: t.to(dtype).clone() for n, t in weights.items() if n.endswith((".mean", ".var"))}
        self.frozen = {n: t.to(dtype) for n, t in weights.items() if n == "fixed"}
        self.counts, self.half = {}, half
        super().__init__({n: t.to(dtype).clone().requires_grad_() for n, t in weights.items() if n not in self.state and n not in self.frozen})

    def __getitem__(self, n):
        """In half precision, what is added to a product has its type; products cast their operands themselves."""
        t = self.frozen[n] if n in self.frozen else super().__getitem__(n)
        return t.to(self.half) if self.half and re.search(r"(^b\d|(?<!norm)(?<!norm\d)\.b)$", n) else t

    def statistics(self, start, steps):
        return {n: statistics(t, start[n].to(t.dtype), 0.1, self.counts.get(n), steps) for n, t in self.state.items()}


def start_of(name, shape, random):
    if re.search(r"norm\d?\.w$", name):
        return 1 + 0.2 * random.standard_normal(shape)
    if name.endswith(".var"):
        return random.uniform(0.5, 2, shape)
    fan = np.prod(shape[1:]) if len(shape) == 4 else shape[-2] if len(shape) > 1 else 25
    return random.standard_normal(shape) / math.sqrt(max(fan, 1))


def shrink(example, numbers, other):
    source = (EXAMPLES / f"{example}.ir").read_text()
    depth, i = 0, source.index("@train(")
    for j in range(i, len(source)):
        depth += (source[j] == "(") - (source[j] == ")")
        if source[j] == ")" and depth == 0:
            break
    head, body = source[:i], source[j + 1:]
    for a, b in other:
        assert a in body
        body = body.replace(a, b)
    body = re.sub(r"(?<![\w.\"])\d+(?![\w.])", lambda m: str(numbers.get(int(m.group()), m.group())), body)
    body = re.sub(r"@init\((?:[^()]|\([^()]*\))*\)", '@init(file("weights.safetensors"))', body)
    return re.sub(r"^#.*\n", "", head, flags=re.M) + "@train(loss: loss, seed: 1)" + body


def make_batch(source, batch, seed, limits):
    torch.manual_seed(seed)
    signature = re.search(r"\w+ \((.*?)\) =>", source).group(1)
    out = {}
    for kind, dims, name in re.findall(r"(\w+)\[([^]]*)\] (\w+)", signature):
        shape = [batch if d.strip() == "N" else int(d) for d in dims.split(",")]
        if kind == "float":
            out[name] = torch.randint(0, 2, shape).float() if name == "clicked" else torch.randn(shape)
        elif kind == "bool":
            out[name] = torch.arange(shape[-1]) < torch.randint(shape[-1] // 2, shape[-1] + 1, (batch, 1, 1, 1))
        else:
            out[name] = torch.randint(0, limits[name], shape)
    if "present" in out:   # uneven counts of labels
        out["labels"][torch.rand(out["labels"].shape) < torch.linspace(0.3, 0.9, batch)[:, None]] = -1
    return out


LIMITS = {"gpt": {"tokens": 64, "targets": 64}, "bert": {"tokens": 32, "segments": 2, "labels": 32}, "llama": {"tokens": 64, "targets": 64},
          "wide_deep": {"category": 40, "crossed": 30}, "lstm": {"characters": 32, "next": 32}, "losses": {"label": 3}}


def make_ir(name):
    loss, example, numbers, other, h, also = IR[name]
    where = fresh(name)
    source = example if "=>" in example else shrink(example, numbers, other)
    (where / "model.ir").write_text(source)
    random = np.random.default_rng(5)
    weights = {}
    for dims, _, n in re.findall(r'float\[([\d, ]+)\] ("?)([\w.]+)\2 @init', source):
        shape = [int(d) for d in dims.split(",")]
        weights[n] = torch.from_numpy(start_of(n, shape, random).astype(np.float32))
    write_safetensors(where / "weights.safetensors", {n: t.numpy() for n, t in weights.items()})
    batches = [make_batch(source, h["batch"], 100 + i, LIMITS.get(name, {"label": 10})) for i in range(BATCHES)]
    write_data(where, batches)

    def result(dtype, half=None, steps=STEPS):
        p = Weights(weights, dtype, half)
        data = [{n: as_type(t, dtype) for n, t in b.items()} for b in batches]
        return *train(lambda b: loss(p, b), p, data, h, half, steps), p.statistics(weights, steps)

    exact, model = result(torch.float64), f"golden/{name}/model.ir"
    out = {name: (exact, result(torch.float32))}
    write_want(where / "want.txt", model, "loss", h, out[name], also)
    for half in HALVES.get(name, []):
        out[f"{name} {half}"] = both = exact, result(torch.float32, TYPES[half][1])
        # Statistics at the end of a path that rounding has changed say nothing: those after the first step.
        first = result(torch.float64, steps=1)[2], result(torch.float32, TYPES[half][1], steps=1)[2]
        both = [(*b[:2], s) for b, s in zip(both, first)]
        write_want(where / f"want.{half}.txt", model, "loss", h, both, rule=HALF, more=f", precision: {TYPES[half][0]}", after=1)
    write_safetensors(where / "grads.safetensors", {n: g.numpy() for n, g in exact[1].items()})
    return out


# ---- the exported ----

class Trained(nn.Module):
    """A module of models.py with a loss."""

    def __init__(self, module):
        super().__init__()
        self.net = module

    def forward(self, *inputs):
        *inputs, label = inputs
        y = self.net(*inputs)
        return F.cross_entropy(y[0] if isinstance(y, tuple) else y, label)


def with_label(name, batch, classes):
    example = models.MODELS[name][1]
    return lambda: {**example(), "label": torch.randint(0, classes, (batch,))}


# directory: (model of models.py, inputs if not its own, training by export)
ONNX = {
    "mlp.onnx": ("mlp", None, {"dynamo": how(("adam", {"lr": 0.01, "weight_decay": 0.1}), ("cosine_restarts", {"period": 3, "growth": 2, "min": 0.001})), "script13": how(("lion", {"lr": 0.003, "weight_decay": 0.1}))}),
    "widedeep.onnx": ("widedeep", None, {"script": how(("adagrad", {"lr": 0.05, "lr_decay": 0.1}), batch=6)}),
    "tied.onnx": ("tied", None, {"dynamo": how(("adamw", {"lr": 0.01}), batch=3), "script": how(("momentum", {"lr": 0.1}), ("inverse_sqrt", {"warmup": 4}), batch=3)}),
    "resnet.onnx": ("resnet", None, {"dynamo": how(("sgd", {"lr": 0.05, "momentum": 0.9})), "script": how(("rmsprop", {"lr": 0.001}))}),
    "gpt2.onnx": ("gpt2-sdpa", None, {"dynamo": how(("adamw", {"lr": 0.003}), batch=3), "script": how(("lamb", {"lr": 0.01}), batch=3)}),
    "encoder.onnx": ("encoder", None, {"dynamo": how(("adam", {"lr": 0.003}), batch=3), "script": how(("lars", {"lr": 1.0, "trust": 0.01}), batch=3)}),
    "llama.onnx": ("llama-native", None, {"dynamo": how(("adamw", {"lr": 0.003}), clip=("norm", 0.5), batch=3)}),
    "vit.onnx": ("vit", None, {"script": how(("nesterov", {"lr": 0.01})), "dynamo-dyn": how(("sgd", {"lr": 0.01}), also=["microbatch: 2"])}),
    "lstm.onnx": ("lstm", None, {"script-dyn": how(("sgd", {"lr": 0.1}), batch=3, also=["microbatch: 1"]), "dynamo": how(("adam", {"lr": 0.01}), batch=3), "script": how(("rmsprop", {"lr": 0.003, "momentum": 0.5}), batch=3)}),
    # exported here, because models.py has them without a loss
    "mobilenet.onnx": ("mobilenet", with_label("mobilenet", 3, 5), {"dynamo": how(("momentum", {"lr": 0.02}), batch=3), "script": how(("adam", {"lr": 0.005}), batch=3)}),
    "bert.onnx": ("bert", with_label("bert", 3, 4), {"script": how(("adamw", {"lr": 0.003}), batch=3)}),
}


def load_weights(module, path):
    """The module gets what the file holds, under any of the names that a parameter has; gives each parameter's name in the file."""
    stored = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}
    names, seen = {}, {}
    for n, p in module.named_parameters(remove_duplicate=False):
        if n in stored:
            p.data = torch.from_numpy(stored[n].copy()).to(p.dtype).view_as(p)
            names.setdefault(n, p)
            assert id(p) not in seen, f"{path}: {n} is stored twice"
            seen[id(p)] = n
    assert all(id(p) in seen for p in module.parameters()), f"{path}: parameters are missing"
    for n, b in module.named_buffers():
        if n in stored and b.is_floating_point():
            b.data = torch.from_numpy(stored[n].copy()).to(b.dtype)
    return names


def watch_norms(module):
    """Over how many elements of a batch each batch norm takes its statistics."""
    counts = {}
    for m in module.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.register_forward_hook(lambda m, x, y: counts.update({m: y.numel() // y.shape[1]}))
    return counts


def train_export(module, path, batches, h):
    results = []
    for dtype in (torch.float64, torch.float32):
        names = load_weights(module, path)
        module.to(dtype)
        counts, start = watch_norms(module), {n: t.clone() for n, t in module.named_buffers()}
        data = [{n: as_type(t, dtype) for n, t in b.items()} for b in batches]

        def loss_of(b):
            y = module(*b.values())
            return y[0] if isinstance(y, tuple) else y

        losses, grads = train(loss_of, names, data, h)
        state = {}
        for n, m in module.named_modules():
            for stem, count in ("running_mean", None), ("running_var", counts.get(m)):
                if m in counts:
                    state[f"{n}.{stem}"] = statistics(getattr(m, stem), start[f"{n}.{stem}"], m.momentum, count)
        results.append((losses, grads, state))
    return results


def make_onnx(name):
    which, example, kinds = ONNX[name]
    own = example is not None
    example = example or models.MODELS[which][1]
    where = fresh(name)
    batches, grads, out = [], {}, {}
    for i in range(BATCHES):
        torch.manual_seed(100 + i)
        batches.append(example())
    write_data(where, batches)
    for kind, h in kinds.items():
        torch.manual_seed(20)
        module = models.MODELS[which][0]()
        module = (Trained(module) if own else module).train()
        path = where / f"{kind}.onnx" if own else ROOT.parent / "exported" / f"{which}.{kind}" / "model.onnx"
        if own:
            export.KEEP_SCOPES = 0
            export.export(module, example(), kind, {}, path)
            export.clean(path)
        results = out[f"{name} {kind}"] = train_export(module, path, batches, h)
        grads.update({n: g.numpy() for n, g in results[0][1].items()})
        write_want(where / f"want.{kind}.txt", str(path.relative_to(ROOT.parent)), onnx.load(path).graph.output[0].name, h, results, h["also"])
    write_safetensors(where / "grads.safetensors", grads)
    return out


# ---- every optimizer, every schedule ----

SWEEP = """<ir_version: 10, opset_import: ["" : 23]>
sweep (float[N, 6] x, float[N, 3] t) => (float loss)
<
  float[6, 5] w1 @init(file("weights.safetensors")), float[5] b1 @init(file("weights.safetensors")),
  float[5, 3] w2 @init(file("weights.safetensors")), float[3] b2 @init(file("weights.safetensors"))
>
{
  h = Tanh(Add(MatMul(x, w1), b1))
  loss = sbpcc.MSELoss(Add(MatMul(h, w2), b2), t)
}
"""
CASES = [
    how(("sgd", {"lr": 0.1})), how(("sgd", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "dampening": 0.5})),
    how(("momentum", {"lr": 0.1, "weight_decay": 0.01})), how(("nesterov", {"lr": 0.1, "momentum": 0.8})),
    how(("adam", {"lr": 0.03, "weight_decay": 0.1})), how(("adam", {"lr": 0.1, "betas": (0.5, 0.6), "amsgrad": True})),
    how(("adamw", {"lr": 0.03, "betas": (0.8, 0.95), "weight_decay": 0.2})), how(("rmsprop", {"lr": 0.02})),
    how(("rmsprop", {"lr": 0.01, "alpha": 0.9, "momentum": 0.5, "centered": True, "weight_decay": 0.1})),
    how(("adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1})), how(("lamb", {"lr": 0.05, "weight_decay": 0.1})),
    how(("lars", {"lr": 5.0, "trust": 0.02, "weight_decay": 0.1})), how(("lion", {"lr": 0.02, "weight_decay": 0.1})),
    how(("sgd", {"lr": 0.1}), clip=("norm", 0.5)), how(("sgd", {"lr": 0.1}), clip=("value", 0.05)),
    how(("adamw", {"lr": 0.02}), group=("b*", {"lr": 0.1, "weight_decay": 0.0})),
    *(how(("sgd", {"lr": 0.2}), s) for s in (
        ("constant", {"warmup": 6}), ("linear", {"total": 18, "warmup": 3, "min": 0.05}), ("cosine", {"total": 18, "warmup": 3, "min": 0.02}),
        ("cosine_restarts", {"period": 3, "growth": 2, "min": 0.01}), ("step", {"every": 4, "gamma": 0.5}),
        ("multistep", {"milestones": [3, 11], "gamma": 0.3}), ("polynomial", {"total": 18, "power": 2, "min": 0.01}),
        ("exponential", {"gamma": 0.9}), ("inverse_sqrt", {"warmup": 4}), ("wsd", {"total": 20, "warmup": 3, "decay": 8, "min": 0.01}))),
]


def make_sweep():
    where = fresh("sweep")
    (where / "model.ir").write_text(SWEEP)
    random = np.random.default_rng(6)
    shapes = {"w1": (6, 5), "b1": (5,), "w2": (5, 3), "b2": (3,)}
    weights = {n: torch.from_numpy(start_of(n, s, random).astype(np.float32)) for n, s in shapes.items()}
    write_safetensors(where / "weights.safetensors", {n: t.numpy() for n, t in weights.items()})
    torch.manual_seed(7)
    batches = [{"x": torch.randn(4, 6), "t": torch.randn(4, 3)} for _ in range(BATCHES)]
    write_data(where, batches)
    lines = []
    for h in CASES:
        losses = []
        for dtype in (torch.float64, torch.float32):
            p = {n: t.to(dtype).clone().requires_grad_() for n, t in weights.items()}
            data = [{n: t.to(dtype) for n, t in b.items()} for b in batches]
            losses.append(train(lambda b: F.mse_loss(torch.tanh(b["x"] @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"], b["t"]), p, data, h)[0])
        lines.append("loss: loss, " + how_text(h) + "|" + " ".join(f"{a:.9g}" for a in losses[0]) + "|" + " ".join(f"{a:.9g}" for a in losses[1]))
    (where / "cases.txt").write_text("\n".join(lines) + "\n")


# ---- the scale of a loss ----

SCALER = """<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: momentum(lr: 0.02), precision: fp16(loss_scale: 65536, every: 3), steps: 20)
scaler () => (float loss)
<float[3, 2] w @init(constant(0.5)), float[4, 3] x = {%s}, float[4, 2] t = {%s}>
{
  h = MatMul(x, w)
  d = Sub(h, t) @precision(f32)
  loss = ReduceMean<keepdims = 0>(Mul(d, d))
}
"""


def make_scaler():
    """Gradients that overflow at the first scales, and again whenever the scale has grown: losses and scales of PyTorch's GradScaler."""
    where = fresh("scaler")
    random = np.random.default_rng(10)
    x, t = (torch.from_numpy(random.standard_normal(s).astype(np.float32)) for s in ((4, 3), (4, 2)))
    x, t = (x * 64).round() / 64, (t * 64).round()   # exact in float16, so that the text can hold them
    (where / "model.ir").write_text(SCALER % tuple(", ".join(repr(v) for v in a.flatten().tolist()) for a in (x, t)))
    w = torch.full((3, 2), 0.5, requires_grad=True)
    opt, scaler, lines = torch.optim.SGD([w], 0.02, 0.9), torch.amp.GradScaler("cpu", 65536.0, growth_interval=3), []
    for step in range(STEPS):
        opt.zero_grad()
        loss = ((x.half() @ w.half()).float() - t).square().mean()
        scaler.scale(loss).backward()
        exact = (x.T @ (((x.half() @ w.half()).float() - t) * scaler.get_scale() / 4)).abs()
        near = min(abs(v / 65520 - 1) for v in (exact.max().item(), (((x.half() @ w.half()).float() - t) * scaler.get_scale() / 4).abs().max().item()))
        assert near > 0.02, f"step {step} is too near to an overflow to be told apart"
        scaler.step(opt)
        scaler.update()
        lines.append(f"step {step} {loss.item():.9g} {scaler.get_scale():g}")
    (where / "scales.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def main(wanted):
    for name in [*IR, *ONNX]:
        if wanted and name not in wanted:
            continue
        made = make_ir(name) if name in IR else make_onnx(name)
        for what, ((l64, g64, _), (l32, _, _)) in made.items():
            far = max(abs(a - b) / abs(a) for a, b in zip(l64, l32))
            print(f"{what:24} {l64[0]:8.4f} -> {l64[-1]:8.4f}   {far:.1e} away   {sum(g.numel() for g in g64.values()):6} parameters", flush=True)
    if not wanted or "sweep" in wanted:
        make_sweep()
    if not wanted or "scaler" in wanted:
        make_scaler()


if __name__ == "__main__":
    main(sys.argv[1:])
