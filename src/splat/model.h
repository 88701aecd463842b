// Model: N Gaussians on a device with their Adam moments, and the control record (gate, counts,
// metrics).
#pragma once

#include <cstdint>
#include <vector>

#include "base/gaussian_cloud.h"
#include "kernels/splat_params.h"
#include "tensor/tensor.h"

namespace millrace {

/// A parameter group and its two Adam moments, each [ceil(capacity/32), lanes, 32] F32 (row_index()
/// of kernels/splat_params.h addresses them). Groups with no lanes hold one unused block.
struct ParameterGroup {
  uint32_t lanes = 0;
  Tensor value, first_moment, second_moment;
};

/// Rows [0, N) are live; N itself is in `control`, on the device. The host knows bounds only.
struct Model {
  Device* device = nullptr;
  int max_sh_degree = 3;
  bool mip_filter = false;  // of the cloud it was made from: how it is drawn for people
  uint64_t row_capacity = 0;
  ParameterGroup geometry;  // lanes: GeometryLane
  ParameterGroup sh_rest;   // lanes: 3 x sh_rest_count(max_sh_degree)
  Tensor statistics;        // [ceil(capacity/32), kStatisticLanes, 32] F32; or undefined
  Tensor control;           // [words] U32: one Control record
};

/// A model with the rows of `cloud` (SH cut or zero-padded to `max_sh_degree`), zero moments, an
/// open gate, and room for `row_capacity` rows. Errors: OutOfMemory; Usage for an empty cloud.
Model make_model(Device& device, const GaussianCloud& cloud, int max_sh_degree,
                 uint64_t row_capacity);

/// The same without values: the parameters of the first `n_rows` rows are still to be uploaded.
Model make_empty_model(Device& device, uint64_t n_rows, int max_sh_degree, uint64_t row_capacity);
/// From now on the model keeps statistics of its rows (StatisticLane), which begin at zero.
/// `n_rows`: how many rows it has.
void keep_statistics(Model& model, uint64_t n_rows);
/// Host memory that make_model() takes beside its cloud while it runs.
uint64_t model_start_bytes(uint64_t n_rows, int max_sh_degree);

/// N on the device: a [1] U32 view of the control record, for ops that take a count.
Tensor live_row_count(const Model& model);

/// Moves the model to storage for `row_capacity` rows; copies are queued, one tensor at a time.
void grow_rows(Model& model, uint64_t row_capacity);

/// All live state as it is at this place in queue order.
struct ModelSnapshot {
  Ticket control;
  Ticket tensors[6];  // geometry value, first, second; sh_rest value, first, second
  uint64_t row_bound = 0;
  int max_sh_degree = 3;
  bool ready() const;
};
/// Queues a snapshot of the first `row_bound` rows (a bound on N that the caller knows).
ModelSnapshot read_model_later(const Model& model, uint64_t row_bound, bool with_moments);

/// The control record of a snapshot that is ready.
Control control_of(const ModelSnapshot& snapshot);
/// N of a snapshot that is ready.
uint64_t row_count(const ModelSnapshot& snapshot);
/// Its rows [begin, end), end <= N.
GaussianCloud cloud_of(const ModelSnapshot& snapshot, uint64_t begin, uint64_t end);
/// Rows [0, N) of tensor `index` of a snapshot as [N, lanes], for hashing.
std::vector<float> rows_of(const ModelSnapshot& snapshot, int index);

/// A group's host form: [N, lanes] rows to blocks of 32.
std::vector<float> to_row_blocks(const std::vector<float>& rows, uint64_t n_rows, uint32_t lanes);
/// Rows [begin, end) of a group's blocks (as a ticket brings them) as [rows, lanes].
std::vector<float> from_row_blocks(const float* blocks, uint64_t begin, uint64_t end,
                                   uint32_t lanes);

}  // namespace millrace
