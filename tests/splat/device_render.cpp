// The code under test behind host arrays: models, frames and steps on a device.
#include "splat/device_render.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "loss/photometric.h"
#include "splat/render.h"

namespace millrace::test {
namespace {

CameraRecord record_of(const Camera& camera, double near_plane) {
  CameraRecord record = {};
  const auto& m = camera.world_to_camera;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) record.rotation[3 * i + j] = static_cast<float>(m[4 * i + j]);
    record.translation[i] = static_cast<float>(m[4 * i + 3]);
    record.centre[i] = static_cast<float>(-(m[i] * m[3] + m[4 + i] * m[7] + m[8 + i] * m[11]));
  }
  record.fx = static_cast<float>(camera.fx);
  record.fy = static_cast<float>(camera.fy);
  record.cx = static_cast<float>(camera.cx);
  record.cy = static_cast<float>(camera.cy);
  record.near_plane = static_cast<float>(near_plane);
  record.width = camera.width;
  record.height = camera.height;
  return record;
}

// Adam's rates of step `index` from 0, the learning rate being 1e-3 throughout.
StepBlock block_of(const OracleStep& step, int max_sh_degree, int index) {
  constexpr double kRate = 1e-3;
  StepBlock block = {};
  block.transaction = static_cast<uint64_t>(index);
  block.step = static_cast<uint32_t>(index);
  block.sh_degree = static_cast<uint32_t>(std::min(step.active_sh_degree, max_sh_degree));
  for (int c = 0; c < 3; ++c) block.background[c] = static_cast<float>(step.background[c]);
  const auto rate = static_cast<float>(kRate / (1 - std::pow(0.9, index + 1)));
  block.rate_means = block.rate_scales = block.rate_rotations = rate;
  block.rate_opacities = block.rate_sh0 = block.rate_sh_rest = rate;
  block.inv_sqrt_bias2 = static_cast<float>(1 / std::sqrt(1 - std::pow(0.999, index + 1)));
  block.ssim_weight = static_cast<float>(step.ssim_weight);
  block.opacity_reg = static_cast<float>(step.opacity_reg);
  block.scale_reg = static_cast<float>(step.scale_reg);
  block.mrnf.erank_reg = static_cast<float>(step.erank_reg);
  block.mrnf.dc_reg = static_cast<float>(step.dc_reg);
  block.mrnf.sh_rest_reg = static_cast<float>(step.sh_rest_reg);
  block.crop = step.crop;
  if (step.mip_filter) block.modes |= kModeMipFilter;
  return block;
}

void wait_blocking(Device& device) {
  device.wait_blocking(device.submit(), WaitSite{WaitReason::Test, "splat tests"}).or_raise();
}

std::vector<float> floats_of(const Ticket& ticket, size_t n) {
  const auto* values = reinterpret_cast<const float*>(ticket.bytes().data());
  return {values, values + n};
}

// Lanes back to the arrays of a cloud.
GaussianCloud cloud_of_rows(const std::vector<float>& geometry, std::vector<float> sh_rest,
                            int sh_degree) {
  GaussianCloud cloud;
  cloud.sh_degree = sh_degree;
  for (size_t i = 0; i < geometry.size(); i += kGeometryLanes) {
    const float* row = geometry.data() + i;
    cloud.means.insert(cloud.means.end(), row + kLaneMean, row + kLaneMean + 3);
    cloud.log_scales.insert(cloud.log_scales.end(), row + kLaneScale, row + kLaneScale + 3);
    cloud.rotations.insert(cloud.rotations.end(), row + kLaneRotation, row + kLaneRotation + 4);
    cloud.opacities.push_back(row[kLaneOpacity]);
    cloud.sh0.insert(cloud.sh0.end(), row + kLaneSh0, row + kLaneSh0 + 3);
  }
  cloud.sh_rest = std::move(sh_rest);
  return cloud;
}

// Rows [0, n) of a group that was read back in blocks of 32.
std::vector<float> rows_of_blocks(const Ticket& ticket, uint64_t n, uint32_t lanes) {
  const auto* blocks = reinterpret_cast<const float*>(ticket.bytes().data());
  std::vector<float> rows;
  for (uint64_t row = 0; row < n; ++row) {
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      rows.push_back(blocks[row_index(row, lane, lanes)]);
    }
  }
  return rows;
}

// A model, a view and the memory for its frames.
struct Bench {
  Device& device;
  FrameSize size;
  uint64_t n_rows, n_pixels;
  Model model;
  Tensor cameras, step;
  Workspace workspace;
  OracleStep settings;
  BandLimit limit = {};
  bool with_alpha_gradient = false;

  Bench(Device& on, const GaussianCloud& cloud, const Camera& camera, const OracleStep& with)
      : device(on),
        size{camera.width, camera.height},
        n_rows(cloud.count()),
        n_pixels(uint64_t{camera.width} * camera.height),
        model(make_model(on, cloud, cloud.sh_degree, cloud.count())),
        cameras(make_camera_table(on, {record_of(camera, with.near_plane)})),
        settings(with) {
    workspace.rows = make_row_buffers(device, model.row_capacity);
    workspace.pixels = make_pixel_buffers(
        device, {size}, {.gradients = true, .depth = true, .alpha_gradient = true});
    const uint64_t n_tiles = workspace.pixels.n_tiles;
    workspace.instances =
        make_instance_buffers(device, std::max<uint64_t>(n_rows * n_tiles, 1), n_tiles, true);
  }

  FrameContext frame() {
    FrameContext frame = {model,          cameras, step,    workspace,    size,
                          limit.capacity, true,    nullptr, limit.n_bands};
    frame.with_alpha_gradient = with_alpha_gradient;
    return frame;
  }

  void forward(int index) {
    step = upload_step_block(device, block_of(settings, model.max_sh_degree, index));
    render_forward(frame());
  }

  void loss(const Tensor& target) {
    PixelBuffers& p = workspace.pixels;
    photometric_loss({step, model.control, p.image, target, p.loss_maps, p.loss_partials, p.d_image,
                      size.width, size.height});
  }

  DeviceGradients gradients() {
    blend_backward(frame());
    GradientBuffer buffer = make_gradient_buffer(model);
    backward_accumulate(frame(), buffer);
    const Ticket d_geometry = read_later(buffer.d_geometry), d_rest = read_later(buffer.d_sh_rest);
    const Ticket records = read_later(workspace.instances.gradients);
    const Ticket n_tiles = read_later(workspace.rows.n_tiles);
    const Ticket first_slot = read_later(workspace.rows.first_slot);
    const Ticket control = read_later(model.control);
    wait_blocking(device);
    DeviceGradients out;
    out.d_cloud =
        cloud_of_rows(rows_of_blocks(d_geometry, n_rows, kGeometryLanes),
                      rows_of_blocks(d_rest, n_rows, model.sh_rest.lanes), model.max_sh_degree);
    out.weights.resize(n_rows);
    const auto* n = reinterpret_cast<const uint32_t*>(n_tiles.bytes().data());
    const auto* first = reinterpret_cast<const uint32_t*>(first_slot.bytes().data());
    const auto* record = reinterpret_cast<const InstanceGradient*>(records.bytes().data());
    for (uint64_t row = 0; row < n_rows; ++row) {
      for (uint32_t i = 0; i < n[row]; ++i) out.weights[row] += record[first[row] + i].weight;
    }
    out.loss = control.as<Control>().metrics.loss;
    return out;
  }
};

// A [3,H,W] photograph on the device, by way of interleaved pixels.
Tensor upload_target(Device& device, const std::vector<uint8_t>& target, const FrameSize& size) {
  const size_t pixels = size_t{size.width} * size.height;
  std::vector<uint8_t> interleaved(3 * pixels);
  for (size_t i = 0; i < pixels; ++i) {
    for (size_t c = 0; c < 3; ++c) interleaved[3 * i + c] = target[c * pixels + i];
  }
  return upload_photograph(device, interleaved, size.width, size.height);
}

bool equal_bits(const GaussianCloud& a, const GaussianCloud& b) {
  const auto equal = [](const std::vector<float>& x, const std::vector<float>& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
  };
  return equal(a.means, b.means) && equal(a.log_scales, b.log_scales) &&
         equal(a.rotations, b.rotations) && equal(a.opacities, b.opacities) &&
         equal(a.sh0, b.sh0) && equal(a.sh_rest, b.sh_rest);
}

}  // namespace

DeviceFrame device_render(Device& device, const GaussianCloud& cloud, const Camera& camera,
                          const OracleStep& step) {
  Bench bench(device, cloud, camera, step);
  bench.forward(0);
  const Ticket image = read_later(bench.workspace.pixels.image);
  const Ticket depth_alpha = read_later(bench.workspace.pixels.depth_alpha);
  wait_blocking(device);
  DeviceFrame frame;
  frame.image = floats_of(image, 3 * bench.n_pixels);
  frame.depth = floats_of(depth_alpha, 2 * bench.n_pixels);
  frame.alpha.assign(frame.depth.begin() + static_cast<ptrdiff_t>(bench.n_pixels),
                     frame.depth.end());
  frame.depth.resize(bench.n_pixels);
  return frame;
}

DeviceGradients device_gradients(Device& device, const GaussianCloud& cloud, const Camera& camera,
                                 const OracleStep& step, const std::vector<float>& d_image,
                                 const std::vector<float>& d_alpha, BandLimit limit) {
  Bench bench(device, cloud, camera, step);
  bench.limit = limit;
  bench.forward(0);
  bench.workspace.pixels.d_image.upload(d_image);
  if (!d_alpha.empty()) {
    bench.with_alpha_gradient = true;
    bench.workspace.pixels.d_alpha.upload(d_alpha);
  }
  return bench.gradients();
}

DeviceGradients device_loss_gradients(Device& device, const GaussianCloud& cloud,
                                      const Camera& camera, const OracleStep& step,
                                      const std::vector<uint8_t>& target) {
  Bench bench(device, cloud, camera, step);
  const Tensor photograph = upload_target(device, target, bench.size);
  bench.forward(0);
  bench.loss(photograph);
  return bench.gradients();
}

bool DeviceModel::operator==(const DeviceModel& other) const {
  return equal_bits(cloud, other.cloud) && equal_bits(first_moment, other.first_moment) &&
         equal_bits(second_moment, other.second_moment);
}

DeviceModel device_train(Device& device, const GaussianCloud& cloud, const Camera& camera,
                         const OracleStep& step, const std::vector<uint8_t>& target, int n_steps,
                         Epilogue epilogue, BandLimit limit) {
  Bench bench(device, cloud, camera, step);
  bench.limit = limit;
  const Tensor photograph = upload_target(device, target, bench.size);
  for (int index = 0; index < n_steps; ++index) {
    bench.forward(index);
    bench.loss(photograph);
    blend_backward(bench.frame());
    if (epilogue == Epilogue::FusedAdam) {
      backward_with_adam(bench.frame());
    } else {
      GradientBuffer buffer = make_gradient_buffer(bench.model);
      backward_accumulate(bench.frame(), buffer);
      adam_step(bench.frame(), buffer);
    }
    commit(bench.model, bench.step, CommitMode::Step);
  }
  const ModelSnapshot snapshot = read_model_later(bench.model, bench.n_rows, true);
  wait_blocking(device);
  const int degree = cloud.sh_degree;
  return {cloud_of_rows(rows_of(snapshot, 0), rows_of(snapshot, 3), degree),
          cloud_of_rows(rows_of(snapshot, 1), rows_of(snapshot, 4), degree),
          cloud_of_rows(rows_of(snapshot, 2), rows_of(snapshot, 5), degree)};
}

}  // namespace millrace::test
