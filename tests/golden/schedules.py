"""Writes tests/golden/schedules: schedules of pipelines, as torch.distributed.pipelining dumps them.

    schedules.py              writes the files
    schedules.py FILE ...     loads files in PyTorch, and prints "FILE: loads", or why it does not

Needs Python with torch 2.13 (the files were written by 2.13.0); nothing else in the project does: the files it writes are kept.
No process group is needed: a schedule asks its stages only for numbers. NAME.csv holds what _dump_csv writes of the compute-only
schedule, NAME-comms.csv what it writes with communication. GPipe and 1F1B have no _dump_csv of their own (they are not
PipelineScheduleMulti): their pipeline_order is dumped by the runtime class that loads CSV files. That of Schedule1F1B is wrong on the last
rank in 2.13: it begins with micro-batch 1 and ends with one beyond the last (bad-1f1b.csv, which must be refused). 1f1b.csv is interleaved 1F1B
with one stage for each rank.
"""
import pathlib
import sys

import torch
from torch.distributed.pipelining import schedules as pp

HERE = pathlib.Path(__file__).resolve().parent / "schedules"


class Stage:
    """What the constructors of schedules ask a stage for."""
    def __init__(self, index, stages, ranks):
        self.stage_index, self.num_stages = index, stages
        self.group_size, self.group_rank = ranks, 0
        self.is_first, self.is_last = index == 0, index == stages - 1
        self.submod, self.has_backward, self.group = None, True, None


def runtime(stages, ranks, micros):
    return pp._PipelineScheduleRuntime([Stage(i, stages, ranks) for i in range(stages)][:1], micros)


def single(kind, ranks, micros):
    schedule = runtime(ranks, ranks, micros)
    schedule.pipeline_order = kind(Stage(0, ranks, ranks), micros).pipeline_order
    return schedule


def multi(kind, ranks, chunks, micros):
    vee = kind in (pp.ScheduleZBVZeroBubble, pp.ScheduleDualPipeV)
    mine = [0, 2 * ranks - 1] if vee else [c * ranks for c in range(chunks)]
    return kind([Stage(i, ranks * chunks, ranks) for i in mine], micros)


SCHEDULES = {
    "gpipe": (lambda: single(pp.ScheduleGPipe, 4, 4), "compute_only"),
    "bad-1f1b": (lambda: single(pp.Schedule1F1B, 4, 8), "compute_only"),
    "1f1b": (lambda: multi(pp.ScheduleInterleaved1F1B, 4, 1, 8), "compute_only"),
    "1f1b-comms": (lambda: multi(pp.ScheduleInterleaved1F1B, 3, 1, 6), "compute_comms"),
    "interleaved": (lambda: multi(pp.ScheduleInterleaved1F1B, 4, 2, 8), "compute_only"),
    "interleaved-comms": (lambda: multi(pp.ScheduleInterleaved1F1B, 2, 2, 4), "compute_comms"),
    "looped-bfs": (lambda: multi(pp.ScheduleLoopedBFS, 2, 2, 4), "compute_only"),
    "zero-bubble": (lambda: multi(pp.ScheduleInterleavedZeroBubble, 2, 2, 4), "compute_only"),
    "zbv": (lambda: multi(pp.ScheduleZBVZeroBubble, 4, 2, 8), "compute_only"),
    "dualpipev": (lambda: multi(pp.ScheduleDualPipeV, 4, 2, 10), "compute_only"),
    "dualpipev-comms": (lambda: multi(pp.ScheduleDualPipeV, 2, 2, 6), "compute_comms"),
}


def load(path):
    rows = [[pp._Action.from_str(c) for c in row.split(",")] for row in pathlib.Path(path).read_text().splitlines()]
    cells = [a for row in rows for c in row if c for a in (c.sub_actions or (c,))]
    comms = any(not a.is_compute_op for a in cells)
    stages, micros = max(a.stage_index for a in cells) + 1, max(a.microbatch_index or 0 for a in cells) + 1
    schedule = runtime(stages, len(rows), micros)
    schedule._load_csv(path, "compute_comms" if comms else "compute_only")


if len(sys.argv) > 1:
    for path in sys.argv[1:]:
        try:
            load(path)
            print(f"{path}: loads")
        except Exception as e:
            print(f"{path}: {type(e).__name__}: {e}".splitlines()[0])
else:
    if not torch.__version__.startswith("2.13."):
        sys.exit(f"this is torch {torch.__version__}; the files are those of 2.13")
    HERE.mkdir(exist_ok=True)
    for name, (make, dialect) in SCHEDULES.items():
        make()._dump_csv(str(HERE / f"{name}.csv"), dialect)
