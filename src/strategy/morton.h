// Morton order: a reordering transaction that puts neighbours in space beside each other in memory.
#pragma once

#include "splat/model.h"
#include "tensor/tensor.h"

namespace millrace {

/// Reorders all rows with their moments, queued between decide() and commit(). Goes through
/// scratch, one tensor at a time.
void morton_reorder(const Model& model, const Tensor& step);

}  // namespace millrace
