// Device and dataset settings from options.
#include "train/open_device.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "train/mask_settings.h"

namespace millrace {

Result<std::unique_ptr<Device>> open_training_device(const std::string& id, int threads) {
  const bool cpu = id == "cpu" || id == "auto";
  MILLRACE_ASSIGN(std::unique_ptr<Device> device,
                  open_device(cpu && threads > 0 ? fmt::format("cpu:{}", threads) : id));
  const char* checked = std::getenv("MILLRACE_CHECKED");
  if (checked && std::string_view(checked) == "1") device = make_checked(std::move(device));
  return device;
}

DatasetOptions dataset_options(const TrainOptions& options) {
  DatasetOptions out;
  out.images = options.images;
  out.resize_factor = static_cast<int>(options.resize_factor);
  out.max_width = options.max_width;
  out.test_every = options.test_every;
  out.test_fold = options.test_fold;
  out.test_images = options.test_images;
  out.init_num_points = options.init_num_pts;
  out.random_points = options.random;
  out.seed = options.seed;
  out.use_masks = uses_masks(options);
  out.masks = options.masks;
  return out;
}

}  // namespace millrace
