// Checks of the tensor facade: raising with the operation, its operands and the call site.
#pragma once

#include <initializer_list>
#include <string>

#include "tensor/tensor.h"

namespace millrace {

/// Raises "<op>: <what>; operands [N,3] F32, ...; called at file.cpp:12".
[[noreturn]] void fail(const char* op, const std::string& what,
                       std::initializer_list<const Tensor*> operands, const Site& site,
                       ErrorCode code = ErrorCode::Internal);

/// Fails unless every operand is defined and all live on one device.
void require_operands(const char* op, std::initializer_list<const Tensor*> operands,
                      const Site& site);

/// Fails unless `tensor` (one of `operands`) has dtype `dtype`.
void require_dtype(const char* op, const Tensor& tensor, Dtype dtype,
                   std::initializer_list<const Tensor*> operands, const Site& site);

/// `dim` counted from 0; fails unless -rank <= dim < rank.
int require_dim(const char* op, int dim, int rank, std::initializer_list<const Tensor*> operands,
                const Site& site);

/// Fails unless `tensor` may be written, that is, has no expanded dimension.
void require_writable(const char* op, const Tensor& tensor,
                      std::initializer_list<const Tensor*> operands, const Site& site);

/// Fails unless `count` is a U32 tensor of one element.
void require_count(const char* op, const Tensor& count,
                   std::initializer_list<const Tensor*> operands, const Site& site);

/// The shape to which all operands broadcast; fails if there is none.
Shape broadcast_shape(const char* op, std::initializer_list<const Tensor*> operands,
                      const Site& site);

/// `value` as the bits of one element; fails if it does not fit an integer dtype.
uint64_t scalar_bits(const char* op, double value, Dtype dtype,
                     std::initializer_list<const Tensor*> operands, const Site& site);

}  // namespace millrace
