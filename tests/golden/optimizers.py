"""Writes tests/equiv/optimizers.txt: the losses of 12 steps of every optimizer, schedule and kind of clipping, in float64.

    optimizers.py            prints the file
    optimizers.py --torch    also compares with PyTorch (2.13 was used) whatever PyTorch has

The formulas here are written down a second time, element by element, from the papers and from PyTorch's documentation; they share
nothing with the compiler.  The loss is sum((w - target)^4) from w = 1.5; where the weights are averaged, or in groups, it is that
of optimizers.ir all the same: w has three elements, u two.
"""
import math
import sys

STEPS = 12
TARGET = {"w": [0.5, -2.0, 3.0], "u": [1.0, 2.0]}


def norm(v):
    return math.sqrt(sum(x * x for x in v))


class Sgd:
    def __init__(self, lr, momentum=0, weight_decay=0, dampening=0, nesterov=False):
        self.mu, self.wd, self.damp, self.nesterov, self.m = momentum, weight_decay, dampening, nesterov, None

    def direction(self, w, g, t):
        g = [x + self.wd * y for x, y in zip(g, w)]
        if not self.mu:
            return g
        self.m = list(g) if self.m is None else [self.mu * a + (1 - self.damp) * b for a, b in zip(self.m, g)]
        return [b + self.mu * a for a, b in zip(self.m, g)] if self.nesterov else self.m


class Adam:
    def __init__(self, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=None, amsgrad=False, apart=False):
        self.b1, self.b2, self.eps, self.amsgrad, self.apart = *betas, eps, amsgrad, apart
        self.wd = (0.01 if apart else 0) if weight_decay is None else weight_decay
        self.m = self.v = self.most = None

    def moments(self, g, t):
        zero = [0.0] * len(g)
        self.m = [self.b1 * a + (1 - self.b1) * b for a, b in zip(self.m or zero, g)]
        self.v = [self.b2 * a + (1 - self.b2) * b * b for a, b in zip(self.v or zero, g)]
        self.most = [max(a, b) for a, b in zip(self.most or zero, self.v)]
        v = self.most if self.amsgrad else self.v
        return [(a / (1 - self.b1 ** (t + 1))) / (math.sqrt(b / (1 - self.b2 ** (t + 1))) + self.eps) for a, b in zip(self.m, v)]

    def direction(self, w, g, t):
        if self.apart:
            return [d + self.wd * y for d, y in zip(self.moments(g, t), w)]
        return self.moments([x + self.wd * y for x, y in zip(g, w)], t)


class Lamb(Adam):
    def __init__(self, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        super().__init__(lr, betas, eps, weight_decay, apart=True)

    def direction(self, w, g, t):
        d = super().direction(w, g, t)
        ratio = norm(w) / norm(d) if norm(w) > 0 and norm(d) > 0 else 1
        return [ratio * x for x in d]


class Lars(Sgd):
    def __init__(self, lr, momentum=0.9, weight_decay=0, trust=0.001, eps=1e-9):
        super().__init__(lr, momentum)
        self.decay, self.trust, self.eps = weight_decay, trust, eps

    def direction(self, w, g, t):
        local = 1
        if norm(w) > 0 and norm(g) > 0:
            local = self.trust * norm(w) / (norm(g) + self.decay * norm(w) + self.eps)
        return super().direction(w, [local * (x + self.decay * y) for x, y in zip(g, w)], t)


class RmsProp:
    def __init__(self, lr, alpha=0.99, eps=1e-8, momentum=0, weight_decay=0, centered=False):
        self.alpha, self.eps, self.mu, self.wd, self.centered = alpha, eps, momentum, weight_decay, centered
        self.v = self.mean = self.m = None

    def direction(self, w, g, t):
        zero = [0.0] * len(g)
        g = [x + self.wd * y for x, y in zip(g, w)]
        self.v = [self.alpha * a + (1 - self.alpha) * b * b for a, b in zip(self.v or zero, g)]
        self.mean = [self.alpha * a + (1 - self.alpha) * b for a, b in zip(self.mean or zero, g)]
        d = [b / (math.sqrt(a - (c * c if self.centered else 0)) + self.eps) for a, b, c in zip(self.v, g, self.mean)]
        self.m = [self.mu * a + b for a, b in zip(self.m or zero, d)]
        return self.m


class Adagrad:
    def __init__(self, lr, lr_decay=0, weight_decay=0, initial=0, eps=1e-10):
        self.slow, self.wd, self.eps, self.start, self.v = lr_decay, weight_decay, eps, initial, None

    def direction(self, w, g, t):
        g = [x + self.wd * y for x, y in zip(g, w)]
        self.v = [a + b * b for a, b in zip(self.v or [self.start] * len(g), g)]
        return [b / (math.sqrt(a) + self.eps) / (1 + t * self.slow) for a, b in zip(self.v, g)]


class Lion:
    def __init__(self, lr, betas=(0.9, 0.99), weight_decay=0):
        self.b1, self.b2, self.wd, self.m = *betas, weight_decay, None

    def direction(self, w, g, t):
        m = self.m or [0.0] * len(g)
        d = [math.copysign(1, c) if c else 0 for c in (self.b1 * a + (1 - self.b1) * b for a, b in zip(m, g))]
        self.m = [self.b2 * a + (1 - self.b2) * b for a, b in zip(m, g)]
        return [x + self.wd * y for x, y in zip(d, w)]


def adamw(**k):
    return Adam(apart=True, **k)


def momentum(lr, momentum=0.9, **k):
    return Sgd(lr, momentum, **k)


def nesterov(lr, momentum=0.9, **k):
    return Sgd(lr, momentum, nesterov=True, **k)


OPTIMIZERS = {"sgd": Sgd, "momentum": momentum, "nesterov": nesterov, "adam": Adam, "adamw": adamw, "lamb": Lamb, "lars": Lars,
              "rmsprop": RmsProp, "adagrad": Adagrad, "lion": Lion}


def fall(t, total, warmup):
    return min(max((t - warmup) / (total - warmup), 0), 1)


def restarts(t, lr, period, growth=1, warmup=0, min=0):
    t, length = max(t - warmup, 0), period
    while t >= length:
        t, length = t - length, length * growth
    return min + (lr - min) * (1 + math.cos(math.pi * t / length)) / 2


SCHEDULES = {
    "constant": lambda t, lr, warmup=0: lr,
    "linear": lambda t, lr, total, warmup=0, min=0: min + (lr - min) * (1 - fall(t, total, warmup)),
    "cosine": lambda t, lr, total, warmup=0, min=0: min + (lr - min) * (1 + math.cos(math.pi * fall(t, total, warmup))) / 2,
    "cosine_restarts": restarts,
    "step": lambda t, lr, every, gamma=0.1, warmup=0: lr * gamma ** (max(t - warmup, 0) // every),
    "multistep": lambda t, lr, milestones, gamma=0.1, warmup=0: lr * gamma ** sum(t >= m for m in milestones),
    "polynomial": lambda t, lr, total, power=1, warmup=0, min=0: min + (lr - min) * (1 - fall(t, total, warmup)) ** power,
    "exponential": lambda t, lr, gamma, every=1, warmup=0: lr * gamma ** (max(t - warmup, 0) / every),
    "inverse_sqrt": lambda t, lr, warmup: lr * (math.sqrt(warmup / (t + 1)) if t + 1 > warmup else 1),
    "wsd": lambda t, lr, total, decay, warmup=0, min=0: min + (lr - min) * (1 - fall(t, total, total - decay)),
}


def rate(t, lr, schedule):
    if not schedule:
        return lr
    name, k = schedule
    rise = (t + 1) / k["warmup"] if t < k.get("warmup", 0) else 1
    return rise * SCHEDULES[name](t, lr, **k)


def losses(optimizer, schedule=None, clip=None, group=None, ema=None, freeze=False):
    name, k = optimizer
    state = {n: OPTIMIZERS[name](**{**k, **((group or {}) if n == "u" else {})}) for n in TARGET}
    w = {n: [1.5] * len(t) for n, t in TARGET.items()}
    out = []
    for t in range(STEPS):
        out.append(sum((x - y) ** 4 for n in w for x, y in zip(w[n], TARGET[n])))
        g = {n: [4 * (x - y) ** 3 for x, y in zip(w[n], TARGET[n])] for n in w if n != "u" or not freeze}
        if clip and clip[0] == "value":
            g = {n: [min(max(x, -clip[1]), clip[1]) for x in v] for n, v in g.items()}
        elif clip:
            f = min(clip[1] / (norm([x for v in g.values() for x in v]) + 1e-6), 1)
            g = {n: [f * x for x in v] for n, v in g.items()}
        for n in g:
            lr = (group or {}).get("lr", k["lr"]) if n == "u" else k["lr"]
            d = state[n].direction(w[n], g[n], t)
            scale = rate(t, k["lr"], schedule) / k["lr"] * lr
            w[n] = [x - scale * y for x, y in zip(w[n], d)]
    return out


def text(value):
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(text, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def call(name, k):
    return f"{name}({', '.join(f'{a}: {text(v)}' for a, v in k.items())})"


def case(optimizer, k, schedule=None, sk=None, **more):
    what = ["optimizer: " + call(optimizer, k)]
    if schedule:
        what.append("schedule: " + call(schedule, sk))
    if "clip" in more:
        what.append(f"clip: {more['clip'][0]}({more['clip'][1]})")
    if "group" in more:
        what.append(call("group", {}).replace("()", "(") + '"u*", ' + ", ".join(f"{a}: {text(v)}" for a, v in more["group"].items()) + ")")
    return ", ".join(what), losses((optimizer, k), (schedule, sk) if schedule else None, **more)


SMALL = {"lr": 0.001}
CASES = [
    case("sgd", SMALL),
    case("sgd", {"lr": 0.001, "momentum": 0.9, "weight_decay": 0.1}),
    case("sgd", {"lr": 0.001, "momentum": 0.9, "dampening": 0.5}),
    case("momentum", SMALL),
    case("nesterov", {"lr": 0.001, "momentum": 0.8}),
    case("adam", {"lr": 0.1, "weight_decay": 0.1}),
    case("adam", {"lr": 0.3, "betas": (0.5, 0.6), "amsgrad": True}),
    case("adamw", {"lr": 0.1, "betas": (0.8, 0.95)}),
    case("lamb", {"lr": 0.05, "weight_decay": 0.1}),
    case("lars", {"lr": 5.0, "trust": 0.01, "weight_decay": 0.1}),
    case("lars", {"lr": 5.0, "trust": 0.02, "momentum": 0}),
    case("rmsprop", {"lr": 0.05}),
    case("rmsprop", {"lr": 0.01, "alpha": 0.9, "momentum": 0.5, "centered": True, "weight_decay": 0.1}),
    case("adagrad", {"lr": 0.5, "lr_decay": 0.1}),
    case("adagrad", {"lr": 0.5, "initial": 2.0, "weight_decay": 0.1}),
    case("lion", {"lr": 0.1, "weight_decay": 0.1}),
    case("sgd", SMALL, clip=("norm", 2.0)),
    case("sgd", {"lr": 0.01}, clip=("value", 5.0)),
    case("sgd", SMALL, group={"lr": 0.01, "weight_decay": 0.5}),
    case("adamw", {"lr": 0.1}, "linear", {"total": 12}, group={"lr": 0.2, "weight_decay": 0.0, "betas": (0.5, 0.9), "eps": 0.1}),
    case("sgd", SMALL, "cosine", {"total": 12}),
    case("sgd", SMALL, "cosine", {"total": 12, "warmup": 3, "min": 0.0002}),
    case("sgd", SMALL, "cosine_restarts", {"period": 5, "warmup": 1}),
    case("sgd", SMALL, "cosine_restarts", {"period": 2, "growth": 2, "min": 0.0001}),
    case("sgd", SMALL, "linear", {"total": 12}),
    case("sgd", SMALL, "linear", {"total": 10, "warmup": 3, "min": 0.0005}),
    case("sgd", SMALL, "step", {"every": 4, "gamma": 0.5}),
    case("sgd", SMALL, "step", {"every": 3, "gamma": 0.5, "warmup": 2}),
    case("sgd", SMALL, "multistep", {"milestones": [3, 7], "gamma": 0.5}),
    case("sgd", SMALL, "multistep", {"milestones": [3, 7], "gamma": 0.5, "warmup": 2}),
    case("sgd", SMALL, "exponential", {"gamma": 0.9}),
    case("sgd", SMALL, "exponential", {"gamma": 0.5, "every": 4, "warmup": 3}),
    case("sgd", SMALL, "polynomial", {"total": 12, "power": 2}),
    case("sgd", SMALL, "polynomial", {"total": 12, "power": 0.5, "warmup": 2, "min": 0.0001}),
    case("sgd", SMALL, "inverse_sqrt", {"warmup": 4}),
    case("sgd", SMALL, "wsd", {"total": 12, "warmup": 2, "decay": 5, "min": 0.0001}),
    case("sgd", SMALL, "constant", {"warmup": 4}),
]


def by_torch(what):
    """The same by PyTorch, where it has it; None otherwise."""
    import re
    import torch

    if "schedule" in what and "warmup" in what:
        return None
    o = re.match(r"optimizer: (\w+)\(([^()]*)\)", what)
    k = dict(eval(re.sub(r"(\w+): ", r"('\1', ", a).replace("true", "True") + ")") for a in re.findall(r"\w+: (?:\[[^]]*\]|[^,]+)", o.group(2)))
    if "initial" in k:
        k["initial_accumulator_value"] = k.pop("initial")
    kinds = {"sgd": torch.optim.SGD, "momentum": torch.optim.SGD, "nesterov": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW,
             "rmsprop": torch.optim.RMSprop, "adagrad": torch.optim.Adagrad}
    if o.group(1) not in kinds:
        return None
    if o.group(1) in ("momentum", "nesterov"):
        k = {"momentum": 0.9, "nesterov": o.group(1) == "nesterov", **k}
    w = {n: torch.full((len(t),), 1.5, dtype=torch.float64, requires_grad=True) for n, t in TARGET.items()}
    grp = re.search(r'group\("u\*", (.*)\)', what)
    gk = eval("dict(" + grp.group(1).replace(": ", "=") + ")") if grp else {}
    opt = kinds[o.group(1)]([{"params": [w["w"]]}, {"params": [w["u"]], **gk}], **k)
    s = re.search(r"schedule: (\w+)\(([^()]*)\)", what)
    a = eval("dict(" + s.group(2).replace(": ", "=") + ")") if s else {}
    L = torch.optim.lr_scheduler
    make = {"cosine": lambda: L.CosineAnnealingLR(opt, a["total"]), "cosine_restarts": lambda: L.CosineAnnealingWarmRestarts(opt, a["period"], a.get("growth", 1), a.get("min", 0)),
            "linear": lambda: L.LinearLR(opt, 1, 0 if len(a) == 1 else 9, a["total"]), "step": lambda: L.StepLR(opt, a["every"], a["gamma"]),
            "multistep": lambda: L.MultiStepLR(opt, a["milestones"], a["gamma"]), "exponential": lambda: L.ExponentialLR(opt, a["gamma"]),
            "polynomial": lambda: L.PolynomialLR(opt, a["total"], a["power"])}
    sched = make[s.group(1)]() if s and s.group(1) in make else None
    if s and not sched:
        return None
    clip = re.search(r"clip: (\w+)\(([\d.]+)\)", what)
    out = []
    for _ in range(STEPS):
        opt.zero_grad()
        loss = sum(((w[n] - torch.tensor(t, dtype=torch.float64)) ** 4).sum() for n, t in TARGET.items())
        loss.backward()
        out.append(loss.item())
        if clip and clip.group(1) == "norm":
            torch.nn.utils.clip_grad_norm_(w.values(), float(clip.group(2)))
        elif clip:
            torch.nn.utils.clip_grad_value_(w.values(), float(clip.group(2)))
        opt.step()
        if sched:
            sched.step()
    return out


if __name__ == "__main__":
    print("# The losses of 12 steps of optimizers.ir, in float64, by tests/golden/optimizers.py.")
    for what, got in CASES:
        print(what + "|" + " ".join(f"{x:.9g}" for x in got))
        want = by_torch(what) if "--torch" in sys.argv else None
        if want:
            far = max(abs(a - b) / abs(b) for a, b in zip(got, want))
            print(f"{far:.1e}  {what}", file=sys.stderr)
