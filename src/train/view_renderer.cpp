// Rendering for people: one frame at a time, with its own instance capacity.
#include "train/view_renderer.h"

#include <fmt/format.h>

#include <algorithm>

#include "train/scene.h"

namespace millrace {
namespace {

// Above every training transaction, so that none is mistaken for it.
constexpr uint64_t kViewTransaction = 1ull << 62;

}  // namespace

ImageF ViewRenderer::interleave(const float* planes, uint32_t width, uint32_t height) {
  ImageF image = {width, height, {}};
  const size_t n = size_t{width} * height;
  image.pixels.resize(3 * n);
  for (size_t c = 0; c < 3; ++c) {
    for (size_t i = 0; i < n; ++i) image.pixels[3 * i + c] = planes[c * n + i];
  }
  return image;
}

ViewRenderer::ViewRenderer(const Model& model, const std::vector<FrameSize>& sizes, bool with_depth)
    : model_(model), with_depth_(with_depth) {
  Device& device = *model.device;
  workspace_.rows = make_row_buffers(device, model.row_capacity);
  workspace_.pixels = make_pixel_buffers(device, sizes, {.depth = with_depth});
  workspace_.instances = make_instance_buffers(device, 8 * model.row_capacity,
                                               workspace_.pixels.n_tiles, /*with_gradients=*/false);
}

Result<ViewRenderer::Image> ViewRenderer::render_blocking(const Camera& camera, double near_plane,
                                                          uint32_t sh_degree,
                                                          const std::array<float, 3>& background,
                                                          const Tensor* background_image) {
  Device& device = *model_.device;
  const Tensor cameras = make_camera_table(device, {make_camera_record(camera, near_plane)});
  const FrameSize size = frame_size(camera);
  constexpr int kMaxAttempts = 8;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    // The epoch is the gate's own: the queue is settled, so it can be read first.
    const Ticket before = read_later(model_.control);
    MILLRACE_TRY(device.wait_blocking(before.point(), {WaitReason::UserRead, "view.epoch"}));
    StepBlock block = {};
    block.transaction = kViewTransaction;
    block.epoch = before.as<Control>().gate.epoch;
    block.sh_degree = sh_degree;
    if (model_.mip_filter) block.modes |= kModeMipFilter;
    std::copy(background.begin(), background.end(), block.background);
    const Tensor step = upload_step_block(device, block);
    render_forward({model_, cameras, step, workspace_, size, 0, with_depth_, background_image});
    const auto n = static_cast<int64_t>(uint64_t{size.width} * size.height);
    const Ticket image = read_later(workspace_.pixels.image.slice(0, 0, 3 * n));
    Ticket depth_alpha;
    if (with_depth_) depth_alpha = read_later(workspace_.pixels.depth_alpha.slice(0, 0, 2 * n));
    const Ticket after = read_later(model_.control);
    // A ticket may be served before work queued ahead of it that does not write its source: wait
    // for all.
    MILLRACE_TRY(device.wait_blocking(device.submit(), {WaitReason::UserRead, "view.image"}));
    const auto control = after.as<Control>();
    if (control.gate.closed) {
      const uint64_t need = control.gate.need_instances;
      workspace_.instances = InstanceBuffers();
      workspace_.instances =
          make_instance_buffers(device, need + need / 4, workspace_.pixels.n_tiles, false);
      reopen_gate(model_, control.gate.epoch);
      continue;
    }
    Image result;
    result.color =
        interleave(reinterpret_cast<const float*>(image.bytes().data()), size.width, size.height);
    if (with_depth_) {
      const auto* planes = reinterpret_cast<const float*>(depth_alpha.bytes().data());
      result.depth.assign(planes, planes + n);
      result.alpha.assign(planes + n, planes + 2 * n);
    }
    return result;
  }
  return Error{
      ErrorCode::OutOfMemory,
      fmt::format("a frame of {}x{} did not fit after {} attempts; render at a smaller size",
                  size.width, size.height, kMaxAttempts)};
}

}  // namespace millrace
