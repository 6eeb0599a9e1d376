#!/usr/bin/env python3
"""make_cases.py FOLDER|FILE.tar.xz [--above OPSET]: writes the node tests of the Python package `onnx` that is installed.

Since release 1.20 the package no longer brings its node tests as files; it still makes them. Each becomes
node/CASE/{model.onnx, test_data_set_0/{input,output}_N.pb}, with data.json where it states tolerances of its own.
--above keeps the cases that import an opset of ai.onnx above the given one.

    python3 -m venv onnx && onnx/bin/pip install onnx && onnx/bin/python tests/onnx/make_cases.py all
    ONNX_CASES=$PWD/all tests/run onnx/run_cases         # runs all of them beside the other cases

newer.tar.xz holds those of onnx 1.23.2 that the wheel of 1.19.1 does not have: make_cases.py tests/onnx/newer.tar.xz --above 24
"""
import argparse
import io
import json
import os
import tarfile

import numpy
from onnx import TensorProto, numpy_helper
from onnx.backend.test.loader import load_model_tests


def proto(value, info):
    kind = info.type.WhichOneof("value")
    if kind == "map_type":
        return numpy_helper.from_dict(value, info.name)
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, info.name)
    if isinstance(value, TensorProto):
        return value
    return numpy_helper.from_array(numpy.asarray(value), info.name)


def files(case):
    """What the folder of a case holds: path to bytes."""
    made = {"model.onnx": case.model.SerializeToString(deterministic=True)}
    inputs, outputs = case.data_sets[0]
    for name, values, infos in ("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output):
        for i, (value, info) in enumerate(zip(values, infos)):
            made[f"test_data_set_0/{name}_{i}.pb"] = proto(value, info).SerializeToString(deterministic=True)
    if (case.rtol, case.atol) != (1e-3, 1e-7):
        made["data.json"] = json.dumps({"atol": case.atol, "rtol": case.rtol}).encode()
    return made


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("to")
    parser.add_argument("--above", type=int, default=0)
    args = parser.parse_args()
    archive = tarfile.open(args.to, "w:xz", preset=9) if args.to.endswith(".tar.xz") else None
    made = 0
    for case in sorted(load_model_tests(kind="node"), key=lambda c: c.name):
        if max((o.version for o in case.model.opset_import if o.domain in ("", "ai.onnx")), default=0) <= args.above:
            continue
        made += 1
        for path, content in files(case).items():
            path = os.path.join("node", case.name, path)
            if archive:
                entry = tarfile.TarInfo(path)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
                continue
            path = os.path.join(args.to, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(content)
    if archive:
        archive.close()
    print(f"{made} cases")


if __name__ == "__main__":
    main()
