/* Writes a decoder in the form in which PyTorch's older exporter leaves it: LayerNorm and GELU taken apart, every
 * Reshape fed by a chain of Shape, Gather, Unsqueeze and Concat, constants as nodes. About two thirds of the nodes are
 * shape arithmetic, as in a real GPT-2 file. The protobuf is written here by hand: benchmarks read what others write. */
#ifndef SBPCC_GPT_ONNX_H
#define SBPCC_GPT_ONNX_H

int gpt_onnx(const char *path, int nodes);      /* at least so many nodes, in whole layers; how many it became, -1 on error */

#endif
