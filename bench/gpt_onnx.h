/* Writes a decoder as PyTorch's older exporter does: LayerNorm and GELU decomposed, a chain of Shape, Gather,
 * Unsqueeze and Concat before every Reshape, constants as nodes.  About two thirds of the nodes are shape arithmetic,
 * as in a real GPT-2 file.  It writes the protobuf itself: a benchmark must not depend on our own writer. */
#ifndef SBPCC_GPT_ONNX_H
#define SBPCC_GPT_ONNX_H

/* at least so many nodes, in whole layers; returns their number, -1 on error */
int gpt_onnx(const char *path, int nodes);

#endif
