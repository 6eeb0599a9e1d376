"""The models that export.py writes: small, but built the way people build them, in the variants that matter to a reader of ONNX.

Sizes are chosen to differ (batch 3, length 7, width 8, heads 2, vocabulary 29 ...) so that a confusion of axes is an error of shape.
MODELS, at the end, lists each model with its example inputs and the exports to make of it.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

IGNORED = -100   # PyTorch's ignore_index


def token_loss(logits, labels):
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=IGNORED)


def heads_of(x, heads):
    """[batch, length, width] -> [batch, heads, length, width / heads]"""
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def joined(x):
    """[batch, heads, length, width] -> [batch, length, heads * width]"""
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


# ---- perceptrons, norms, activations, losses ----

class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(5, 16), nn.Linear(16, 12), nn.Linear(12, 3)
        self.norm1, self.norm2 = nn.LayerNorm(16), nn.LayerNorm(12, eps=1e-3, bias=False)

    def forward(self, x, target):
        h = F.gelu(self.norm1(self.a(x)))
        y = self.c(F.gelu(self.norm2(self.b(h)), approximate="tanh"))
        return F.mse_loss(y, target), y


class Fresh(nn.Module):
    """Two norms as they are at the start, all ones and zeros: exporters that look for equal values make them one parameter."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2, self.linear = nn.LayerNorm(8), nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x, target):
        y = self.norm2(self.linear(self.norm1(x)))
        return F.mse_loss(y, target), y


class Norms(nn.Module):
    """Norms as modules and as people write them by hand; each is one output."""

    def __init__(self, width=8):
        super().__init__()
        self.width = width
        self.module, self.plain = nn.LayerNorm(width), nn.LayerNorm(width, elementwise_affine=False)
        self.both = nn.LayerNorm((6, width))
        self.group, self.instance = nn.GroupNorm(2, 6), nn.InstanceNorm1d(6, affine=True)
        self.w1, self.b1, self.w2, self.b2, self.w3, self.w4, self.w5 = (nn.Parameter(torch.randn(width)) for _ in range(7))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        centred = x - mean
        variance = centred.pow(2).mean(-1, keepdim=True)
        bert = self.w1 * (centred / torch.sqrt(variance + 1e-5)) + self.b1                     # as in the first BERT ports
        var = (x - mean) * torch.rsqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5) * self.w2 + self.b2
        square = x.float()
        llama = self.w3 * (square * torch.rsqrt(square.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)
        times = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * (1 + self.w4)         # as in Gemma
        norm = F.normalize(x, dim=-1) * self.width ** 0.5 * self.w5                             # norm by x / |x|
        return self.module(x), self.plain(x), self.both(x), self.group(x), self.instance(x), bert, var, llama, times, norm


class RmsNorms(nn.Module):
    """PyTorch's own, which the TorchScript exporter refuses: a given, the default and no scale."""

    def __init__(self, width=8):
        super().__init__()
        self.a, self.b, self.c = nn.RMSNorm(width, eps=1e-6), nn.RMSNorm(width), nn.RMSNorm((6, width), elementwise_affine=False)

    def forward(self, x):
        return self.a(x), self.b(x), self.c(x)


class Activations(nn.Module):
    """GELU in all its forms, and the other activations; each is one output."""

    def forward(self, x):
        return (F.gelu(x), F.gelu(x, approximate="tanh"),
                x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0))),
                0.5 * x * (1.0 + torch.erf(x * 0.7071067811865476)),
                0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0)))),
                0.5 * x * (1.0 + torch.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x))),
                x * torch.sigmoid(1.702 * x),
                F.silu(x), x * torch.sigmoid(x), F.mish(x), F.hardswish(x), F.hardsigmoid(x), F.relu6(x), F.elu(x), F.selu(x),
                F.leaky_relu(x, 0.1), F.softplus(x), F.softsign(x), F.logsigmoid(x), F.glu(x), F.hardtanh(x, -0.5, 0.5))


class Losses(nn.Module):
    """The losses that both exporters know, added up: any scalar output can be the loss."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(7, 5), nn.Linear(7, 4)
        self.register_buffer("balance", torch.tensor([1.0, 0.5, 2.0, 1.5, 0.25]))

    def forward(self, x, label, target):
        p, q = self.a(x), self.b(x)
        cross = F.cross_entropy(p, label, ignore_index=IGNORED)
        balanced = F.cross_entropy(p, label, self.balance, ignore_index=IGNORED, reduction="sum")
        likely = F.nll_loss(F.log_softmax(p, 1), label, ignore_index=IGNORED)
        square, binary = F.mse_loss(q, target), F.binary_cross_entropy_with_logits(q, target)
        distance = F.kl_div(F.log_softmax(q, 1), F.softmax(target, 1), reduction="batchmean")
        return cross + 0.1 * balanced + likely + square + binary + distance, p, q


class DynamoLosses(nn.Module):
    """Losses that the TorchScript exporter refuses. Not label_smoothing=: dynamo drops it without a word."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(7, 5)

    def forward(self, x, label, target):
        p = self.a(x)
        smooth = 0.9 * F.cross_entropy(p, label) - 0.1 * F.log_softmax(p, 1).mean()
        return smooth + F.l1_loss(p, target) + F.smooth_l1_loss(p, target) + F.huber_loss(p, target, delta=0.5), p


class WideDeep(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, 4) for n in (11, 7, 23))
        self.wide = nn.Linear(5, 1, bias=False)
        self.tower = nn.Sequential(nn.Linear(17, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, dense, ids, clicked):
        deep = torch.cat([table(ids[:, i]) for i, table in enumerate(self.tables)] + [dense], dim=1)
        score = (self.wide(dense) + self.tower(deep)).squeeze(-1)
        return F.binary_cross_entropy_with_logits(score, clicked), torch.sigmoid(score)


class TiedAutoencoder(nn.Module):
    """One weight used twice, once transposed, and an embedding that is also the output layer."""

    def __init__(self):
        super().__init__()
        self.embed, self.encode = nn.Embedding(13, 10), nn.Linear(10, 4)
        self.head = nn.Linear(10, 13, bias=False)
        self.head.weight = self.embed.weight
        self.bias = nn.Parameter(torch.zeros(10))

    def forward(self, ids):
        code = torch.tanh(self.encode(self.embed(ids)))
        logits = self.head(F.linear(code, self.encode.weight.t(), self.bias))
        return token_loss(logits, ids), logits


# ---- convolutions ----

class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.skip = nn.Sequential() if inputs == outputs and stride == 1 else \
            nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.skip(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.bn = nn.Conv2d(3, 6, 5, 2, 2, bias=False), nn.BatchNorm2d(6, momentum=0.2)
        self.blocks = nn.Sequential(Residual(6, 6, 1), Residual(6, 10, 2), Residual(10, 10, 1))
        self.head = nn.Linear(10, 7)

    def forward(self, x, label):
        h = self.blocks(F.max_pool2d(F.relu(self.bn(self.stem(x))), 3, 2, 1))
        logits = self.head(torch.flatten(F.adaptive_avg_pool2d(h, 1), 1))
        return F.cross_entropy(logits, label), logits


class MobileNet(nn.Module):
    """Depthwise convolution, squeeze and excitation, hard activations, a grouped and a dilated convolution, average pool."""

    def __init__(self):
        super().__init__()
        self.expand, self.bn1 = nn.Conv2d(3, 8, 1, bias=False), nn.BatchNorm2d(8, eps=1e-3)
        self.depth, self.bn2 = nn.Conv2d(8, 8, 3, 2, 1, groups=8, bias=False), nn.BatchNorm2d(8)
        self.squeeze, self.excite = nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1)
        self.grouped, self.dilated = nn.Conv2d(8, 4, 3, padding=1, groups=2), nn.Conv2d(4, 4, 3, padding=2, dilation=2)
        self.head = nn.Linear(4 * 3 * 4, 5)

    def forward(self, x):
        h = F.relu6(self.bn2(self.depth(F.hardswish(self.bn1(self.expand(x))))))
        h = h * F.hardsigmoid(self.excite(F.relu(self.squeeze(h.mean((2, 3), keepdim=True)))))
        h = F.avg_pool2d(F.hardswish(self.dilated(self.grouped(h))), 2)
        return self.head(h.flatten(1))


# ---- transformers ----

class GptBlock(nn.Module):
    def __init__(self, width, heads, length, manual):
        super().__init__()
        self.heads, self.manual = heads, manual
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        if manual:
            self.register_buffer("mask", torch.tril(torch.ones(length, length)).view(1, 1, length, length), persistent=False)

    def attend(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in self.qkv(x).split(C, dim=2))
        if not self.manual:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            s = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            y = F.softmax(s.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf")), dim=-1) @ v
        return self.out(y.transpose(1, 2).contiguous().view(B, T, C))

    def feed(self, x):
        h = self.up(x)
        if self.manual:   # NewGELU, as GPT-2 was first written
            h = 0.5 * h * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (h + 0.044715 * torch.pow(h, 3.0))))
        else:
            h = F.gelu(h, approximate="tanh")
        return self.down(h)

    def forward(self, x):
        x = x + self.attend(self.ln1(x))
        return x + self.feed(self.ln2(x))


class Gpt(nn.Module):
    def __init__(self, manual, layers=12, width=8, heads=2, length=10, vocab=29):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, width), nn.Embedding(length, width)
        self.h = nn.ModuleList(GptBlock(width, heads, length, manual) for _ in range(layers))
        self.ln = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)
        self.head.weight = self.wte.weight
        nn.init.normal_(self.wte.weight, std=0.3)

    def forward(self, ids, labels):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.h:
            x = block(x)
        logits = self.head(self.ln(x))
        return token_loss(logits, labels), logits


class Encoder(nn.Module):
    """PyTorch's own encoder (after BERT: norm last, GELU by erf), with a padding mask."""

    def __init__(self, vocab=29, width=8, heads=2, layers=2, dropout=0.0):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab, width, padding_idx=0), nn.Embedding(7, width)
        layer = nn.TransformerEncoderLayer(width, heads, 20, dropout, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 4)

    def forward(self, ids, label):
        x = self.tokens(ids) + self.places.weight
        x = self.encoder(x, src_key_padding_mask=ids == 0)
        logits = self.head(x[:, 0])
        return F.cross_entropy(logits, label), logits


class BertLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 20), nn.Linear(20, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)

    def split(self, x):
        return x.view(x.size()[:-1] + (self.heads, x.size(-1) // self.heads)).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.size(-1)) + mask
        y = torch.matmul(F.dropout(nn.functional.softmax(scores, dim=-1), 0.0, self.training), v).permute(0, 2, 1, 3).contiguous()
        x = self.norm1(x + self.out(y.view(y.size()[:-2] + (x.size(-1),))))
        h = self.up(x)
        return self.norm2(x + self.down(h * 0.5 * (1.0 + torch.erf(h / math.sqrt(2.0)))))


class Bert(nn.Module):
    """BERT as Hugging Face writes it: additive mask, scores divided, segment embeddings, pooler."""

    def __init__(self, vocab=29, width=8, heads=2, layers=2):
        super().__init__()
        self.tokens, self.places, self.kinds = nn.Embedding(vocab, width), nn.Embedding(10, width), nn.Embedding(2, width)
        self.register_buffer("position_ids", torch.arange(10).expand((1, -1)))
        self.norm, self.layers = nn.LayerNorm(width, eps=1e-12), nn.ModuleList(BertLayer(width, heads) for _ in range(layers))
        self.pool, self.head = nn.Linear(width, width), nn.Linear(width, 4)

    def forward(self, ids, mask, kinds):
        extended = (1.0 - mask[:, None, None, :].to(torch.float32)) * torch.finfo(torch.float32).min
        x = self.norm(self.tokens(ids) + self.kinds(kinds) + self.places(self.position_ids[:, : ids.size(1)]))
        for layer in self.layers:
            x = layer(x, extended)
        return self.head(torch.tanh(self.pool(x[:, 0]))), x


class Decoder(nn.Module):
    """PyTorch's decoder layer (self- and cross-attention, norm first) and an attention that also returns its weights."""

    def __init__(self, width=8, heads=2):
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(width, heads, 20, 0.0, batch_first=True, norm_first=True)
        self.last = nn.MultiheadAttention(width, heads, batch_first=True, kdim=10, vdim=10)
        self.memory = nn.Linear(10, width)

    def forward(self, x, memory, padding):
        causal = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        x = self.layer(x, self.memory(memory), tgt_mask=causal, tgt_is_causal=True, memory_key_padding_mask=padding)
        return self.last(x, memory, memory, key_padding_mask=padding, need_weights=True)


class HandRms(nn.Module):
    """RMSNorm as Hugging Face writes it for Llama: computed in float, cast back, then scaled."""

    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(1 + 0.1 * torch.randn(width)), eps

    def forward(self, x):
        dtype = x.dtype
        x = x.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * x.to(dtype)


def rotate_half(x):
    return torch.cat((-x[..., x.shape[-1] // 2:], x[..., : x.shape[-1] // 2]), dim=-1)


def repeat_kv(x, n):
    B, G, T, D = x.shape
    return x[:, :, None, :, :].expand(B, G, n, T, D).reshape(B, G * n, T, D)


class LlamaLayer(nn.Module):
    def __init__(self, width, heads, groups, hidden, eager):
        super().__init__()
        self.heads, self.groups, self.size, self.eager = heads, groups, width // heads, eager
        self.norm1, self.norm2 = HandRms(width), HandRms(width)
        self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, groups * self.size, bias=False) for _ in range(2))
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def attend(self, x, cos, sin, mask):
        B, T, _ = x.shape
        q = self.q(x).view(B, T, -1, self.size).transpose(1, 2)
        k = self.k(x).view(B, T, -1, self.size).transpose(1, 2)
        v = self.v(x).view(B, T, -1, self.size).transpose(1, 2)
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        k, v = repeat_kv(k, self.heads // self.groups), repeat_kv(v, self.heads // self.groups)
        if self.eager:
            s = torch.matmul(q, k.transpose(2, 3)) * self.size ** -0.5 + mask
            y = torch.matmul(F.softmax(s, dim=-1, dtype=torch.float32).to(q.dtype), v)
        else:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.o(y.transpose(1, 2).reshape(B, T, -1))

    def forward(self, x, cos, sin, mask):
        x = x + self.attend(self.norm1(x), cos, sin, mask)
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    """Llama as Hugging Face writes it: positions to cosines inside the graph, a mask built by triu, groups of heads repeated."""

    def __init__(self, eager=True, vocab=29, width=24, heads=4, groups=2, hidden=20, layers=2):
        super().__init__()
        size = width // heads
        self.embed = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(LlamaLayer(width, heads, groups, hidden, eager) for _ in range(layers))
        self.norm, self.head = HandRms(width), nn.Linear(width, vocab, bias=False)
        self.register_buffer("inv_freq", 1.0 / (10000.0 ** (torch.arange(0, size, 2).float() / size)), persistent=False)

    def forward(self, ids, labels):
        T = ids.shape[1]
        x = self.embed(ids)
        positions = torch.arange(T, device=ids.device).unsqueeze(0)
        freqs = (self.inv_freq[None, :, None].float() @ positions[:, None, :].float()).transpose(1, 2)
        angles = torch.cat((freqs, freqs), dim=-1)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        mask = torch.triu(torch.full((T, T), torch.finfo(x.dtype).min, dtype=x.dtype), diagonal=1)[None, None]
        for layer in self.layers:
            x = layer(x, cos, sin, mask)
        logits = self.head(self.norm(x)).float()
        return token_loss(logits, labels), logits


class NativeLlama(nn.Module):
    """The same with what PyTorch now has: nn.RMSNorm, grouped attention, the two-halves rotation with tables, one fused gate."""

    def __init__(self, vocab=29, width=24, heads=4, groups=2, hidden=20, length=16, layers=2):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.embed, self.norm = nn.Embedding(vocab, width), nn.RMSNorm(width, eps=1e-5)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "norm1": nn.RMSNorm(width, eps=1e-5), "norm2": nn.RMSNorm(width),
            "qkv": nn.Linear(width, width + 2 * groups * self.size, bias=False), "o": nn.Linear(width, width, bias=False),
            "gate": nn.Linear(width, 2 * hidden, bias=False), "down": nn.Linear(hidden, width, bias=False)}) for _ in range(layers))
        angles = torch.outer(torch.arange(length).float(), 10000.0 ** (-torch.arange(0, self.size, 2).float() / self.size))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def rotate(self, x, cos, sin):
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)

    def forward(self, ids, labels):
        x = self.embed(ids)
        cos, sin = self.cos[: ids.shape[1]], self.sin[: ids.shape[1]]
        for layer in self.layers:
            q, k, v = layer["qkv"](layer["norm1"](x)).split([self.heads * self.size] + [self.groups * self.size] * 2, dim=-1)
            q, k, v = heads_of(q, self.heads), heads_of(k, self.groups), heads_of(v, self.groups)
            y = F.scaled_dot_product_attention(self.rotate(q, cos, sin), self.rotate(k, cos, sin), v, is_causal=True, enable_gqa=True)
            x = x + layer["o"](joined(y))
            gate, up = layer["gate"](layer["norm2"](x)).chunk(2, dim=-1)
            x = x + layer["down"](F.silu(gate) * up)
        logits = F.linear(self.norm(x), self.embed.weight)
        return token_loss(logits, labels), logits


class Vit(nn.Module):
    def __init__(self, width=12, heads=3, layers=2):
        super().__init__()
        self.patch, self.cls = nn.Conv2d(3, width, 4, 4), nn.Parameter(torch.randn(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, 7, width))
        self.blocks = nn.ModuleList(nn.ModuleDict({
            "norm1": nn.LayerNorm(width, eps=1e-6), "norm2": nn.LayerNorm(width, eps=1e-6),
            "qkv": nn.Linear(width, 3 * width), "out": nn.Linear(width, width),
            "mlp": nn.Sequential(nn.Linear(width, 20), nn.GELU(), nn.Linear(20, width))}) for _ in range(layers))
        self.heads, self.norm, self.head = heads, nn.LayerNorm(width, eps=1e-6), nn.Linear(width, 5)

    def forward(self, x, label):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls.expand(x.shape[0], -1, -1), x), dim=1) + self.places
        B, N, C = x.shape
        for block in self.blocks:   # timm's form: qkv as one tensor of rank 5, q scaled before the product
            q, k, v = block["qkv"](block["norm1"](x)).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
            y = ((q * (C // self.heads) ** -0.5) @ k.transpose(-2, -1)).softmax(dim=-1) @ v
            x = x + block["out"](y.transpose(1, 2).reshape(B, N, C))
            x = x + block["mlp"](block["norm2"](x))
        logits = self.head(self.norm(x)[:, 0])
        return F.cross_entropy(logits, label), logits


class Attentions(nn.Module):
    """One attention in the forms that are found in the wild; each is one output. q, k, v: [batch, heads, length, width]."""

    def __init__(self, heads=2, length=7):
        super().__init__()
        self.register_buffer("tril", torch.tril(torch.ones(length, length, dtype=torch.bool)))
        self.register_buffer("lowest", torch.tensor(torch.finfo(torch.float32).min))
        self.register_buffer("slopes", torch.tensor([2.0 ** -(4 * (i + 1)) for i in range(heads)]).view(heads, 1, 1))
        self.relative = nn.Parameter(torch.randn(1, heads, length, length))

    def forward(self, q, k, v, keep, bias):
        B, H, T, D = q.shape
        scale = 1.0 / math.sqrt(D)
        plain = F.scaled_dot_product_attention(q, k, v)
        causal = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        boolean = F.scaled_dot_product_attention(q, k, v, attn_mask=keep[:, None, None, :])
        added = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        scaled = F.scaled_dot_product_attention(q, k, v, scale=0.3)

        scores = q @ k.transpose(-1, -2)
        divided = (scores / math.sqrt(D)).softmax(-1) @ v
        q_first = ((q * scale) @ k.transpose(-1, -2)).softmax(-1) @ v
        both = ((q * D ** -0.25) @ (k * D ** -0.25).transpose(-1, -2)).softmax(-1) @ v
        where = torch.where(self.tril, scores / math.sqrt(D), self.lowest).softmax(-1) @ v          # Hugging Face GPT-2
        filled = (scores * scale).masked_fill(~self.tril, torch.finfo(torch.float32).min).softmax(-1) @ v
        padded = (scores * scale).masked_fill(~keep[:, None, None, :], float("-inf")).softmax(-1) @ v
        upper = torch.triu(torch.ones(T, T, dtype=torch.bool, device=q.device), diagonal=1)
        late = (scores * scale + torch.zeros(T, T).masked_fill(upper, float("-inf"))).softmax(-1) @ v
        places = torch.arange(T)
        compared = torch.where(places[:, None] >= places[None, :], scores * scale, -1e9).softmax(-1) @ v
        alibi = (scores * scale + self.slopes * (places[None, :] - places[:, None])).softmax(-1) @ v
        unscaled = (scores + self.relative).softmax(-1) @ v                                              # T5
        tanh = (30.0 * torch.tanh(scores * scale / 30.0)).softmax(-1) @ v                            # Gemma's soft cap
        summed = torch.einsum("bhts,bhsd->bhtd", torch.einsum("bhtd,bhsd->bhts", q, k).mul(scale).softmax(-1), v)
        flat = [x.reshape(B * H, T, D) for x in (q, k, v)]
        batched = torch.bmm(torch.baddbmm(bias.expand(B, H, T, T).reshape(B * H, T, T), flat[0], flat[1].transpose(1, 2), alpha=scale)
                            .softmax(-1), flat[2]).view(B, H, T, D)
        stable = torch.exp(scores * scale - torch.logsumexp(scores * scale, -1, keepdim=True)) @ v
        return (plain, causal, boolean, added, scaled, divided, q_first, both, where, filled, padded, late, compared, alibi,
                unscaled, tanh, summed, batched, stable)


class Rotations(nn.Module):
    """Rotary embeddings; each is one output. x: [batch, heads, length, width]."""

    def __init__(self, width=8, length=16):
        super().__init__()
        angles = torch.outer(torch.arange(length).float(), 10000.0 ** (-torch.arange(0, width, 2).float() / width))
        self.register_buffer("angles", angles)
        self.register_buffer("twice", torch.cat((angles, angles), -1))

    def forward(self, x, positions):
        T = x.shape[-2]
        cos, sin = self.twice[:T].cos(), self.twice[:T].sin()
        turned = x * cos + rotate_half(x) * sin
        picked_cos, picked_sin = self.twice.cos()[positions].unsqueeze(1), self.twice.sin()[positions].unsqueeze(1)
        picked = x * picked_cos + rotate_half(x) * picked_sin                                       # tables indexed by position
        c, s = self.angles[:T].cos(), self.angles[:T].sin()
        a, b = x.chunk(2, dim=-1)
        halves = torch.cat((a * c - b * s, b * c + a * s), dim=-1)
        even, odd = x[..., ::2], x[..., 1::2]
        pairs = torch.stack((even * c - odd * s, odd * c + even * s), dim=-1).flatten(-2)            # GPT-J, original Llama
        swapped = torch.stack((-odd, even), dim=-1).flatten(-2)
        repeated = x * torch.stack((c, c), -1).flatten(-2) + swapped * torch.stack((s, s), -1).flatten(-2)
        rot, rest = x[..., :4], x[..., 4:]
        partial = torch.cat((rot * cos[..., ::2] + rotate_half(rot) * sin[..., ::2], rest), dim=-1)  # GPT-NeoX
        return turned, picked, halves, pairs, repeated, partial


class RotationsLate(nn.Module):
    """Rotary embeddings before the heads are moved: x: [batch, length, heads, width]; then attention over what was turned."""

    def __init__(self, width=8, length=16):
        super().__init__()
        angles = torch.outer(torch.arange(length).float(), 10000.0 ** (-torch.arange(0, width, 2).float() / width))
        self.register_buffer("angles", angles)
        self.register_buffer("twice", torch.cat((angles, angles), -1))

    def forward(self, x, positions):
        T = x.shape[1]
        cos, sin = self.twice[None, :T, None].cos(), self.twice[None, :T, None].sin()                # [1, length, 1, width]
        turned = x * cos + rotate_half(x) * sin
        picked_cos, picked_sin = self.twice.cos()[positions].unsqueeze(2), self.twice.sin()[positions].unsqueeze(2)
        picked = x * picked_cos + rotate_half(x) * picked_sin                                       # Hugging Face, unsqueeze_dim=2
        c, s = self.angles[:T, None].cos(), self.angles[:T, None].sin()                             # [length, 1, width / 2]
        a, b = x.chunk(2, dim=-1)
        halves = torch.cat((a * c - b * s, b * c + a * s), dim=-1)
        even, odd = x[..., ::2], x[..., 1::2]
        pairs = torch.stack((even * c - odd * s, odd * c + even * s), dim=-1).flatten(-2)            # original Llama
        rot, rest = x[..., :4], x[..., 4:]
        partial = torch.cat((rot * cos[..., ::2] + rotate_half(rot) * sin[..., ::2], rest), dim=-1)
        attended = F.scaled_dot_product_attention(turned.transpose(1, 2), halves.transpose(1, 2), x.transpose(1, 2), is_causal=True)
        return turned, picked, halves, pairs, partial, attended


# ---- recurrent ----

class Lstm(nn.Module):
    def __init__(self, vocab=29, width=8):
        super().__init__()
        self.embed, self.lstm = nn.Embedding(vocab, 5), nn.LSTM(5, width, 2, batch_first=True)
        self.head = nn.Linear(width, vocab)

    def forward(self, ids, labels):
        h, _ = self.lstm(self.embed(ids))
        logits = self.head(h)
        return token_loss(logits, labels), logits


class Gru(nn.Module):
    """Time first, both directions, with a given start and the end returned."""

    def __init__(self, vocab=29, width=8):
        super().__init__()
        self.embed, self.gru = nn.Embedding(vocab, 5), nn.GRU(5, width, bidirectional=True)
        self.head = nn.Linear(2 * width, vocab)

    def forward(self, ids, labels, start):
        h, end = self.gru(self.embed(ids), start)
        logits = self.head(h)
        return token_loss(logits, labels), logits, end


# ---- what is exported ----

def ids(*shape, below=29):
    return torch.randint(1, below, shape)


def labels(*shape, below=29):
    """Labels of which the first of each row is ignored."""
    y = ids(*shape, below=below)
    y[..., 0] = IGNORED
    return y


def padded(*shape, below=29):
    """Token ids whose later rows end in more and more padding (0)."""
    x = ids(*shape, below=below)
    for row in range(shape[0]):
        x[row, shape[1] - row:] = 0
    return x


BOTH = ("dynamo", "script")
FREE = ("dynamo-dyn", "script-dyn")   # the batch axis, and what `free` adds to it, stays symbolic
OLD = ("script13",)                   # opset 13: LayerNorm and GELU arrive decomposed

# name: (module, inputs by name, exports, free axes by input name)
MODELS = {
    "mlp": (Mlp, lambda: {"x": torch.randn(4, 5), "target": torch.randn(4, 3)},
            (*BOTH, "folded", *FREE, "script11", *OLD), {"x": {0: "batch"}, "target": {0: "batch"}}),
    "fresh": (Fresh, lambda: {"x": torch.randn(3, 6, 8), "target": torch.randn(3, 6, 8)}, (*BOTH, "folded", "eval"), {}),
    "norms": (Norms, lambda: {"x": torch.randn(3, 6, 8)}, (*BOTH, *OLD), {}),
    "rmsnorms": (RmsNorms, lambda: {"x": torch.randn(3, 6, 8)}, ("dynamo", "dynamo23"), {}),
    "activations": (Activations, lambda: {"x": 2 * torch.randn(3, 8)}, (*BOTH, *OLD), {}),
    "losses": (Losses, lambda: {"x": torch.randn(6, 7), "label": torch.tensor([1, 4, IGNORED, 0, 3, IGNORED]),
                                "target": torch.rand(6, 4)}, BOTH, {}),
    "losses2": (DynamoLosses, lambda: {"x": torch.randn(6, 7), "label": ids(6, below=5), "target": torch.randn(6, 5)}, ("dynamo",), {}),
    "widedeep": (WideDeep, lambda: {"dense": torch.randn(6, 5), "ids": ids(6, 3, below=7), "clicked": ids(6, below=3).float() - 1},
                 (*BOTH, *FREE), {"dense": {0: "batch"}, "ids": {0: "batch"}, "clicked": {0: "batch"}}),
    "tied": (TiedAutoencoder, lambda: {"ids": ids(3, 6, below=13)}, BOTH, {}),
    "resnet": (ResNet, lambda: {"x": torch.randn(4, 3, 12, 16), "label": ids(4, below=7)},
               (*BOTH, "folded", *FREE), {"x": {0: "batch"}, "label": {0: "batch"}}),
    "mobilenet": (MobileNet, lambda: {"x": torch.randn(3, 3, 12, 16)}, BOTH, {}),
    "gpt2-manual": (lambda: Gpt(True), lambda: {"ids": ids(3, 7), "labels": labels(3, 7)},
                    (*BOTH, *FREE, *OLD), {"ids": {0: "batch", 1: "length"}, "labels": {0: "batch", 1: "length"}}),
    "gpt2-sdpa": (lambda: Gpt(False), lambda: {"ids": ids(3, 7), "labels": labels(3, 7)},
                  (*BOTH, "folded"), {}),
    "encoder": (Encoder, lambda: {"ids": padded(3, 7), "label": ids(3, below=4)},
                (*BOTH, "folded", "script-dyn"), {"ids": {0: "batch"}, "label": {0: "batch"}}),
    "dropout": (lambda: Encoder(layers=1, dropout=0.1), lambda: {"ids": padded(3, 7), "label": ids(3, below=4)}, BOTH, {}),
    "bert": (Bert, lambda: {"ids": ids(3, 7), "mask": (padded(3, 7) > 0).long(), "kinds": ids(3, 7, below=3) - 1},
             (*BOTH, *FREE, *OLD), {n: {0: "batch", 1: "length"} for n in ("ids", "mask", "kinds")}),
    "decoder": (Decoder, lambda: {"x": torch.randn(3, 7, 8), "memory": torch.randn(3, 5, 10), "padding": padded(3, 5) == 0}, BOTH, {}),
    "llama": (Llama, lambda: {"ids": ids(3, 7), "labels": labels(3, 7)},
              (*BOTH, *FREE), {"ids": {0: "batch", 1: "length"}, "labels": {0: "batch", 1: "length"}}),
    "llama-sdpa": (lambda: Llama(False), lambda: {"ids": ids(3, 7), "labels": labels(3, 7)}, BOTH, {}),
    "llama-bf16": (lambda: Llama(True, layers=1).bfloat16(), lambda: {"ids": ids(3, 7), "labels": labels(3, 7)}, BOTH, {}),
    "llama-native": (NativeLlama, lambda: {"ids": ids(3, 7), "labels": labels(3, 7)},
                     ("dynamo", "dynamo-dyn", "dynamo23"), {"ids": {0: "batch", 1: "length"}, "labels": {0: "batch", 1: "length"}}),
    "vit": (Vit, lambda: {"x": torch.randn(4, 3, 8, 12), "label": ids(4, below=5)},
            (*BOTH, *FREE), {"x": {0: "batch"}, "label": {0: "batch"}}),
    "attentions": (Attentions, lambda: {**{n: torch.randn(3, 2, 7, 4) for n in "qkv"}, "keep": padded(3, 7) > 0,
                                        "bias": torch.randn(3, 1, 7, 7)}, (*BOTH, "dynamo23"), {}),
    "rotations-late": (RotationsLate, lambda: {"x": torch.randn(3, 7, 2, 8), "positions": ids(3, 7, below=16)}, (*BOTH, "dynamo-dyn", "script-dyn"), {"x": {0: "B", 1: "T"}, "positions": {0: "B", 1: "T"}}),
    "rotations": (Rotations, lambda: {"x": torch.randn(3, 2, 7, 8), "positions": ids(3, 7, below=16)}, BOTH, {}),
    "lstm": (Lstm, lambda: {"ids": ids(3, 6), "labels": labels(3, 6)},
             (*BOTH, "script-dyn"), {"ids": {0: "batch"}, "labels": {0: "batch"}}),
    "gru": (Gru, lambda: {"ids": ids(6, 3), "labels": labels(6, 3), "start": torch.randn(2, 3, 8)}, BOTH, {}),
}
FRESH = {"fresh"}      # keeps PyTorch's initial values
RANDOM = {"dropout"}   # training is random on purpose: such a file is read, not compared
