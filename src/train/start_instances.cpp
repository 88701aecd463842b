// Counting the first frames of a sample of the Gaussians to begin with.
#include "train/start_instances.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "splat/render.h"
#include "train/open_device.h"
#include "train/scene.h"

namespace millrace {
namespace {

constexpr uint64_t kMostGaussians = 1u << 15;
constexpr uint64_t kMostViews = 64;

// Every n/k-th of the Gaussians: at most kMostGaussians of the points as if no others were.
GaussianCloud sampled_cloud(const Dataset& dataset, const TrainOptions& options,
                            const std::vector<float>& distances) {
  const uint64_t n = distances.size();
  TrainOptions sample = options;
  sample.max_cap = std::min(n, kMostGaussians);
  sample.sh_degree = 0;
  const uint64_t available = dataset.points.count();
  std::vector<float> of_sample(sample.max_cap);
  for (uint64_t i = 0; i < of_sample.size(); ++i) {
    // initial_cloud() takes point i x available / max_cap, and Gaussian j began at j x available/n.
    const uint64_t point = i * available / of_sample.size();
    of_sample[i] = distances[std::min(n - 1, (point * n + available - 1) / available)];
  }
  return initial_cloud(dataset, sample, nullptr, of_sample);
}

}  // namespace

Result<uint64_t> start_instances_blocking(const Dataset& dataset, const TrainOptions& options,
                                          const SceneScale& scale,
                                          const std::vector<float>& distances) {
  std::vector<const View*> views;
  for (const View& view : dataset.views) {
    if (!view.held_out) views.push_back(&view);
  }
  if (views.empty() || distances.empty()) return uint64_t{0};
  const uint64_t n_views = std::min<uint64_t>(views.size(), kMostViews);
  std::vector<CameraRecord> cameras;
  std::vector<FrameSize> sizes;
  for (uint64_t i = 0; i < n_views; ++i) {
    const Camera& camera = views[i * views.size() / n_views]->camera;
    cameras.push_back(make_camera_record(camera, kNearPlane * scale.normaliser));
    sizes.push_back(frame_size(camera));
  }

  auto opened = open_training_device("cpu", options.threads);
  if (!opened.ok()) return uint64_t{0};  // a build without it does not know
  const std::unique_ptr<Device> device = std::move(opened).value();
  const GaussianCloud cloud = sampled_cloud(dataset, options, distances);
  const Model model = make_model(*device, cloud, 0, cloud.count());
  const Tensor table = make_camera_table(*device, cameras);
  Workspace workspace;
  workspace.rows = make_row_buffers(*device, model.row_capacity);
  std::vector<Ticket> counted;
  for (uint32_t view = 0; view < cameras.size(); ++view) {
    StepBlock block = {};
    block.view = view;
    const Tensor step = upload_step_block(*device, block);
    count_instances({model, table, step, workspace, sizes[view]});
    counted.push_back(read_later(model.control));
  }
  MILLRACE_TRY(device->wait_blocking(device->submit(), {WaitReason::UserRead, "trainer.count"}));
  uint64_t most = 0;
  for (const Ticket& ticket : counted) {
    Control control;
    std::memcpy(&control, ticket.bytes().data(), sizeof(control));
    most = std::max(most, control.counts.instances);
  }
  const double share = static_cast<double>(cloud.count()) / static_cast<double>(distances.size());
  return static_cast<uint64_t>(std::ceil(static_cast<double>(most) / share));
}

}  // namespace millrace
