// Layout of pointwise launches: shapes and strides with mergeable dimensions merged.
#pragma once

#include <initializer_list>

#include "kernels/tensor_params.h"
#include "tensor/launch.h"

namespace millrace {

/// The parameter block for `operands` (bindings order, at most 4), each of shape `shape` or
/// broadcast to it. Neighbouring dimensions that every operand walks without a gap become one. op,
/// dtypes and scalars are left 0 but for dtype and out_dtype, those of the last and first operand.
PointwiseParams pointwise_params(std::initializer_list<const Tensor*> operands, const Shape& shape);

}  // namespace millrace
