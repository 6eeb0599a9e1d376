"""Writes tests/exported: the models of models.py as PyTorch's two exporters write them, with inputs, outputs and gradients.

    export.py [NAME ...]      all models, or those whose directory name begins with a NAME

Needs Python with torch 2.13, onnx, onnxscript and onnxruntime; nothing else in the project does: the files it writes are kept.
A directory MODEL.EXPORT holds model.onnx, input_N.npy and output_N.npy. Where output 0 is a scalar loss, grads/MODEL/INITIALISER.npy is
its gradient with respect to that parameter, the same for all exports of the model. EXPORT is one of
    dynamo      dynamo=True, optimize=False: to be trained
    script      dynamo=False, training, no constant folding: to be trained
    folded      dynamo=True, optimize=True: weights folded into other weights, not to be trained
    eval        dynamo=False with its defaults: the same, by the other exporter
-dyn after it: the batch axis, in some models also the length, is symbolic. A number after it: another opset than 20.
A file `tolerance` stands where 1e-4, relative to the largest element of an output, cannot be asked. Every file is also run by
ONNX Runtime, or ONNX's reference, and compared with PyTorch: the exit status is 0 if all agree.
"""
import os
import pathlib
import re
import shutil
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ["TORCH_LOGS"] = "-all"

import numpy as np
import onnx
import onnx.reference
import onnxruntime
import torch

sys.dont_write_bytecode = True
from models import FRESH, MODELS, RANDOM

torch.set_num_threads(1)   # so that the same bits come out everywhere
ROOT = pathlib.Path(__file__).resolve().parent.parent / "exported"
FOLDED = "folded", "eval"
KEEP_SCOPES = 60   # nodes; a larger file loses the notes that dynamo puts on nodes, which would be most of its bytes


def export(module, inputs, kind, free, path):
    opset = re.search(r"\d+$", kind)
    common = {"input_names": list(inputs), "opset_version": int(opset.group()) if opset else None, "verbose": False}
    free = free if kind.endswith("-dyn") else {}
    if kind == "eval":
        torch.onnx.export(module, tuple(inputs.values()), path, dynamo=False, **common)
    elif kind.startswith("script"):
        torch.onnx.export(module, tuple(inputs.values()), path, dynamo=False, training=torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=False, dynamic_axes=free or None, **common)
    else:
        dims = {}   # equal names are one dimension
        shapes = {n: {i: dims.setdefault(d, torch.export.Dim(d, min=2)) for i, d in free.get(n, {}).items()} or None for n in inputs}
        torch.onnx.export(module, tuple(inputs.values()), path, dynamo=True, optimize=kind == "folded", external_data=False,
                          dynamic_shapes=shapes if free else None, **common)


def clean(path):
    """Takes away what names the machine that exported, and what would make the files large; the graph stays as it was written."""
    model = onnx.load(path)
    model.doc_string = ""
    for node in model.graph.node:
        node.doc_string = ""
        notes = [p for p in node.metadata_props if not p.key.endswith("stack_trace") and len(model.graph.node) <= KEEP_SCOPES]
        del node.metadata_props[:]
        node.metadata_props.extend(notes)
        attributes = sorted(node.attribute, key=lambda a: a.name)   # dynamo writes them in an order that varies from run to run
        del node.attribute[:]
        node.attribute.extend(attributes)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    text = path.read_bytes()
    for word in (b"site-packages", str(pathlib.Path.home()).encode() + b"/", str(ROOT.parent.parent).encode()):
        assert word not in text, f"{path} names {word}"
    return model


def numpy(tensor):
    tensor = tensor.detach()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def write_gradients(module, loss, where):
    """One file per parameter; a tied one has a file under each of its names, since the exporters choose differently."""
    names = dict(module.named_parameters(remove_duplicate=False))
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir(parents=True)
    for name, gradient in zip(names, torch.autograd.grad(loss, list(names.values()))):
        np.save(where / f"{name}.npy", numpy(gradient))


def lost(module, model):
    """The parameters that the file knows by none of their names."""
    owners, stored = {}, {t.name for t in model.graph.initializer}
    for name, p in module.named_parameters(remove_duplicate=False):
        owners.setdefault(p, []).append(name)
    return ["=".join(names) for names in owners.values() if not stored & set(names)]


def run(model, inputs):
    """The outputs by ONNX Runtime or, where that lacks an operator or a type, by ONNX's own reference."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, inputs), "ONNX Runtime"
    except Exception:
        return [np.asarray(a, np.float32) for a in onnx.reference.ReferenceEvaluator(model).run(None, inputs)], "the ONNX reference"


def judge(model, inputs, outputs, tolerance):
    """Whether the file computes what the module does, once its batch norms are put back into training mode; in words."""
    frozen = [n for n in model.graph.node if n.op_type == "BatchNormalization" and len(n.output) == 1]
    for i, node in enumerate(frozen):
        node.attribute.append(onnx.helper.make_attribute("training_mode", 1))
        node.output.extend([f"mean{i}", f"var{i}"])
    found, by = run(model, inputs)
    for i, (a, b) in enumerate(zip(found, outputs, strict=True)):
        if a.shape != b.shape:
            return f"WRONG: output {i} is {a.shape} by {by} and {b.shape} by PyTorch"
        if not np.allclose(a, b, rtol=tolerance, atol=tolerance * float(np.abs(b).max()) + 1e-7, equal_nan=True):
            return f"WRONG: output {i} differs by {np.abs(a - b).max():.2g} ({by})"
    return f"agrees with {by}" + (" in training mode" if frozen else "")


def main(wanted):
    bad = 0
    for name, (make, example, kinds, free) in MODELS.items():
        for kind in kinds:
            directory = ROOT / f"{name}.{kind}"
            if wanted and not any(directory.name.startswith(w) for w in wanted):
                continue
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            torch.manual_seed(20)
            module = make().train()
            for n, p in (*module.named_parameters(), *module.named_buffers()) if name not in FRESH else ():
                if p.dim() == 1 and (n.endswith(("weight", "bias", "running_mean"))):   # constants would hide mistakes
                    torch.nn.init.normal_(p, 1.0 if n.endswith("weight") else 0.0, 0.2)
                elif n.endswith("running_var"):
                    torch.nn.init.uniform_(p, 0.5, 2.0)
            inputs = example()
            state = {n: t.clone() for n, t in module.state_dict().items()}
            path = directory / "model.onnx"
            export(module, inputs, kind, free, path)
            module.load_state_dict(state)   # exporting runs the module, which moves the statistics of batch norm
            module.train(kind not in FOLDED)
            model = clean(path)
            found = [i.name for i in model.graph.input]
            assert found == list(inputs), f"{directory.name}: inputs became {found}"
            about = f"{directory.name:24} {len(model.graph.node):5} nodes {path.stat().st_size:7} bytes "
            if name in RANDOM:
                print(about, "random, not compared")
                continue
            outputs = module(*inputs.values())
            outputs = outputs if isinstance(outputs, tuple) else (outputs,)
            if outputs[0].dim() == 0 and kind == kinds[0]:
                write_gradients(module, outputs[0], ROOT / "grads" / name)
            tolerance = 1e-4
            if any(p.dtype == torch.bfloat16 for p in module.parameters()):
                tolerance = 2e-2
                (directory / "tolerance").write_text(f"{tolerance}\n")
            inputs, outputs = [numpy(t) for t in inputs.values()], [numpy(t) for t in outputs]
            for stem, arrays in ("input", inputs), ("output", outputs):
                for i, a in enumerate(arrays):
                    np.save(directory / f"{stem}_{i}.npy", a)
            gone = lost(module, model)
            verdict = judge(model, dict(zip(found, inputs)), outputs, tolerance)
            bad += verdict.startswith("WRONG") or bool(gone) and kind not in FOLDED
            print(about, verdict + (f"; {len(gone)} parameters gone" if gone else ""), flush=True)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
