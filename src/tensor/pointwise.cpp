// Layout of pointwise launches.
#include "tensor/pointwise.h"

namespace millrace {

PointwiseParams pointwise_params(std::initializer_list<const Tensor*> operands,
                                 const Shape& shape) {
  PointwiseParams params{};
  params.n = shape.numel();
  params.dtype = static_cast<uint32_t>((*(operands.end() - 1))->dtype());
  params.out_dtype = static_cast<uint32_t>((*operands.begin())->dtype());
  const size_t n_operands = operands.size();
  int rank = 0;
  for (int dim = 0; dim < shape.rank(); ++dim) {
    if (shape[dim] == 1) continue;
    uint64_t strides[4] = {};
    for (size_t i = 0; i < n_operands; ++i) {
      const Tensor& operand = **(operands.begin() + i);
      const int own = dim - (shape.rank() - operand.rank());
      if (own >= 0 && operand.size(own) != 1) {
        strides[i] = static_cast<uint64_t>(operand.strides()[own]);
      }
    }
    const auto extent = static_cast<uint64_t>(shape[dim]);
    bool merges = rank > 0;
    for (size_t i = 0; merges && i < n_operands; ++i) {
      merges = params.strides[i][rank - 1] == strides[i] * extent;
    }
    if (merges) {
      params.shape[rank - 1] *= extent;
    } else {
      params.shape[rank++] = extent;
    }
    for (size_t i = 0; i < n_operands; ++i) params.strides[i][rank - 1] = strides[i];
  }
  if (rank == 0) {
    params.shape[rank++] = 1;
    for (size_t i = 0; i < n_operands; ++i) params.strides[i][0] = 1;
  }
  params.rank = static_cast<uint32_t>(rank);
  return params;
}

}  // namespace millrace
