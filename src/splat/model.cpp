// Model: packing rows into blocks, growth, and snapshots.
#include "splat/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "tensor/ops.h"

namespace millrace {
namespace {

constexpr const char* kLabel = "gaussians";

uint64_t n_blocks(uint64_t rows) { return (rows + kRowBlock - 1) / kRowBlock; }

Tensor empty_group(Device& device, uint64_t rows, uint32_t lanes, const char* label) {
  return Tensor::empty(device, Shape{n_blocks(rows), std::max(lanes, 1u), kRowBlock}, Dtype::F32,
                       label);
}

ParameterGroup make_group(Device& device, uint64_t n, uint32_t lanes, uint64_t capacity) {
  ParameterGroup group;
  group.lanes = lanes;
  group.value = empty_group(device, capacity, lanes, kLabel);
  group.first_moment = empty_group(device, capacity, lanes, "moments");
  group.second_moment = empty_group(device, capacity, lanes, "moments");
  if (lanes == 0) return group;
  // Rows beyond N are written when they are born; only the live part is touched, so that unused
  // capacity costs no resident memory.
  const auto live = static_cast<int64_t>(n_blocks(n));
  group.first_moment.slice(0, 0, live).fill_(0);
  group.second_moment.slice(0, 0, live).fill_(0);
  return group;
}

// `fill(blocks)` writes the live rows of the zeroed host blocks.
template <class Fill>
void set_values(const ParameterGroup& group, uint64_t n, const Fill& fill) {
  if (group.lanes == 0) return;
  std::vector<float> blocks(row_floats(n, group.lanes), 0.0f);
  fill(blocks);
  group.value.slice(0, 0, static_cast<int64_t>(n_blocks(n))).upload(blocks);
}

void grow(Tensor& tensor, uint64_t rows, uint32_t lanes, const char* label) {
  Tensor larger = empty_group(tensor.device(), rows, lanes, label);
  larger.slice(0, 0, tensor.size(0)).copy_(tensor);
  tensor = larger;
}

}  // namespace

std::vector<float> to_row_blocks(const std::vector<float>& rows, uint64_t n_rows, uint32_t lanes) {
  std::vector<float> blocks(row_floats(n_rows, lanes), 0.0f);
  for (uint64_t row = 0; row < n_rows; ++row) {
    for (uint32_t l = 0; l < lanes; ++l) blocks[row_index(row, l, lanes)] = rows[row * lanes + l];
  }
  return blocks;
}

std::vector<float> from_row_blocks(const float* blocks, uint64_t begin, uint64_t end,
                                   uint32_t lanes) {
  std::vector<float> rows((end - begin) * lanes);
  for (uint64_t row = begin; row < end; ++row) {
    for (uint32_t l = 0; l < lanes; ++l) {
      rows[(row - begin) * lanes + l] = blocks[row_index(row, l, lanes)];
    }
  }
  return rows;
}

uint64_t model_start_bytes(uint64_t n_rows, int max_sh_degree) {
  const auto rest = static_cast<uint32_t>(sh_rest_count(max_sh_degree));
  return row_floats(n_rows, std::max<uint32_t>(kGeometryLanes, 3 * rest)) * sizeof(float);
}

Model make_empty_model(Device& device, uint64_t n_rows, int max_sh_degree, uint64_t row_capacity) {
  Model model;
  model.device = &device;
  model.max_sh_degree = max_sh_degree;
  model.row_capacity = n_blocks(std::max(row_capacity, n_rows)) * kRowBlock;
  const uint32_t lanes = 3 * static_cast<uint32_t>(sh_rest_count(max_sh_degree));
  model.geometry = make_group(device, n_rows, kGeometryLanes, model.row_capacity);
  model.sh_rest = make_group(device, n_rows, lanes, model.row_capacity);
  Control control = {};
  control.gate.accepted = kNoTransaction;
  control.gate.committed = kNoTransaction;
  control.counts.rows = static_cast<uint32_t>(n_rows);
  std::vector<uint32_t> words(sizeof(Control) / sizeof(uint32_t));
  std::memcpy(words.data(), &control, sizeof(control));
  model.control = Tensor::from_host(device, words, Shape{words.size()}, "control");
  return model;
}

Model make_model(Device& device, const GaussianCloud& cloud, int max_sh_degree,
                 uint64_t row_capacity) {
  const uint64_t n = cloud.count();
  if (n == 0) raise({ErrorCode::Usage, "a model needs at least one Gaussian"});
  Model model = make_empty_model(device, n, max_sh_degree, row_capacity);
  model.mip_filter = cloud.mip_filter;
  // Copies `count` values a row from `from` into the lanes that begin at `lane`.
  const auto copy_lanes = [n](std::vector<float>& blocks, uint32_t lanes, uint32_t lane,
                              const std::vector<float>& from, uint32_t stride, uint32_t count) {
    for (uint64_t row = 0; row < n; ++row) {
      for (uint32_t l = 0; l < count; ++l) {
        blocks[row_index(row, lane + l, lanes)] = from[row * stride + l];
      }
    }
  };
  set_values(model.geometry, n, [&](std::vector<float>& blocks) {
    copy_lanes(blocks, kGeometryLanes, kLaneMean, cloud.means, 3, 3);
    copy_lanes(blocks, kGeometryLanes, kLaneScale, cloud.log_scales, 3, 3);
    copy_lanes(blocks, kGeometryLanes, kLaneRotation, cloud.rotations, 4, 4);
    copy_lanes(blocks, kGeometryLanes, kLaneOpacity, cloud.opacities, 1, 1);
    copy_lanes(blocks, kGeometryLanes, kLaneSh0, cloud.sh0, 3, 3);
  });
  const uint32_t lanes = model.sh_rest.lanes;
  const uint32_t given = 3 * static_cast<uint32_t>(sh_rest_count(cloud.sh_degree));
  set_values(model.sh_rest, n, [&](std::vector<float>& blocks) {
    copy_lanes(blocks, lanes, 0, cloud.sh_rest, given, std::min(lanes, given));
  });
  return model;
}

void keep_statistics(Model& model, uint64_t n_rows) {
  model.statistics = empty_group(*model.device, model.row_capacity, kStatisticLanes, "statistics");
  model.statistics.slice(0, 0, static_cast<int64_t>(n_blocks(n_rows))).fill_(0);
}

Tensor live_row_count(const Model& model) {
  constexpr int64_t kWord = (offsetof(Control, counts) + offsetof(Counts, rows)) / sizeof(uint32_t);
  return model.control.slice(0, kWord, kWord + 1);
}

void grow_rows(Model& model, uint64_t row_capacity) {
  const uint64_t capacity = n_blocks(row_capacity) * kRowBlock;
  if (capacity <= model.row_capacity) return;
  for (ParameterGroup* group : {&model.geometry, &model.sh_rest}) {
    grow(group->value, capacity, group->lanes, kLabel);
    grow(group->first_moment, capacity, group->lanes, "moments");
    grow(group->second_moment, capacity, group->lanes, "moments");
  }
  if (model.statistics.defined()) {
    grow(model.statistics, capacity, kStatisticLanes, "statistics");
  }
  model.row_capacity = capacity;
}

bool ModelSnapshot::ready() const {
  for (const Ticket& ticket : tensors) {
    if (ticket && !ticket.ready()) return false;
  }
  return control.ready();
}

ModelSnapshot read_model_later(const Model& model, uint64_t row_bound, bool with_moments) {
  ModelSnapshot snapshot;
  snapshot.row_bound = std::min(row_bound, model.row_capacity);
  snapshot.max_sh_degree = model.max_sh_degree;
  snapshot.control = read_later(model.control);
  const auto blocks = static_cast<int64_t>(n_blocks(snapshot.row_bound));
  int index = 0;
  for (const ParameterGroup* group : {&model.geometry, &model.sh_rest}) {
    for (const Tensor* tensor : {&group->value, &group->first_moment, &group->second_moment}) {
      const bool wanted = group->lanes > 0 && (tensor == &group->value || with_moments);
      if (wanted) snapshot.tensors[index] = read_later(tensor->slice(0, 0, blocks));
      ++index;
    }
  }
  return snapshot;
}

Control control_of(const ModelSnapshot& snapshot) { return snapshot.control.as<Control>(); }

uint64_t row_count(const ModelSnapshot& snapshot) {
  const uint64_t n = control_of(snapshot).counts.rows;
  if (n > snapshot.row_bound) {
    raise({ErrorCode::Internal,
           fmt::format("a snapshot of {} rows holds a model of {}", snapshot.row_bound, n)});
  }
  return n;
}

std::vector<float> rows_of(const ModelSnapshot& snapshot, int index, uint64_t begin, uint64_t end) {
  const uint32_t rest_lanes = 3 * static_cast<uint32_t>(sh_rest_count(snapshot.max_sh_degree));
  const uint32_t lanes = index < 3 ? static_cast<uint32_t>(kGeometryLanes) : rest_lanes;
  if (!snapshot.tensors[index]) return {};
  return from_row_blocks(reinterpret_cast<const float*>(snapshot.tensors[index].bytes().data()),
                         begin, end, lanes);
}

std::vector<float> rows_of(const ModelSnapshot& snapshot, int index) {
  return rows_of(snapshot, index, 0, row_count(snapshot));
}

GaussianCloud cloud_of(const ModelSnapshot& snapshot, uint64_t begin, uint64_t end) {
  GaussianCloud cloud;
  cloud.sh_degree = snapshot.max_sh_degree;
  const std::vector<float> geometry = rows_of(snapshot, 0, begin, end);
  for (uint64_t i = 0; i < end - begin; ++i) {
    const float* row = geometry.data() + i * kGeometryLanes;
    cloud.means.insert(cloud.means.end(), row + kLaneMean, row + kLaneMean + 3);
    cloud.log_scales.insert(cloud.log_scales.end(), row + kLaneScale, row + kLaneScale + 3);
    cloud.rotations.insert(cloud.rotations.end(), row + kLaneRotation, row + kLaneRotation + 4);
    cloud.opacities.push_back(row[kLaneOpacity]);
    cloud.sh0.insert(cloud.sh0.end(), row + kLaneSh0, row + kLaneSh0 + 3);
  }
  cloud.sh_rest = rows_of(snapshot, 3, begin, end);
  return cloud;
}

}  // namespace millrace
